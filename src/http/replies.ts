import { type ErrorCode, ERRORS } from "../contract/errors.ts";
import type { Verdict } from "../domain/limits.ts";

export type HeaderFields = Readonly<Record<string, string>>;

/** Every answer under /v1 says where the caller stands. A new object each time, for the rest to be added to. */
export function limitFields(verdict: Verdict, ...more: readonly (HeaderFields | undefined)[]): HeaderFields {
  const fields = {
    "X-RateLimit-Limit": `${verdict.limit}`,
    "X-RateLimit-Remaining": `${verdict.remaining}`,
    "X-RateLimit-Reset": `${verdict.resetAt}`,
  };
  return Object.assign(fields, ...more);
}

const JSON_TYPE = { "Content-Type": "application/json" };

export function jsonReply(status: number, body: string, headers: HeaderFields): Response {
  return new Response(body, { status, headers: Object.assign(headers, JSON_TYPE) });
}

/** Without a body, and so without a Content-Type. */
export function emptyReply(status: 204 | 304, headers: HeaderFields): Response {
  return new Response(null, { status, headers });
}

export function errorReply(code: ErrorCode, message: string, headers: HeaderFields): Response {
  return jsonReply(ERRORS[code].status, errorBody(code, message), headers);
}

/** A fault of ours: the client learns that much and no more. */
export function faultReply(headers: HeaderFields): Response {
  return errorReply("internal_error", "Something went wrong on our side; it has been logged.", headers);
}

export function errorBody(code: ErrorCode, message: string): string {
  return JSON.stringify({ code, message, status: ERRORS[code].status });
}
