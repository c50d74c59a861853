/* How an operation is called: by the console, by a command, and by another server. */

import { countOf } from "../text/formatting.ts";
import { withIdentifier } from "../api/api.ts";
import { type Identifier, parseJson, toJson } from "../api/json.ts";
import { Rejection } from "../api/errors.ts";
import { Invalid, readRows, text } from "../api/schema.ts";
import {
  ADMIN_BASE_PATH,
  ADMIN_OPERATIONS,
  type AdminOperation,
  type AdminOperationId,
  type BodyOf,
  type ResponseOf,
} from "./operations.ts";
import { apiErrorSchema } from "./error-schema.ts";

/** The input of any operation, before it is validated. */
export interface CallInput {
  /** The identifier. The console has it as text, from its URL. */
  readonly id?: Identifier | string | undefined;
  /** The parameters. Undefined and empty ones are left out. */
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly body?: object | undefined;
}

/** The input of one operation, before it is validated. */
export interface CallInputOf<Id extends AdminOperationId> extends CallInput {
  readonly query?: (typeof ADMIN_OPERATIONS)[Id] extends { query: infer Q }
    ? { readonly [K in keyof Q]?: string | number | bigint | undefined }
    : undefined;
  readonly body?: BodyOf<Id>;
}

/** Encodes parameters as the query of a URL. */
export function queryText(query: CallInput["query"] = {}): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") text.set(name, String(value));
  return text.toString();
}

export function adminRequestOf(operationId: AdminOperationId, { id, query, body }: CallInput) {
  const { method, path }: AdminOperation = ADMIN_OPERATIONS[operationId];
  const resource = ADMIN_BASE_PATH + withIdentifier(path, encodeURIComponent(String(id)));
  const text = queryText(query);
  return {
    target: text === "" ? resource : `${resource}?${text}`,
    method,
    headers: body && { "Content-Type": "application/json" },
    body: body ? toJson(body) : null,
  };
}

/** A response as far as this release can read it, and the number of rows that were left out of its lists. */
export interface ReadResponse<Id extends AdminOperationId> {
  readonly body: ResponseOf<Id>;
  readonly unreadable: number;
}

/** Reads a response. Returns undefined if this release does not know its form: the server may have another release. */
export function readResponse<Id extends AdminOperationId>(
  operationId: Id,
  json: unknown,
): ReadResponse<Id> | undefined {
  const { body: schema }: AdminOperation["success"] = ADMIN_OPERATIONS[operationId].success;
  const read = schema ? readRows(schema, json) : { value: undefined, unreadable: 0 };
  // The schema of the operation has validated it.
  return read instanceof Invalid
    ? undefined
    : { body: read.value as ResponseOf<Id>, unreadable: read.unreadable };
}

/** A server of another release may have other codes. */
const ErrorBody = apiErrorSchema(text(100));

/** Reads an error. Returns undefined if the response is no error of a Petstore server. */
export function readRejection(json: unknown): Rejection | undefined {
  const error = ErrorBody.read(json);
  // A server of an earlier release has no `problems`, only the message.
  return error instanceof Invalid ? undefined : new Rejection(error.code, error.problems ?? error.message);
}

/** The longest wait for the rate. Whoever waits for longer thinks that nothing happens. */
export const MAX_RATE_WAIT_MS = 60_000;

/**
 * How long to wait before a request that exceeded the rate of the operator is sent again; undefined for any other, and
 * if the wait is too long.
 */
export function rateWaitMs(response: Pick<Response, "status" | "headers"> & { readonly text: string }) {
  const { status, headers, text } = response;
  if (status !== 429 || readRejection(parseJson(text))?.code !== "too_many_requests") return undefined;
  const waitMs = Math.max(1, Number(headers.get("retry-after")) || 0) * 1_000;
  return waitMs > MAX_RATE_WAIT_MS ? undefined : waitMs;
}

export function unexpectedResponse(url: string, version: string | undefined): string {
  return `an unexpected response from ${url}${version === undefined ? "" : `, a server of version ${version}`}`;
}

export function unreadableText(rows: number): string {
  const [verb, pronoun] = rows === 1 ? ["is", "it"] : ["are", "them"];
  return `${countOf(rows, "row")} ${verb} left out: this release cannot read ${pronoun}`;
}
