import { INT64_RANGE } from "./json.ts";
import { kibibytes, plural } from "../text/formatting.ts";
import type { InputProblem } from "./schema.ts";

/** The closed set of error codes of an API, each with its status and what it means. */
export type ErrorTable = Readonly<Record<string, { readonly status: number; readonly meaning: string }>>;

/** The errors that every API has. */
export const STANDARD_ERRORS = {
  invalid_json: { status: 400, meaning: "The request body is not JSON in UTF-8." },
  invalid_body: { status: 400, meaning: "The request body lacks a required field or has an invalid value." },
  invalid_parameter: { status: 400, meaning: "A query parameter has an invalid value." },
  not_found: { status: 404, meaning: "The path does not exist." },
  method_not_allowed: {
    status: 405,
    meaning: "The path does not allow this method. `Allow` lists the methods that it allows.",
  },
  body_too_large: { status: 413, meaning: "The request body is too large." },
  unsupported_media_type: { status: 415, meaning: "The request body is not `application/json` in UTF-8." },
  internal_error: { status: 500, meaning: "The service failed. The error has been logged." },
  unavailable: {
    status: 503,
    meaning: "The service is temporarily unavailable. `Retry-After` has the seconds to wait.",
  },
} as const satisfies ErrorTable;
export type StandardErrorCode = keyof typeof STANDARD_ERRORS;

/** The errors of an API in the order of their statuses: the standard ones, and its own, which may replace them. */
export function errorTable<Code extends string>(
  own: Readonly<Record<Code, ErrorTable[string]>>,
): Readonly<Record<Code | StandardErrorCode, ErrorTable[string]>> {
  const all: ErrorTable = { ...STANDARD_ERRORS, ...own };
  const sorted = Object.entries(all).toSorted(([, a], [, b]) => a.status - b.status);
  return Object.fromEntries(sorted) as Record<Code | StandardErrorCode, ErrorTable[string]>;
}

/** An expected error: a value that handlers return and never throw. */
export class Rejection<C extends string = string> {
  /** No other object is one for the type checker. */
  declare protected readonly brand: never;
  /** What is wrong with the input; empty if something else is the reason. */
  readonly problems: readonly InputProblem[];
  /** For the client, in sentences. */
  readonly message: string;

  constructor(
    readonly code: C,
    reason: string | readonly InputProblem[],
    readonly retryAfterSeconds?: number,
  ) {
    [this.problems, this.message] =
      typeof reason === "string"
        ? [[], reason]
        : [reason, `${describeProblems(reason, (path) => pathText(path) || "The request body")}.`];
  }
}

/** The problems as one sentence, without a full stop; `nameOf` says what its reader calls a value. */
export function describeProblems(
  problems: readonly InputProblem[],
  nameOf: (path: InputProblem["path"]) => string,
): string {
  return problems.map(({ path, message }) => `${nameOf(path)} ${message}`).join("; ");
}

/** Such as `limits.perDay` and `labels[2]`. */
export function pathText(path: InputProblem["path"]): string {
  const [first = "", ...rest] = path;
  return first + rest.map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`)).join("");
}

/** The rejections that every API has. */
export const INVALID_JSON = new Rejection("invalid_json", "The request body is not valid JSON.");
export const INVALID_ENCODING = new Rejection(
  "invalid_json",
  "The request body must be UTF-8 without a byte order mark.",
);
export const BODY_REQUIRED = new Rejection("invalid_body", "A request body is required. Send a JSON object.");
export const UNSUPPORTED_MEDIA_TYPE = new Rejection(
  "unsupported_media_type",
  "Content-Type must be application/json.",
);
const NAME = /^[\w.:+-]{1,40}$/;

/** What the body has beside its media type. A name is repeated only if it looks like one. */
export function unsupportedEncoding(
  field: "Content-Encoding" | "charset",
  value: string,
): Rejection<"unsupported_media_type"> {
  const name = NAME.test(value) ? ` ${value}` : "";
  const message = `The ${field}${name} is not supported. Send JSON in UTF-8 without an encoding.`;
  return new Rejection("unsupported_media_type", message);
}
export const INTERNAL_ERROR = new Rejection(
  "internal_error",
  "An internal error occurred. It has been logged.",
);

export function bodyTooLarge(maxBytes: number): Rejection<"body_too_large"> {
  return new Rejection("body_too_large", `The request body must not exceed ${kibibytes(maxBytes)}.`);
}

/** A path parameter that is not an identifier at all. */
export function malformedIdentifier<C extends string>(name: string, notFound: C): Rejection<C> {
  return new Rejection(notFound, `${name} must be a decimal integer ${INT64_RANGE}.`);
}

/** `allowed` is the value of `Allow`. */
export function methodNotAllowed(method: string, allowed: string): Rejection<"method_not_allowed"> {
  return new Rejection(
    "method_not_allowed",
    `${method} is not allowed on this path. Allowed methods: ${allowed}.`,
  );
}

export function temporarilyUnavailable(what: string, retryAfterSeconds: number): Rejection<"unavailable"> {
  return new Rejection("unavailable", `${what}. ${retryAfter(retryAfterSeconds)}`, retryAfterSeconds);
}

export function serviceUnavailable(retryAfterSeconds: number): Rejection<"unavailable"> {
  return temporarilyUnavailable("The service is temporarily unavailable", retryAfterSeconds);
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

/** What the client is told of an error that was thrown. */
export function rejectionOf(error: unknown): Rejection<"unavailable" | "internal_error"> {
  return error instanceof Unavailable ? serviceUnavailable(error.retryAfterSeconds) : INTERNAL_ERROR;
}

/** What was thrown, in words. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A queue is full: more arrives than this server can do. */
export class Overloaded extends Unavailable {}
