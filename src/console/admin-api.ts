import type { AdminOperation } from "../operator/contract/operation.ts";
import { ADMIN_BASE_PATH } from "../operator/contract/operation.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperationId,
  type BodyOf,
  type ResponseOf,
} from "../operator/operations.ts";
import { type Identifier, toJson } from "../api/json.ts";
import { Invalid } from "../api/schema.ts";
import { parseExactJson } from "./exact-json.ts";
import { createObservable } from "./observable.ts";

export type { AdminOrder, AuditEntry, Key, Overview, Server, Setting } from "../operator/operations.ts";
export type { Pet } from "../domain/resources.ts";

/** The server responded with an error. The message is for people. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** No response: the server stopped, or the network is gone. */
export class ServerUnreachable extends Error {
  override readonly name = "ServerUnreachable";
}

/** Whether this browser has a session; undefined until the server has said so. */
export const isSignedIn = createObservable<boolean | undefined>(undefined);

type Operations = typeof ADMIN_OPERATIONS;
type ParameterName<Id extends AdminOperationId> = Operations[Id] extends { query: infer Q } ? keyof Q : never;

export interface Call<Id extends AdminOperationId> {
  readonly id?: Identifier | string;
  /** What is undefined or empty is left out. */
  readonly query?: { readonly [K in ParameterName<Id>]?: string | number | undefined };
  readonly body?: BodyOf<Id>;
}

const TIMEOUT_MS = 15_000;

/** Calls an operation of the admin API. */
export async function call<Id extends AdminOperationId>(
  operationId: Id,
  { id, query, body }: Call<Id> = {},
): Promise<ResponseOf<Id>> {
  const operation: AdminOperation = ADMIN_OPERATIONS[operationId];
  const path = operation.path.replace(/\{\w+\}/, encodeURIComponent(String(id)));
  const init: RequestInit = {
    method: operation.method,
    cache: "no-store",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  };
  if (body !== undefined) {
    init.headers = { "Content-Type": "application/json" };
    init.body = toJson(body);
  }
  const text = await responseText(ADMIN_BASE_PATH + path + queryText(query ?? {}), init);
  const result = operation.success.body?.read(parseExactJson(text));
  // The console of one release may be open while the server of the next one starts.
  if (result instanceof Invalid)
    throw new Error("The server sent something that this page does not know. Reload it.");
  // The schema of the operation has read it.
  return result as ResponseOf<Id>;
}

async function responseText(url: string, init: RequestInit): Promise<string> {
  const { response, text } = await responseOf(url, init);
  if (response.ok) return text;
  if (response.status === 401 && isSignedIn.value === true) isSignedIn.set(false);
  throw errorOf(response.status, text);
}

async function responseOf(url: string, init: RequestInit): Promise<{ response: Response; text: string }> {
  try {
    const response = await fetch(url, init);
    return { response, text: await response.text() };
  } catch (cause) {
    throw new ServerUnreachable("The server does not respond.", { cause });
  }
}

function errorOf(status: number, text: string): Error {
  const { code, message } = objectOf(text);
  if (typeof code === "string" && typeof message === "string") return new ApiError(status, code, message);
  // A proxy in front of a server that is gone.
  if (status >= 502) return new ServerUnreachable(`The server responds ${status}.`);
  return new ApiError(status, "unknown", `The server responds ${status}.`);
}

function objectOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function queryText(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}
