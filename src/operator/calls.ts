/** How an operation is called: by the console, by a command, and by another server. */
import { countOf } from "../text/formatting.ts";
import { type Identifier, toJson } from "../api/json.ts";
import { Rejection } from "../api/errors.ts";
import { Invalid, readRows } from "../api/schema.ts";
import { ApiErrorSchema } from "./errors.ts";
import {
  ADMIN_API,
  type AdminOperation,
  type AdminOperationId,
  type BodyOf,
  type ResponseOf,
} from "./operations.ts";

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

/** A response as far as this release can read it, and how many rows of its lists are left out. */
export interface ReadResponse<Id extends AdminOperationId> {
  readonly body: ResponseOf<Id>;
  readonly unreadable: number;
}

/** Undefined if this release does not know the response: the server may be of another one. */
export function readResponse<Id extends AdminOperationId>(
  operationId: Id,
  json: unknown,
): ReadResponse<Id> | undefined {
  const { body: schema }: AdminOperation["success"] = ADMIN_API.operations[operationId].success;
  const read = schema ? readRows(schema, json) : { value: undefined, unreadable: 0 };
  // The schema of the operation has read it.
  return read instanceof Invalid
    ? undefined
    : { body: read.value as ResponseOf<Id>, unreadable: read.unreadable };
}

/** Undefined if no server of this kind responds so. */
export function readRejection(json: unknown): Rejection | undefined {
  const error = ApiErrorSchema.read(json);
  // A server of an earlier release says what is wrong in its message alone.
  return error instanceof Invalid ? undefined : new Rejection(error.code, error.problems ?? error.message);
}

export function unexpectedResponse(url: string, version: string | undefined): string {
  return `an unexpected response from ${url}${version === undefined ? "" : `, a server of version ${version}`}`;
}

export function unreadableText(rows: number): string {
  const [verb, pronoun] = rows === 1 ? ["is", "it"] : ["are", "them"];
  return `${countOf(rows, "row")} ${verb} left out: this release cannot read ${pronoun}`;
}
