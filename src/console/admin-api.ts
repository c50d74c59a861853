import { messageOf } from "../runtime/message-of.ts";
import { parseJson } from "../api/json.ts";
import {
  adminRequestOf,
  type CallInputOf,
  rateWaitMs,
  readRejection,
  readResponse,
} from "../operator/calls.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperation,
  type AdminOperationId,
  type ResponseOf,
  SESSION_HEADER,
} from "../operator/operations.ts";
import { consoleState, updateState } from "./state.ts";
import { readStored, writeStored } from "../pages/storage.ts";

export type * from "../operator/calls.ts";
export type * from "../operator/operations.ts";
export type { Pet } from "../domain/pets-and-orders.ts";

/** No response: the server stopped, or the network is gone. */
export class ServerUnreachable extends Error {
  override readonly name = "ServerUnreachable";
}

/** The server rejected the request; the message is for people. `field` has the value that is not accepted. */
export class RejectedRequest extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly field?: string,
  ) {
    super(message);
  }
}

/** What was thrown, with a message for people. */
export const errorOf = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(messageOf(thrown));

/**
 * The secret of the session, which only pages of this origin can read; the cookie goes to every port of the host. All
 * tabs have it.
 */
const SECRET = "petstore-session";
/** The secret where the browser forbids storage. */
let secretOfTab: string | null = null;

const storedSecret = (): string | null => readStored("localStorage", SECRET) ?? secretOfTab;

export function storeSecret(secret: string | null): void {
  secretOfTab = writeStored("localStorage", SECRET, secret) ? null : secret;
}

const TIMEOUT_MS = 15_000;

/** Calls an operation of the admin API. The message of an error is for people. */
export async function call<Id extends AdminOperationId>(
  operationId: Id,
  input: CallInputOf<Id> = {},
): Promise<ResponseOf<Id>> {
  const operation: AdminOperation = ADMIN_OPERATIONS[operationId];
  // The pages stay, with what was typed into them, until somebody signs in again.
  if (consoleState.isSignedIn === false && !operation.needsNoToken) throw new Error("Sign in again.");
  const { target, headers, ...request } = adminRequestOf(operationId, input);
  const secret = storedSecret();
  const { path } = consoleState;
  const text = await responseText(target, {
    ...request,
    cache: "no-store",
    signal: AbortSignal.timeout(TIMEOUT_MS),
    headers: { ...(secret !== null && { [SESSION_HEADER]: secret }), ...headers },
  });
  const response = readResponse(operationId, parseJson(text));
  // The console of one release may be open while the server of the next one starts.
  if (response === undefined)
    throw new Error("The server sent something that this page does not know. Reload it.");
  const { body, unreadable } = response;
  // A response for the page before says nothing about this one.
  if (path === consoleState.path && unreadable !== (consoleState.unreadable[operationId] ?? 0))
    updateState({ unreadable: { ...consoleState.unreadable, [operationId]: unreadable } });
  return body;
}

async function responseText(url: string, init: RequestInit): Promise<string> {
  const response = await fetch(url, init).catch(unreachable);
  const text = await response.text().catch(unreachable);
  if (response.ok) return text;
  const waitMs = rateWaitMs({ status: response.status, headers: response.headers, text });
  if (waitMs !== undefined) {
    // Nothing was done. Programs with the token of the same operator may use up the rate; the timeout ends the tries.
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (!init.signal?.aborted) return responseText(url, init);
  }
  if (response.status === 401 && consoleState.isSignedIn) updateState({ isSignedIn: false });
  throw rejectionOf(response.status, text);
}

function unreachable(cause: unknown): never {
  throw new ServerUnreachable("The server does not respond.", { cause });
}

const MESSAGES_FOR_PEOPLE: ReadonlyMap<string, string> = new Map([
  ["internal_error", "The server failed, and has logged why. Try again."],
  ["unavailable", "The database does not respond. Try again in a moment."],
  ["not_signed_in", "Your session has ended. Sign in again."],
]);

function rejectionOf(status: number, text: string): Error {
  const rejection = readRejection(parseJson(text));
  // A proxy responds so if the server behind it is gone.
  if (rejection === undefined)
    return new (status >= 502 ? ServerUnreachable : Error)(`The server responds ${status}.`);
  const { code, message, problems } = rejection;
  const messageForPeople = MESSAGES_FOR_PEOPLE.get(code);
  const [problem] = problems;
  const field = problem?.path.findLast((key) => typeof key === "string");
  return messageForPeople === undefined && field !== undefined
    ? new RejectedRequest(`It ${problem?.message}.`, status, field)
    : new RejectedRequest(messageForPeople ?? message, status);
}
