/* Requests from one server, or from a command on its machine, to another server. */

import { hostname, networkInterfaces } from "node:os";
import { checkServerIdentity, rootCertificates } from "node:tls";
import { encodeCursor } from "../domain/cursor.ts";
import { parseJson } from "../api/json.ts";
import { Invalid } from "../api/schema.ts";
import { isLoopback } from "../config/network.ts";
import type { Clock } from "../domain/ports.ts";
import type { ServerState } from "../domain/servers.ts";
import { OutgoingError, sendRequest, type TlsOptions, UNVERIFIED_TLS } from "../runtime/outgoing-request.ts";
import {
  adminRequestOf,
  type AnyCallInput,
  type ReadResponse,
  readRejection,
  readResponse,
  unexpectedResponse,
} from "./calls.ts";
import { ADMIN_OPERATIONS, type QueryOf, type ServerOperationId } from "./operations.ts";
import { newNonce, type ServerSecret, SIGNATURE_HEADER } from "./server-secret.ts";

/** The address of a listener for other machines. If it listens on all addresses, one of them is chosen. */
export function machineAddress(host: string): string {
  if (host !== "0.0.0.0" && host !== "::") return host;
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ internal, family }) => !internal && family === "IPv4")?.address ?? host;
}

/**
 * The TLS options for requests between servers. Their certificates are for the name that clients use, but servers reach
 * one another by address.
 */
export function peerTlsOf(publicUrl: string, ownCertificate: string | undefined): TlsOptions {
  const { hostname: name } = new URL(publicUrl);
  return {
    ca: ownCertificate === undefined ? [...rootCertificates] : [...rootCertificates, ownCertificate],
    checkServerIdentity: (_address, certificate) => checkServerIdentity(name, certificate),
  };
}

/** Why a server in the register is not asked; undefined if it is asked. */
export function reasonNotToAsk(
  server: ServerState,
  { secret, hasTls }: { readonly secret: ServerSecret; readonly hasTls: boolean },
): string | undefined {
  const { adminUrl, name } = server;
  if (adminUrl === null) return "it has no listener for operators: --admin-address is off";
  if (adminUrl === undefined)
    return `it does not report where it listens for operators: it has just started, or is of release ${LAST_UNSIGNED} with --admin-address off`;
  if (!secret.isSigned(server))
    return `its entry in Valkey has no valid signature: it is of release ${LAST_UNSIGNED} or earlier, its clock is wrong, or it is not a server of this database`;
  const { protocol, hostname: host } = new URL(adminUrl);
  if (isLoopback(host)) {
    if (name === hostname()) return undefined;
    return `its listener for operators, ${adminUrl}, can be reached on its own machine only: set --admin-address`;
  }
  return hasTls && protocol === "http:" ? `its listener for operators, ${adminUrl}, has no TLS` : undefined;
}

/**
 * The last release whose servers announced their listeners without a signature, and announced nothing if they had none.
 */
const LAST_UNSIGNED = "1.1.0";

interface AskOptions {
  readonly secret: ServerSecret;
  readonly clock: Pick<Clock, "now">;
  readonly tls: TlsOptions;
  readonly timeoutMs?: number;
}

/** The longest response. A page of 500 requests has about 200 KB, and at most 600 KB. */
const MAX_BYTES = 1_024 * 1_024;
/** How long a server waits for another one. */
const SERVER_TIMEOUT_MS = 2_000;
/** How long a command waits for a server, which may wait for another server or for the receiver of a webhook. */
export const ASK_TIMEOUT_MS = 15_000;

type AskedServer = Pick<ServerState, "adminUrl"> & Partial<ServerState>;

/** Asks another server for its requests. Resolves to the reason if that is impossible. */
export function askForRequests(
  server: AskedServer,
  { cursor: read, ...conditions }: QueryOf<"listRequests">,
  options: AskOptions,
): Promise<ReadResponse<"listRequests"> | string> {
  const cursor = read === undefined ? read : encodeCursor("requests", read);
  return askServer(server, "listRequests", { ...options, query: { ...conditions, cursor } });
}

/** Asks a server for what only a server can execute. Resolves to the reason if that is impossible. */
export async function askServer<Id extends ServerOperationId>(
  { adminUrl, version }: AskedServer,
  id: Id,
  options: AskOptions & Omit<AnyCallInput, "body">,
): Promise<ReadResponse<Id> | string> {
  const { secret, clock, tls, timeoutMs = SERVER_TIMEOUT_MS, ...input } = options;
  const { method, target } = adminRequestOf(id, input);
  const { origin: to } = new URL(adminUrl ?? "");
  const Authorization = secret.authorizationOf({ to, method, target, at: clock.now() });
  try {
    const { status, headers, text } = await sendRequest(to + target, {
      method,
      headers: { Authorization },
      tls,
      timeoutMs,
      maxBytes: MAX_BYTES,
      isDirect: true,
    });
    const rejection = status === 409 ? readRejection(parseJson(text)) : undefined;
    if (status !== 200) return rejection?.message ?? `${adminUrl} responds ${status}`;
    if (!secret.isResponse(headers.get(SIGNATURE_HEADER) ?? "", Authorization, text))
      return `${adminUrl} does not sign its response: it is of release ${LAST_UNSIGNED} or earlier, or not a server of this database`;
    return readResponse(id, parseJson(text)) ?? unexpectedResponse(to, version);
  } catch (error) {
    const isTimeout = error instanceof OutgoingError && error.code === "timeout";
    const reason = error instanceof Error ? error.message : String(error);
    return `${adminUrl} does not respond (${isTimeout ? "timeout" : reason})`;
  }
}

/**
 * Whether a server of this database listens at a URL. Another program may have taken the port of a server that was
 * killed.
 */
export async function isServerOfDatabase(
  server: { readonly adminUrl: string; readonly name: string },
  secret: ServerSecret,
): Promise<boolean> {
  const nonce = newNonce();
  const { target } = adminRequestOf("proveServer", { query: { nonce } });
  const { text } = await sendRequest(server.adminUrl + target, {
    tls: UNVERIFIED_TLS,
    timeoutMs: SERVER_TIMEOUT_MS,
    maxBytes: MAX_BYTES,
    isDirect: true,
  });
  const read = ADMIN_OPERATIONS.proveServer.success.body.read(parseJson(text));
  return !(read instanceof Invalid) && secret.isProof(read.proof, nonce, server);
}
