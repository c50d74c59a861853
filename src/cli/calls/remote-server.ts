import { isLoopback } from "../../runtime/ip-network.ts";
import type { ValuesOf } from "../../config/parse-options.ts";
import { UsageError } from "../../config/usage-error.ts";
import { Rejection } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import { parseJson } from "../../api/json.ts";
import {
  adminRequestOf,
  type CallInput,
  MAX_RATE_WAIT_MS,
  rateWaitMs,
  readRejection,
  readResponse,
  unexpectedResponse,
} from "../../operator/calls.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperation,
  type AdminOperationId,
  type ResponseOf,
} from "../../operator/operations.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import {
  OutgoingError,
  type OutgoingRequest,
  sendRequest,
  trustProblem,
} from "../../runtime/outgoing-request.ts";
import { Failure } from "../command.ts";
import {
  type CallCommandLine,
  type OnUnreadable,
  type OpenedOperations,
  type PLAIN_HTTP_OPTION,
  RejectedCall,
  UnansweredCall,
} from "./call.ts";

/** Opens the operations of a remote server. */
export async function openRemoteServer(
  server: string,
  { values, source }: CallCommandLine,
  onUnreadable: OnUnreadable,
): Promise<OpenedOperations> {
  const { "admin-token": token, env } = values;
  rejectPlainHttp(server, values);
  if (token === undefined)
    throw new UsageError(
      `${server} needs a token: run petstore login ${server}, or set PETSTORE_TOKEN or --admin-token-file`,
    );
  const remote = { server, token, onUnreadable };
  const given = source("env");
  const { environment = env } = given ? await callServer(remote, "getSession") : {};
  if (given && environment !== env)
    throw new Failure(`${given.name} is ${env}, and ${server} is ${environment}; nothing was changed`);
  return {
    call: async (id, input) => callServer(remote, id, input),
    savedUrl: async () => (await callServer(remote, "getServer")).publicUrl,
    async [Symbol.asyncDispose]() {},
  };
}

/** kubectl sends no token over plain HTTP either, and gh has HTTPS only. */
export function rejectPlainHttp(server: string, values: ValuesOf<typeof PLAIN_HTTP_OPTION>): void {
  const url = new URL(server);
  if (values["plain-http"] || url.protocol !== "http:" || isLoopback(url.hostname)) return;
  throw new UsageError(
    `${server} has no TLS, and everybody on the way could read the token; use https://, or --plain-http in a network that you trust`,
  );
}

/** A remote server, and the token with which it is called. */
export interface RemoteServer {
  readonly server: string;
  readonly token: string;
  readonly onUnreadable?: OnUnreadable;
}

/** Calls an operation of a remote server. Throws RejectedCall if it is rejected or does not arrive. */
export async function callServer<Id extends AdminOperationId>(
  { server, token, onUnreadable }: RemoteServer,
  id: Id,
  input: CallInput = {},
): Promise<ResponseOf<Id>> {
  const { target, headers, ...request } = adminRequestOf(id, input);
  const { status, text } = await sendWithinRate(server + target, {
    ...request,
    headers: { Authorization: `Bearer ${token}`, ...headers },
  });
  const json = text === "" ? undefined : parseJson(text);
  const { body }: AdminOperation["success"] = ADMIN_OPERATIONS[id].success;
  if (status >= 300 && status < 500) throw new RejectedCall(rejectionIn(json, status, server));
  if (status >= 500 || (body && json === undefined))
    throw new UnansweredCall(rejectionIn(json, status, server));
  const response = readResponse(id, json);
  if (response === undefined) {
    const message = unexpectedResponse(server, await versionOf({ server, token }));
    throw new UnansweredCall(new Rejection("unexpected", message));
  }
  if (response.unreadable > 0) onUnreadable?.(response.unreadable);
  return response.body;
}

/** The version of the server; undefined if the server does not say it. */
async function versionOf({ server, token }: RemoteServer): Promise<string | undefined> {
  const { target } = adminRequestOf("getSession", {});
  const headers = { Authorization: `Bearer ${token}` };
  const { text } = await sendWithinRate(server + target, { headers }).catch(() => ({ text: "" }));
  const { version }: { version?: unknown } = Object(parseJson(text));
  return typeof version === "string" ? version : undefined;
}

const TIMEOUT_MS = 30_000;

/** The longest response. A page of 500 keys or audit entries, with the longest values, has some megabytes. */
const MAX_BYTES = 32 * 1_024 * 1_024;

/** The request was not sent. */
const NOT_CONNECTED =
  /^(?:ConnectionRefused|ECONNREFUSED|FailedToOpenSocket|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH)$/;

type Sent = Pick<OutgoingRequest, "method" | "headers" | "body">;

/**
 * Sends a request. If it exceeds the rate of the operator, it is sent again as soon as the server allows. Other
 * programs may use the rate, too.
 */
async function sendWithinRate(url: string, request: Sent) {
  const endsAt = scheduler.now() + MAX_RATE_WAIT_MS;
  for (;;) {
    const received = await send(url, request);
    const waitMs = rateWaitMs(received);
    if (waitMs === undefined || scheduler.now() + waitMs > endsAt) return received;
    await scheduler.sleep(waitMs);
  }
}

async function send(url: string, request: Sent) {
  const { origin, protocol } = new URL(url);
  const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES };
  try {
    // A proxy could read the token of plain HTTP.
    return await sendRequest(url, { ...request, ...bounds, isDirect: protocol === "http:" });
  } catch (error) {
    const problem = trustProblem(error);
    const reason = messageOf(error);
    const message = problem ? `is not trusted: ${problem}` : `does not respond (${reason})`;
    const Call =
      problem || NOT_CONNECTED.test(error instanceof OutgoingError ? error.code : "")
        ? RejectedCall
        : UnansweredCall;
    throw new Call(new Rejection("unreachable", `${origin} ${message}`));
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
