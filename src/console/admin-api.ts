import { type Identifier, parseJson, toJson } from "../api/json.ts";
import { Invalid } from "../api/schema.ts";
import {
  ADMIN_BASE_PATH,
  ADMIN_OPERATIONS,
  type AdminOperation,
  type AdminOperationId,
  type BodyOf,
  type ResponseOf,
} from "../operator/operations.ts";
import { createObservable } from "./observable.ts";

export type {
  AdminOrder,
  AuditEntry,
  Fleet,
  Key,
  Overview,
  Server,
  Setting,
} from "../operator/operations.ts";
export type { Pet } from "../domain/resources.ts";

/** No response: the server stopped, or the network is gone. */
export class ServerUnreachable extends Error {
  override readonly name = "ServerUnreachable";
}

/** Whether this browser has a session; undefined until the server has said so. */
export const isSignedIn = createObservable<boolean | undefined>(undefined);

type Operations = typeof ADMIN_OPERATIONS;
type ParameterName<Id extends AdminOperationId> = Operations[Id] extends { query: infer Q } ? keyof Q : never;

interface CallOptions<Id extends AdminOperationId> {
  readonly id?: Identifier | string;
  /** What is undefined or empty is left out. */
  readonly query?: { readonly [K in ParameterName<Id>]?: string | number | undefined };
  readonly body?: BodyOf<Id>;
}

const TIMEOUT_MS = 15_000;

/** Calls an operation of the admin API. The message of an error is for people. */
export async function call<Id extends AdminOperationId>(
  operationId: Id,
  { id, query, body }: CallOptions<Id> = {},
): Promise<ResponseOf<Id>> {
  const operation: AdminOperation = ADMIN_OPERATIONS[operationId];
  const path = operation.path.replace(/\{\w+\}/, encodeURIComponent(String(id)));
  const text = await responseText(ADMIN_BASE_PATH + path + queryText(query ?? {}), {
    method: operation.method,
    cache: "no-store",
    signal: AbortSignal.timeout(TIMEOUT_MS),
    ...(body !== undefined && { headers: { "Content-Type": "application/json" }, body: toJson(body) }),
  });
  const result = operation.success.body?.read(parseJson(text));
  // The console of one release may be open while the server of the next one starts.
  if (result instanceof Invalid)
    throw new Error("The server sent something that this page does not know. Reload it.");
  // The schema of the operation has read it.
  return result as ResponseOf<Id>;
}

async function responseText(url: string, init: RequestInit): Promise<string> {
  const response = await fetch(url, init).catch(unreachable);
  const text = await response.text().catch(unreachable);
  if (response.ok) return text;
  if (response.status === 401 && isSignedIn.value === true) isSignedIn.set(false);
  throw errorOf(response.status, text);
}

function unreachable(cause: unknown): never {
  throw new ServerUnreachable("The server does not respond.", { cause });
}

function errorOf(status: number, text: string): Error {
  const body = parseJson(text);
  if (typeof body === "object" && body !== null && "code" in body && "message" in body)
    return new Error(String(body.message));
  // A proxy in front of a server that is gone.
  return new (status >= 502 ? ServerUnreachable : Error)(`The server responds ${status}.`);
}

function queryText(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  return query.size === 0 ? "" : `?${query}`;
}

export async function signIn(token: string): Promise<void> {
  const { signedIn } = await call("createSession", { body: { token: token.trim() } });
  isSignedIn.set(signedIn);
}

export async function signOut(): Promise<void> {
  await call("deleteSession");
  isSignedIn.set(false);
}

/** Asks whether this browser has a session. */
export async function findSession(): Promise<void> {
  const { signedIn } = await call("getSession");
  isSignedIn.set(signedIn);
}
