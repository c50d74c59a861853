import { INT64_RANGE } from "./json.ts";
import { kibibytes, plural } from "../text/formatting.ts";
import type { InputProblem } from "./schema.ts";

interface ErrorRow {
  readonly status: number;
  readonly meaning: string;
}

/** An error whose documentation says what a client does about it, beyond what its meaning says. */
export interface DocumentedError extends ErrorRow {
  readonly action: string;
}

/** All error codes of an API, each with its status and its meaning. */
export type ErrorTable = Readonly<Record<string, ErrorRow>>;

/** The errors that every API has. */
export const STANDARD_ERRORS = {
  invalid_json: {
    status: 400,
    meaning: "The request body is not JSON in UTF-8.",
    action: "Send valid JSON.",
  },
  invalid_body: {
    status: 400,
    meaning: "The request body lacks a required field or has an invalid value.",
    action: "Correct the fields that `message` names.",
  },
  invalid_parameter: {
    status: 400,
    meaning: "A query parameter has an invalid value.",
    action: "Correct the parameter that `message` names.",
  },
  not_found: { status: 404, meaning: "The path does not exist.", action: "Check the path." },
  method_not_allowed: {
    status: 405,
    meaning: "The path does not allow this method. `Allow` lists the methods that it allows.",
    action: "Use a method from `Allow`.",
  },
  body_too_large: { status: 413, meaning: "The request body is too large.", action: "Send a smaller body." },
  unsupported_media_type: {
    status: 415,
    meaning: "The request body is not `application/json` in UTF-8.",
    action: "Set `Content-Type`.",
  },
  internal_error: {
    status: 500,
    meaning: "The service failed. The error has been logged.",
    action: "Retry.",
  },
  unavailable: {
    status: 503,
    meaning: "The service is temporarily unavailable. `Retry-After` has the seconds to wait.",
    action: "Wait, then retry.",
  },
} as const satisfies Readonly<Record<string, DocumentedError>>;
export type StandardErrorCode = keyof typeof STANDARD_ERRORS;

/** Combines the standard errors with those of an API, which may replace them, in the order of their statuses. */
export function errorTable<Code extends string, Row extends ErrorRow>(
  own: Readonly<Record<Code, Row>>,
): Readonly<Record<Code | StandardErrorCode, Row | DocumentedError>> {
  const all: Readonly<Record<string, Row | DocumentedError>> = { ...STANDARD_ERRORS, ...own };
  const sorted = Object.entries(all).toSorted(([, a], [, b]) => a.status - b.status);
  return Object.fromEntries(sorted) as Record<Code | StandardErrorCode, Row | DocumentedError>;
}

/** An expected error: a value that handlers return and never throw. */
export class Rejection<C extends string = string> {
  /** The type checker accepts no other object as a rejection. */
  declare protected readonly brand: never;
  /** The problems of the input; empty if the request is rejected for another reason. */
  readonly problems: readonly InputProblem[];
  /** The message for the client, in sentences. */
  readonly message: string;

  constructor(
    readonly code: C,
    reason: string | readonly InputProblem[],
    /** The value of `Retry-After`; undefined if the response has no such header. */
    readonly retryAfterSeconds?: number,
  ) {
    [this.problems, this.message] =
      typeof reason === "string"
        ? [[], reason]
        : [reason, `${describeProblems(reason, (path) => pathText(path) || "The request body")}.`];
  }
}

/** Writes the problems as one sentence without a full stop; `nameOf` returns the reader's name of a value. */
export function describeProblems(
  problems: readonly InputProblem[],
  nameOf: (path: InputProblem["path"]) => string,
): string {
  return problems.map(({ path, message }) => `${nameOf(path)} ${message}`).join("; ");
}

/** Writes a path such as `limits.perDay` or `labels[2]`. */
export function pathText(path: InputProblem["path"]): string {
  const [first = "", ...rest] = path;
  return first + rest.map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`)).join("");
}

/** The rejections that every API has. They are marked as pure, so that the console's script leaves them out. */
export function invalidJson({ line, column }: { line: number; column: number }): Rejection<"invalid_json"> {
  const where = `line ${line}, column ${column}`;
  return new Rejection("invalid_json", `The request body is not valid JSON: the error is at ${where}.`);
}
export const INVALID_ENCODING = /* @__PURE__ */ new Rejection(
  "invalid_json",
  "The request body must be UTF-8 without a byte order mark.",
);
export const BODY_REQUIRED = /* @__PURE__ */ new Rejection(
  "invalid_body",
  "A request body is required. Send a JSON object.",
);
export const UNSUPPORTED_MEDIA_TYPE = /* @__PURE__ */ new Rejection(
  "unsupported_media_type",
  "Content-Type must be application/json.",
);
const NAME = /^[\w.:+-]{1,40}$/;

/** The message repeats the name of an encoding only if it looks like one. */
export function unsupportedEncoding(
  field: "Content-Encoding" | "charset",
  value: string,
): Rejection<"unsupported_media_type"> {
  const name = NAME.test(value) ? ` ${value}` : "";
  const message = `The ${field}${name} is not supported. Send JSON in UTF-8 without an encoding.`;
  return new Rejection("unsupported_media_type", message);
}
export const INTERNAL_ERROR = /* @__PURE__ */ new Rejection(
  "internal_error",
  "An internal error occurred. It has been logged.",
);

export function bodyTooLarge(maxBytes: number): Rejection<"body_too_large"> {
  return new Rejection("body_too_large", `The request body must not exceed ${kibibytes(maxBytes)}.`);
}

/** Rejects a path parameter that cannot be an identifier. */
export function malformedIdentifier<C extends string>(name: string, notFound: C): Rejection<C> {
  return new Rejection(notFound, `${name} must be a decimal integer ${INT64_RANGE}.`);
}

/** `allowed` is the value of `Allow`. The message repeats a method only if it is short. */
export function methodNotAllowed(method: string, allowed: string): Rejection<"method_not_allowed"> {
  const name = NAME.test(method) ? method : "This method";
  return new Rejection(
    "method_not_allowed",
    `${name} is not allowed on this path. Allowed methods: ${allowed}.`,
  );
}

export function temporarilyUnavailable(what: string, retryAfterSeconds: number): Rejection<"unavailable"> {
  return new Rejection("unavailable", `${what}. ${retryAfterText(retryAfterSeconds)}`, retryAfterSeconds);
}

export function serviceUnavailable(retryAfterSeconds: number): Rejection<"unavailable"> {
  return temporarilyUnavailable("The service is temporarily unavailable", retryAfterSeconds);
}

export function retryAfterText(seconds: number): string {
  return `Retry after ${plural(seconds, "second")}.`;
}

/** Thrown when a request cannot be executed now, such as in an outage of a database. The message is for the log. */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
  readonly retryAfterSeconds: number;

  constructor(message: string, options: { cause?: unknown; retryAfterSeconds?: number } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterSeconds = options.retryAfterSeconds ?? 1;
  }
}

/** Unavailable after a change was sent: it may have been made. */
export class OutcomeUnknown extends Unavailable {}

/** Returns what the client learns about an error that was thrown. */
export function rejectionOf(error: unknown): Rejection<"unavailable" | "internal_error"> {
  return error instanceof Unavailable ? serviceUnavailable(error.retryAfterSeconds) : INTERNAL_ERROR;
}

/** Thrown when a queue is full, because more requests arrive than this server can handle. */
export class Overloaded extends Unavailable {}
