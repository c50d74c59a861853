import { DOCS_PATH, IDEMPOTENCY_KEY_MAX_LENGTH, MAX_BODY_BYTES } from "./constants.ts";
import { kibibytes, longDate, plural } from "./formatting.ts";
import { type Identifier, INT64_RANGE } from "./json.ts";
import type { OrderStatus, PetStatus } from "./resources.ts";
import type { Invalid } from "./schema.ts";

/** The closed set of error codes, each with its status. */
export const ERRORS = {
  invalid_json: { status: 400, meaning: "The request body is not JSON in UTF-8." },
  invalid_body: {
    status: 400,
    meaning: "The request body lacks a required field or has an invalid value.",
  },
  invalid_parameter: { status: 400, meaning: "A query parameter or header has an invalid value." },
  missing_api_key: { status: 401, meaning: "The request has no API key." },
  invalid_api_key: {
    status: 401,
    meaning: "The API key is mistyped, revoked, expired or from another environment.",
  },
  read_only_key: {
    status: 403,
    meaning: "The API key may only read: it may use `GET`, `HEAD` and `OPTIONS`.",
  },
  not_found: { status: 404, meaning: "The path does not exist." },
  pet_not_found: { status: 404, meaning: "No pet has this identifier." },
  order_not_found: { status: 404, meaning: "Your API key has no order with this identifier." },
  method_not_allowed: {
    status: 405,
    meaning: "The path does not allow this method. `Allow` lists the methods that it allows.",
  },
  pet_not_available: { status: 409, meaning: "The pet is pending or sold." },
  order_closed: { status: 409, meaning: "The order is already completed or cancelled." },
  idempotency_conflict: {
    status: 409,
    meaning: "A request with the same `Idempotency-Key` is still in progress.",
  },
  operation_removed: { status: 410, meaning: "The operation was removed. `Link` has its replacement." },
  body_too_large: { status: 413, meaning: `The request body exceeds ${kibibytes(MAX_BODY_BYTES)}.` },
  unsupported_media_type: { status: 415, meaning: "The request body is not `application/json`." },
  idempotency_key_reused: {
    status: 422,
    meaning: "The `Idempotency-Key` was already used with a different request body.",
  },
  rate_limited: {
    status: 429,
    meaning: "A rate limit is exhausted. `Retry-After` has the seconds to wait.",
  },
  key_banned: {
    status: 429,
    meaning: "The API key is temporarily banned. `Retry-After` has the seconds to wait.",
  },
  internal_error: { status: 500, meaning: "The service failed. The error has been logged." },
  unavailable: {
    status: 503,
    meaning: "The service is temporarily unavailable. `Retry-After` has the seconds to wait.",
  },
} as const satisfies Record<string, { status: number; meaning: string }>;

export type ErrorCode = keyof typeof ERRORS;

/**
 * Responses to requests that are not valid HTTP or arrive too slowly. They precede authentication, so they have no
 * rate limit headers, and belong to no operation. The connection closes.
 */
export const PROTOCOL_ERRORS = {
  malformed_request: { status: 400, meaning: "The request is not valid HTTP/1.1." },
  request_timeout: { status: 408, meaning: "The request did not arrive in time." },
  uri_too_long: { status: 414, meaning: "The request line is too long." },
  headers_too_large: { status: 431, meaning: "The headers are too large, or there are too many." },
  not_implemented: {
    status: 501,
    meaning: "`Transfer-Encoding` is not `chunked`, or the method is `CONNECT`.",
  },
  http_version_not_supported: { status: 505, meaning: "The HTTP version is not 1.x." },
} as const satisfies Record<string, { status: number; meaning: string }>;

export type ProtocolErrorCode = keyof typeof PROTOCOL_ERRORS;

/** An expected error: a value that handlers return and never throw. */
export interface Rejection<C extends ErrorCode | ProtocolErrorCode = ErrorCode> {
  readonly code: C;
  /** For the client. */
  readonly message: string;
}

export function isRejection(value: object): value is Rejection {
  return "code" in value;
}

function rejection<C extends ErrorCode | ProtocolErrorCode>(code: C, message: string): Rejection<C> {
  return { code, message };
}

export const INVALID_JSON = rejection("invalid_json", "The request body is not valid JSON.");
export const INVALID_ENCODING = rejection(
  "invalid_json",
  "The request body must be UTF-8 without a byte order mark.",
);

export const BODY_REQUIRED = rejection("invalid_body", "A request body is required. Send a JSON object.");

export function invalidBody({ problems }: Invalid): Rejection<"invalid_body"> {
  return rejection("invalid_body", `${problems.join("; ")}.`);
}

export function invalidParameter({ problems }: Invalid): Rejection<"invalid_parameter"> {
  return rejection("invalid_parameter", `${problems.join("; ")}.`);
}

export const INVALID_IDEMPOTENCY_KEY = rejection(
  "invalid_parameter",
  `Idempotency-Key must be 1 to ${IDEMPOTENCY_KEY_MAX_LENGTH} visible ASCII characters.`,
);

export const MISSING_API_KEY = rejection(
  "missing_api_key",
  "Missing API key. Send it in the Authorization header: Bearer <key>.",
);
export const INVALID_API_KEY = rejection(
  "invalid_api_key",
  "Invalid API key. It is mistyped, revoked, expired or from another environment.",
);

export const READ_ONLY_KEY = rejection(
  "read_only_key",
  "This API key is read-only. Use GET or HEAD, or a key with write access.",
);

export const NOT_FOUND = rejection(
  "not_found",
  `No such path. The paths of the API are listed at ${DOCS_PATH}.`,
);

export function petNotFound(id: Identifier): Rejection<"pet_not_found"> {
  return rejection("pet_not_found", `Pet ${id} does not exist.`);
}

export function orderNotFound(id: Identifier): Rejection<"order_not_found"> {
  return rejection("order_not_found", `Order ${id} does not exist.`);
}

/** A path parameter that is not an identifier at all. */
export function malformedIdentifier<C extends ErrorCode>(name: string, notFound: C): Rejection<C> {
  return rejection(notFound, `${name} must be a decimal integer ${INT64_RANGE}.`);
}

/** `allowed` is the value of `Allow`. */
export function methodNotAllowed(method: string, allowed: string): Rejection<"method_not_allowed"> {
  return rejection(
    "method_not_allowed",
    `${method} is not allowed on this path. Allowed methods: ${allowed}.`,
  );
}

export function petNotAvailable(id: bigint, status: PetStatus | undefined): Rejection<"pet_not_available"> {
  return rejection("pet_not_available", `Pet ${id} is ${status}. Only available pets can be ordered.`);
}

export function orderClosed(id: bigint, status: OrderStatus): Rejection<"order_closed"> {
  return rejection("order_closed", `Order ${id} is already ${status}. Only placed orders can be updated.`);
}

export const IDEMPOTENCY_CONFLICT = rejection(
  "idempotency_conflict",
  "A request with this Idempotency-Key is still in progress. Retry in a moment.",
);
export const IDEMPOTENCY_KEY_REUSED = rejection(
  "idempotency_key_reused",
  "This Idempotency-Key was already used with a different request body. Use a new key.",
);

export interface Removal {
  readonly sunset: Date;
  /** The path of the operation to use instead; `{parameter}` is the identifier in the path of the removed one. */
  readonly replacement: string;
}

export function operationRemoved({ sunset, replacement }: Removal): Rejection<"operation_removed"> {
  return rejection(
    "operation_removed",
    `This operation was removed on ${longDate(sunset)}. Use GET ${replacement} instead.`,
  );
}

export const BODY_TOO_LARGE = rejection(
  "body_too_large",
  `The request body must not exceed ${kibibytes(MAX_BODY_BYTES)}.`,
);
export const UNSUPPORTED_MEDIA_TYPE = rejection(
  "unsupported_media_type",
  "Content-Type must be application/json.",
);

export function rateLimited(retryAfterSeconds: number): Rejection<"rate_limited"> {
  return rejection("rate_limited", `Too many requests. ${retryAfter(retryAfterSeconds)}`);
}

export function keyBanned(retryAfterSeconds: number): Rejection<"key_banned"> {
  return rejection(
    "key_banned",
    `This API key is temporarily banned because requests continued after a 429. ${retryAfter(retryAfterSeconds)}`,
  );
}

export const INTERNAL_ERROR = rejection("internal_error", "An internal error occurred. It has been logged.");

export function serviceUnavailable(retryAfterSeconds: number): Rejection<"unavailable"> {
  return rejection("unavailable", `The service is temporarily unavailable. ${retryAfter(retryAfterSeconds)}`);
}

export function authenticationUnavailable(retryAfterSeconds: number): Rejection<"unavailable"> {
  return rejection(
    "unavailable",
    `The API key cannot be verified right now. ${retryAfter(retryAfterSeconds)}`,
  );
}

export const MALFORMED_REQUEST = rejection("malformed_request", "The request is not valid HTTP/1.1.");

export function requestTimeout(seconds: number): Rejection<"request_timeout"> {
  return rejection("request_timeout", `The request did not arrive within ${plural(seconds, "second")}.`);
}

export function uriTooLong(maxBytes: number): Rejection<"uri_too_long"> {
  return rejection("uri_too_long", `The request line must not exceed ${kibibytes(maxBytes)}.`);
}

export function headersTooLarge(maxBytes: number, maxHeaders: number): Rejection<"headers_too_large"> {
  const bounds = `${kibibytes(maxBytes)} and ${maxHeaders} headers`;
  return rejection("headers_too_large", `The request line and headers must not exceed ${bounds}.`);
}

export const NOT_IMPLEMENTED = rejection(
  "not_implemented",
  "Transfer-Encoding must be chunked. CONNECT is not supported.",
);
export const HTTP_VERSION_NOT_SUPPORTED = rejection(
  "http_version_not_supported",
  "The HTTP version is not supported. Use HTTP/1.1.",
);

function retryAfter(seconds: number): string {
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
