import { parseJson, toJson } from "../api/json.ts";
import { leastRoleOf, mayCall } from "../domain/operators.ts";
import type { PageName } from "../operator/console/pages.ts";
import {
  adminRequestOf,
  type CallInput,
  rateWaitMs,
  readRejection,
  readResponse,
} from "../operator/calls.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperation,
  type AdminOperationId,
  type BodyOf,
  type ResponseOf,
  SESSION_HEADER,
  type Session,
} from "../operator/operations.ts";
import { current, update } from "./state.ts";
import { readStored, writeStored } from "../pages/storage.ts";
import { keepUnchanged } from "./unchanged.ts";

export type * from "../operator/calls.ts";
export type * from "../operator/operations.ts";
export type { Pet } from "../domain/resources.ts";

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

/** The operator who has signed in with this browser; undefined if somebody signs in meanwhile. */
export async function loadSession(): Promise<Session | undefined> {
  const before = current.isSignedIn;
  const session = await call("getSession");
  return current.isSignedIn === before ? session : undefined;
}

/** One who signs in while a session is loaded stays signed in. */
export function setSession(session: Session | undefined): void {
  if (session === undefined) return;
  const { operator, provider } = session;
  update({
    isSignedIn: operator !== undefined,
    provider,
    ...(operator && { operator: keepUnchanged(current.operator, operator) }),
  });
}

/** Whether the operator's role allows an operation: what it does not allow is not shown. */
export function may(operationId: AdminOperationId): boolean {
  const role = current.operator?.role;
  return role !== undefined && mayCall(role, leastRoleOf(ADMIN_OPERATIONS[operationId]));
}

/** Pages that are there to do something. */
const NEEDED: Readonly<Partial<Record<PageName, AdminOperationId>>> = {
  "Create a key": "createKey",
  "Edit a key": "updateKey",
  "Add a pet": "createPet",
};

export function mayOpen(page: PageName): boolean {
  const needed = NEEDED[page];
  return needed === undefined || may(needed);
}

/**
 * The secret of the session, which only pages of this origin can read; the cookie goes to every port of the host. All
 * tabs have it.
 */
const SECRET = "petstore-session";
/** The secret where the browser forbids storage. */
let secretOfTab: string | null = null;

const storedSecret = (): string | null => readStored("localStorage", SECRET) ?? secretOfTab;

function storeSecret(secret: string | null): void {
  secretOfTab = writeStored("localStorage", SECRET, secret) ? null : secret;
}

const TIMEOUT_MS = 15_000;

/** Calls an operation of the admin API. The message of an error is for people. */
export async function call<Id extends AdminOperationId>(
  operationId: Id,
  input: CallInput<Id> = {},
): Promise<ResponseOf<Id>> {
  const operation: AdminOperation = ADMIN_OPERATIONS[operationId];
  // The pages stay, with what was typed into them, until somebody signs in again.
  if (current.isSignedIn === false && !operation.needsNoToken) throw new Error("Sign in again.");
  const { target, headers, ...request } = adminRequestOf(operationId, input);
  const secret = storedSecret();
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
  if (unreadable !== (current.unreadable[operationId] ?? 0))
    update({ unreadable: { ...current.unreadable, [operationId]: unreadable } });
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
  if (response.status === 401 && current.isSignedIn) update({ isSignedIn: false });
  throw errorOf(response.status, text);
}

function unreachable(cause: unknown): never {
  throw new ServerUnreachable("The server does not respond.", { cause });
}

const MESSAGES_FOR_PEOPLE: ReadonlyMap<string, string> = new Map([
  ["internal_error", "The server failed, and has logged why. Try again."],
  ["unavailable", "The database does not respond. Try again in a moment."],
  ["not_signed_in", "Your session has ended. Sign in again."],
]);

function errorOf(status: number, text: string): Error {
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

export async function signIn(body: BodyOf<"createSession">): Promise<void> {
  const { secret, ...session } = await call("createSession", { body });
  storeSecret(secret);
  setSession(session);
}

/** What the tab keeps while the browser is with the provider: what the server began, and the page to return to. */
const BEGUN_SIGN_IN = "petstore-sign-in";
const RETURN_TO = "petstore-return-to";

/** Sends the browser to the provider. */
export async function goToProvider(): Promise<void> {
  const begun = await call("beginSignIn");
  const isKept =
    writeStored("sessionStorage", BEGUN_SIGN_IN, toJson(begun)) &&
    writeStored("sessionStorage", RETURN_TO, location.pathname + location.search);
  if (!isKept) throw new Error("The browser forbids this page to store what the sign-in needs.");
  location.assign(begun.url);
}

/** Signs in with the response of the provider. One that this tab did not ask for may be that of somebody else. */
export async function returnFromProvider(response: URLSearchParams): Promise<void> {
  const begun = readResponse(
    "beginSignIn",
    parseJson(readStored("sessionStorage", BEGUN_SIGN_IN) ?? ""),
  )?.body;
  writeStored("sessionStorage", BEGUN_SIGN_IN, null);
  if (begun === undefined || begun.state !== response.get("state"))
    throw new Error("This tab did not begin this sign-in. Sign in again.");
  const { state, nonce, codeVerifier } = begun;
  await signIn({ provider: { response: `${response}`, state, nonce, codeVerifier } });
}

/** The page that was left for the provider. */
export function takeReturnUrl(): string {
  const url = readStored("sessionStorage", RETURN_TO) ?? "/";
  writeStored("sessionStorage", RETURN_TO, null);
  return url;
}

/** Deletes the secret even if the server does not respond: without it, nobody can use the session. */
export async function signOut(): Promise<void> {
  await call("deleteSession").finally(() => storeSecret(null));
  location.reload();
}

/** Ends all sessions of the operator, that of this browser too. */
export async function signOutEverywhere(): Promise<undefined> {
  await call("deleteSessions");
  storeSecret(null);
  location.reload();
}

export async function findSession(): Promise<void> {
  setSession(await loadSession());
}
