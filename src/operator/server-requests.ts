import { hostname, networkInterfaces } from "node:os";
import { checkServerIdentity, rootCertificates } from "node:tls";
import { encodeCursor } from "../api/cursor.ts";
import { parseJson } from "../api/json.ts";
import { Invalid } from "../api/schema.ts";
import { isLoopback } from "../config/network.ts";
import type { Clock } from "../domain/ports.ts";
import type { ServerState } from "../domain/servers.ts";
import { adminRequestOf, type ReadResponse, readResponse, unexpectedResponse } from "./calls.ts";
import { getText, type TlsOptions, UNVERIFIED } from "./get-text.ts";
import { ADMIN_OPERATIONS, type QueryOf } from "./operations.ts";
import { newNonce, type ServerSecret } from "./server-secret.ts";

/** Requests from one server, or from a command on its machine, to another server. */

/** Of a listener on all addresses, an address by which other machines reach it. */
export function machineAddress(host: string): string {
  if (host !== "0.0.0.0" && host !== "::") return host;
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ internal, family }) => !internal && family === "IPv4")?.address ?? host;
}

/** Servers have the certificate of the name that clients use, and are asked by their addresses. */
export function peerTlsOf(publicUrl: string, ownCertificate: string | undefined): TlsOptions {
  const { hostname: name } = new URL(publicUrl);
  return {
    ca: ownCertificate === undefined ? [...rootCertificates] : [...rootCertificates, ownCertificate],
    checkServerIdentity: (_address, certificate) => checkServerIdentity(name, certificate),
  };
}

interface AskOptions {
  readonly secret: ServerSecret;
  readonly clock: Pick<Clock, "now">;
  readonly tls: TlsOptions;
}

/** Asks another server for its requests. Resolves with the reason if that is not possible. */
export async function askForRequests(
  { adminUrl, name, version }: Pick<ServerState, "adminUrl" | "name"> & Partial<ServerState>,
  { cursor: read, ...conditions }: QueryOf<"listRequests">,
  { secret, clock, tls }: AskOptions,
): Promise<ReadResponse<"listRequests"> | string> {
  if (adminUrl === undefined) return "it has no listener for operators: --admin-address is off";
  if (isLoopback(new URL(adminUrl).hostname) && name !== hostname())
    return `its listener for operators, ${adminUrl}, can be reached on its own machine only: set --admin-address`;
  const cursor = read === undefined ? read : encodeCursor("requests", read);
  const { method, target } = adminRequestOf("listRequests", { query: { ...conditions, cursor } });
  const { origin: to } = new URL(adminUrl);
  const Authorization = secret.authorizationOf({ to, method, target, at: clock.now() });
  try {
    const { status, text } = await getText(adminUrl + target, { headers: { Authorization }, tls });
    if (status !== 200) return `${adminUrl} responds ${status}`;
    return readResponse("listRequests", parseJson(text)) ?? unexpectedResponse(adminUrl, version);
  } catch (error) {
    const code = error instanceof Error ? Reflect.get(error, "code") : undefined;
    const reason = typeof code === "string" && code !== "ABORT_ERR" ? code : String(error);
    return `${adminUrl} does not respond (${/abort|timed? ?out/i.test(reason) ? "timeout" : reason})`;
  }
}

/** Whether a server of this database listens there. Another program may have taken the port of one that was killed. */
export async function isProven(url: string, secret: ServerSecret): Promise<boolean> {
  const nonce = newNonce();
  const { target } = adminRequestOf("proveServer", { query: { nonce } });
  const { text } = await getText(url + target, { tls: UNVERIFIED });
  const read = ADMIN_OPERATIONS.proveServer.success.body.read(parseJson(text));
  return !(read instanceof Invalid) && secret.isProof(read.proof, nonce, url);
}
