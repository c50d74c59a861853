/** How an operation is called: by the console, by a command, and by another server. */
import { type Identifier, toJson } from "../api/json.ts";
import { ADMIN_API, type AdminOperation, type AdminOperationId, type BodyOf } from "./operations.ts";

/** The input of any operation, before it is validated. */
export interface AnyCallInput {
  /** The console has one as text, from its URL. */
  readonly id?: Identifier | string | undefined;
  /** What is undefined or empty is left out. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly body?: object | undefined;
}

type Operations = typeof ADMIN_API.operations;

export interface CallInput<Id extends AdminOperationId> extends AnyCallInput {
  readonly query?: Operations[Id] extends { query: infer Q }
    ? { readonly [K in keyof Q]?: string | number | bigint | undefined }
    : undefined;
  readonly body?: BodyOf<Id>;
}

/** As it is in a URL. */
export function queryText(query: AnyCallInput["query"] = {}): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") text.set(name, String(value));
  return text.toString();
}

export function adminRequestOf(operationId: AdminOperationId, { id, query, body }: AnyCallInput) {
  const { method, path }: AdminOperation = ADMIN_API.operations[operationId];
  const resource = ADMIN_API.basePath + path.replace(/\{\w+\}/, encodeURIComponent(String(id)));
  const text = queryText(query);
  return {
    target: text === "" ? resource : `${resource}?${text}`,
    method,
    headers: body && { "Content-Type": "application/json" },
    body: body ? toJson(body) : null,
  };
}
