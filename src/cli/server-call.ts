import { printable } from "../text/formatting.ts";
import { Rejection } from "../api/errors.ts";
import { parseJson } from "../api/json.ts";
import {
  adminRequestOf,
  type AnyCallInput,
  readRejection,
  readResponse,
  unexpectedResponse,
} from "../operator/calls.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperation,
  type AdminOperationId,
  type ResponseOf,
} from "../operator/operations.ts";
import { systemErrorField } from "./arguments.ts";
import { Failure } from "./command.ts";

/** The call was understood and rejected. The message is that of the operation. */
export class RejectedCall extends Failure {
  constructor(readonly rejection: Rejection) {
    super(printable(rejection.message));
  }
}

/** A remote server, and the token with which it is called. */
export interface RemoteServer {
  readonly server: string;
  readonly token: string;
  /** Called with the number of rows that this release cannot read. */
  readonly onUnreadable?: (rows: number) => void;
}

/** Calls an operation of a remote server. Throws RejectedCall if it is rejected or does not arrive. */
export async function callServer<Id extends AdminOperationId>(
  { server, token, onUnreadable }: RemoteServer,
  id: Id,
  input: AnyCallInput = {},
): Promise<ResponseOf<Id>> {
  const { target, headers, ...request } = adminRequestOf(id, input);
  const { status, text } = await send(server + target, {
    ...request,
    headers: { Authorization: `Bearer ${token}`, ...headers },
  });
  const json = text === "" ? undefined : parseJson(text);
  const { body }: AdminOperation["success"] = ADMIN_OPERATIONS[id].success;
  if (status >= 300 || (body && json === undefined))
    throw new RejectedCall(rejectionIn(json, status, server));
  const response = readResponse(id, json);
  if (response === undefined)
    throw new Failure(unexpectedResponse(server, await versionOf({ server, token })));
  if (response.unreadable > 0) onUnreadable?.(response.unreadable);
  return response.body;
}

/** The version of the server; undefined if the server does not say it. */
async function versionOf({ server, token }: RemoteServer): Promise<string | undefined> {
  const { target } = adminRequestOf("getSession", {});
  const headers = { Authorization: `Bearer ${token}` };
  const { text } = await send(server + target, { headers }).catch(() => ({ text: "" }));
  const { version }: { version?: unknown } = Object(parseJson(text));
  return typeof version === "string" ? version : undefined;
}

const TIMEOUT_MS = 30_000;

const UNTRUSTED =
  "its certificate is not from an authority that this machine trusts; name the file of its authority in NODE_EXTRA_CA_CERTS";
const TLS_PROBLEMS: Readonly<Record<string, string>> = {
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  CERT_HAS_EXPIRED: "its certificate has expired; renew it there, or check the clock of this machine",
  CERT_NOT_YET_VALID: "its certificate is not valid yet; check the clock of this machine",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host name; use the name that it is for",
  EPROTO: "it does not use TLS on this port",
};

async function send(url: string, init: RequestInit): Promise<{ status: number; text: string }> {
  const { origin, protocol } = new URL(url);
  try {
    const response = await fetch(url, {
      ...init,
      redirect: "manual",
      // A proxy could read the token.
      proxy: protocol === "http:" ? false : undefined,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      // The certificate is verified also if NODE_TLS_REJECT_UNAUTHORIZED turns that off.
      tls: { rejectUnauthorized: true },
    });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    const code = systemErrorField(error, "code") ?? "";
    const reason = code || (error instanceof Error ? error.message : String(error));
    const problem = TLS_PROBLEMS[code];
    const message = problem ? `is not trusted: ${problem}` : `does not respond (${reason})`;
    throw new RejectedCall(new Rejection("unreachable", `${origin} ${message}`));
  }
}

function rejectionIn(json: unknown, status: number, server: string): Rejection {
  const rejection = readRejection(json);
  if (rejection !== undefined && rejection.code !== "not_found") return rejection;
  return new Rejection(
    "unknown",
    `${server} responds ${status}: it is no listener for operators, or one of an earlier release`,
  );
}
