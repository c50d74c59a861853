import { originOf } from "../../config/listen-urls.ts";
import { DEFAULT_PORT, SETTINGS } from "../../config/options.ts";
import type { ValuesOf } from "../../config/parse-options.ts";
import { DataDirectory } from "../../data-directory.ts";
import { readOwnFile } from "../../runtime/own-files.ts";
import { HEALTH_PATH } from "../../domain/paths.ts";
import { systemErrorField } from "../../runtime/system-error.ts";
import type { CertificateDates } from "../../domain/certificate-validity.ts";
import { type Context, defineCommand, Failure } from "../command.ts";

const OPTIONS = {
  env: SETTINGS.env,
  "env-file": SETTINGS["env-file"],
  data: SETTINGS.data,
  host: SETTINGS.host,
  port: SETTINGS.port,
  "tls-cert": SETTINGS["tls-cert"],
} as const;

export const health = defineCommand({
  name: "health",
  summary: "Ask the server on this machine whether it serves",
  description:
    "Requests /healthz of a server: with --port, the one on that port; without, the one that started last with the data directory. The exit status is 0 if it serves, and 1 if it does not respond, is about to stop, or has a certificate that is not valid now. It is for health checks of containers, which have no other program.",
  data: "locates",
  options: OPTIONS,
  examples: ["petstore health", "petstore health --data /var/lib/petstore", "petstore health --port 9000"],
  async run({ values }, { clock, warn }) {
    const url = originIn(values) + HEALTH_PATH;
    const problem = await problemOf(url);
    if (problem !== undefined) throw new Failure(`the server at ${url} ${problem}`);
    if (new URL(url).protocol === "https:") await checkCertificate(url, { now: clock.now(), warn });
    return `The server at ${url} serves.\n`;
  },
});

interface CheckOptions extends Pick<Context, "warn"> {
  readonly now: number;
}

/** Throws if clients reject the certificate now. Whether they trust its authority depends on them. */
async function checkCertificate(url: string, { now, warn }: CheckOptions): Promise<void> {
  const dates = await certificateDatesOf(url).catch(() => undefined);
  if (dates === undefined) return;
  const { validityProblem } = await import("../../doctor/certificate.ts");
  const problem = validityProblem(dates, now);
  if (problem === undefined) return;
  const { level, message, remedy } = problem;
  const text = `${message}; ${remedy}`;
  if (level === "error") throw new Failure(`the server at ${url}: ${text}`);
  warn(text);
}

/** The dates of the certificate that a new connection gets. */
function certificateDatesOf(url: string): Promise<CertificateDates> {
  // It is loaded when it is used, because that takes 10 ms.
  const { connect } = process.getBuiltinModule("node:tls");
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const socket = connect({ host, port: Number(port || 443), rejectUnauthorized: false, timeout: TIMEOUT_MS });
  const dates = new Promise<CertificateDates>((resolve, reject) => {
    socket.once("secureConnect", () => {
      const { valid_from: validFrom, valid_to: validTo } = socket.getPeerCertificate();
      resolve({ validFrom, validTo });
    });
    socket.once("timeout", () => reject(new Error("no handshake in time")));
    socket.once("error", reject);
  });
  return dates.finally(() => socket.destroy());
}

/** The origin of the server. Without a port, it is in the data directory. */
function originIn(values: ValuesOf<typeof OPTIONS>): string {
  const { env: environment, data: path, host, port, "tls-cert": certificate } = values;
  const saved =
    port === undefined ? readSaved(new DataDirectory({ path, environment }).files.url) : undefined;
  return (
    saved ?? originOf({ host, port: port ?? DEFAULT_PORT[environment], isTls: certificate !== undefined })
  );
}

/** Undefined if no server runs there, or if this user may not read it. */
function readSaved(file: string): string | undefined {
  try {
    return readOwnFile(file)?.trim();
  } catch {
    return undefined;
  }
}

/** Why the server does not serve; undefined if it does. */
async function problemOf(url: string): Promise<string | undefined> {
  try {
    const status = await statusOf(url);
    return status === 200 ? undefined : `responds with ${status}; it is about to stop`;
  } catch (error) {
    return `does not respond (${systemErrorField(error, "code")})`;
  }
}

const TIMEOUT_MS = 2_000;
/** A server responds with a line. */
const MAX_BYTES = 16 * 1_024;

export async function statusOf(url: string): Promise<number | undefined> {
  const { sendRequest, UNVERIFIED_TLS } = await import("../../runtime/outgoing-request.ts");
  const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES };
  return (await sendRequest(url, { ...bounds, tls: UNVERIFIED_TLS, isDirect: true })).status;
}
