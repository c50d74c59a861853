/* Who is signed in with this browser, and what their role allows. */

import { parseJson, toJson } from "../api/json.ts";
import { leastRoleOf, mayCall } from "../domain/operators.ts";
import { readResponse } from "../operator/calls.ts";
import type { PageName } from "../operator/console/pages.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperationId,
  type BodyOf,
  type Session,
} from "../operator/operations.ts";
import { readStored, writeStored } from "../pages/storage.ts";
import { call, storeSecret } from "./admin-api.ts";
import { consoleState, updateState } from "./state.ts";
import { keepUnchanged } from "./unchanged.ts";

/** The operator who has signed in with this browser; undefined if somebody signs in meanwhile. */
export async function loadSession(): Promise<Session | undefined> {
  const before = consoleState.isSignedIn;
  const session = await call("getSession");
  return consoleState.isSignedIn === before ? session : undefined;
}

/** An operator who signs in while a session is loaded stays signed in. */
export function setSession(session: Session | undefined): void {
  if (session === undefined) return;
  const { operator, provider } = session;
  updateState({
    isSignedIn: operator !== undefined,
    provider,
    ...(operator && { operator: keepUnchanged(consoleState.operator, operator) }),
  });
}

/** Whether the operator's role allows an operation: what it does not allow is not shown. */
export function may(operationId: AdminOperationId): boolean {
  const role = consoleState.operator?.role;
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

export async function signIn(body: BodyOf<"createSession">): Promise<void> {
  const { secret, ...session } = await call("createSession", { body });
  storeSecret(secret);
  setSession(session);
}

/** Signs in with the code of a link. Whoever is signed in is asked first: it may be the link of somebody else. */
export async function openLink(code: string): Promise<void> {
  const session = await loadSession();
  if (session?.operator === undefined) return signIn({ code });
  updateState({ linkCode: code });
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
