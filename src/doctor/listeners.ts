/* The ports that a server listens on, and its certificate. */

import { X509Certificate } from "node:crypto";
import { createServer } from "node:net";
import type { AdminConfig } from "../config/config.ts";
import { adminTls, originOf } from "../config/listen-urls.ts";
import { ADMIN_LISTEN_FLAGS, LISTEN_FLAGS, listenProblems } from "../config/listen-problems.ts";
import { readTlsFiles, type TlsFiles } from "../config/tls.ts";
import { HEALTH_PATH } from "../domain/paths.ts";
import { hostProblem, tlsCheck, validityProblem } from "./certificate.ts";
import { check, type Finding, problemsOr, messageWithoutSecrets } from "./finding.ts";

/** The listeners of a server. */
export interface Listeners {
  readonly host: string;
  readonly port: number;
  readonly publicUrl: string | undefined;
  /** Undefined without TLS. */
  readonly tls: TlsFiles | undefined;
  /** Undefined if the listener for operators is off. */
  readonly admin: Pick<AdminConfig, "host" | "port" | "isDefault"> | undefined;
}

const ports = check("ports");

/**
 * Checks the ports. A port on which a Petstore server already listens is fine. The default port for operators is
 * skipped, because a server can use another one.
 */
export async function checkPorts(
  { host, port, admin, tls }: Omit<Listeners, "publicUrl">,
  statusOf: (url: string) => Promise<number | undefined>,
): Promise<Finding[]> {
  const listeners = [
    { host, port, tls, path: HEALTH_PATH, flags: LISTEN_FLAGS },
    ...(admin && !admin.isDefault
      ? [{ ...admin, tls: adminTls(admin, tls), path: "/livez", flags: ADMIN_LISTEN_FLAGS }]
      : []),
  ];
  const checks = listeners.map(async ({ flags, path, ...listener }): Promise<Finding> => {
    const name = `${listener.host} port ${listener.port}`;
    const code = await listenError(listener);
    if (code === undefined) return ports.ok(`the server can listen on ${name}`);
    const url = originOf({ ...listener, isTls: listener.tls !== undefined }) + path;
    const status = code === "EADDRINUSE" ? await statusOf(url).catch(() => undefined) : undefined;
    if (status === 200 || status === 503) return ports.ok(`a server listens on ${name} already`);
    const either = [...new Set([flags.host, flags.port])].join(" and ");
    const [problem, remedy] = listenProblems(flags)[code] ?? [code, `see ${either}`];
    return ports.error(`the server cannot listen on ${name}: ${problem}`, remedy);
  });
  return Promise.all(checks);
}

/** The code of the error when listening fails. For an unknown host name, the runtime reports none. */
function listenError({ host, port }: { readonly host: string; readonly port: number }) {
  const probe = createServer();
  return new Promise<string | undefined>((resolve) => {
    probe.once("error", (error) => resolve(String(Reflect.get(error, "code") ?? "ENOTFOUND")));
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve(undefined)));
  });
}

export function checkTls(
  { tls: files, publicUrl }: Pick<Listeners, "tls" | "publicUrl">,
  now: number,
): Finding[] {
  if (files === undefined) return [tlsCheck.ok("the server serves plain HTTP: --tls-cert is not set")];
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(readTlsFiles(files).cert);
  } catch (error) {
    const remedy = "correct the files; a running server keeps the last ones that worked";
    return [tlsCheck.error(messageWithoutSecrets(error), remedy)];
  }
  return problemsOr(tlsCheck.ok(`${files.certFile} is valid until ${certificate.validTo}`), [
    validityProblem(certificate, now),
    publicUrl !== undefined && hostProblem(certificate, publicUrl),
  ]);
}
