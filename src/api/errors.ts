import { INT64_RANGE } from "./json.ts";
import { kibibytes, plural } from "./formatting.ts";
import type { Invalid } from "./schema.ts";

/** The closed set of error codes of an API, each with its status and what it means. */
export type ErrorTable = Readonly<Record<string, { readonly status: number; readonly meaning: string }>>;

/** An expected error: a value that handlers return and never throw. */
export interface Rejection<C extends string = string> {
  readonly code: C;
  /** For the client. It names the field at fault. */
  readonly message: string;
  readonly retryAfterSeconds?: number;
}

export function isRejection(value: unknown): value is Rejection {
  return typeof value === "object" && value !== null && "code" in value;
}

export function rejection<C extends string>(code: C, message: string): Rejection<C> {
  return { code, message };
}

/** The rejections that every API has. */
export const INVALID_JSON = rejection("invalid_json", "The request body is not valid JSON.");
export const INVALID_ENCODING = rejection(
  "invalid_json",
  "The request body must be UTF-8 without a byte order mark.",
);
export const BODY_REQUIRED = rejection("invalid_body", "A request body is required. Send a JSON object.");
export const UNSUPPORTED_MEDIA_TYPE = rejection(
  "unsupported_media_type",
  "Content-Type must be application/json.",
);
export const INTERNAL_ERROR = rejection("internal_error", "An internal error occurred. It has been logged.");

export function invalidBody({ problems }: Invalid): Rejection<"invalid_body"> {
  return rejection("invalid_body", `${problems.join("; ")}.`);
}

export function invalidParameter({ problems }: Invalid): Rejection<"invalid_parameter"> {
  return rejection("invalid_parameter", `${problems.join("; ")}.`);
}

export function bodyTooLarge(maxBytes: number): Rejection<"body_too_large"> {
  return rejection("body_too_large", `The request body must not exceed ${kibibytes(maxBytes)}.`);
}

/** A path parameter that is not an identifier at all. */
export function malformedIdentifier<C extends string>(name: string, notFound: C): Rejection<C> {
  return rejection(notFound, `${name} must be a decimal integer ${INT64_RANGE}.`);
}

/** `allowed` is the value of `Allow`. */
export function methodNotAllowed(method: string, allowed: string): Rejection<"method_not_allowed"> {
  return rejection(
    "method_not_allowed",
    `${method} is not allowed on this path. Allowed methods: ${allowed}.`,
  );
}

export function serviceUnavailable(retryAfterSeconds: number): Rejection<"unavailable"> {
  return rejection("unavailable", `The service is temporarily unavailable. ${retryAfter(retryAfterSeconds)}`);
}

export function retryAfter(seconds: number): string {
  return `Retry after ${plural(seconds, "second")}.`;
}

/** The request cannot be executed now, for example because a database is unavailable. The message is for the log. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
  readonly retryAfterSeconds: number;

  constructor(message: string, options: { cause?: unknown; retryAfterSeconds?: number } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterSeconds = options.retryAfterSeconds ?? 1;
  }
}

/** A queue is full: more arrives than this server can do. */
export class Overloaded extends Unavailable {}
