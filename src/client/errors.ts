import type { ResponseMetadata } from "./response.ts";

const CODES = [
  "invalid_json",
  "invalid_body",
  "invalid_parameter",
  "missing_api_key",
  "invalid_api_key",
  "read_only_key",
  "not_found",
  "pet_not_found",
  "order_not_found",
  "method_not_allowed",
  "pet_not_available",
  "order_closed",
  "idempotency_conflict",
  "operation_removed",
  "precondition_failed",
  "body_too_large",
  "unsupported_media_type",
  "idempotency_key_reused",
  "rate_limited",
  "key_banned",
  "internal_error",
  "unavailable",
] as const;

export type ErrorCode = (typeof CODES)[number];

/** `other` is every code that this release does not know; `body` has it. So a misspelt code does not compile. */
function knownCode(code: string | undefined): ErrorCode | "other" | undefined {
  return code === undefined ? undefined : (CODES.find((known) => known === code) ?? "other");
}

export interface ErrorDetails {
  cause?: unknown;
  idempotencyKey?: string | undefined;
  response?: ResponseMetadata | undefined;
  body?: string | undefined;
}

const MAX_BODY = 1_000;

/** Every error of this package, except the reason of an AbortSignal and a TypeError about an argument. */
export class PetstoreError extends Error {
  /** Survives minification. */
  static className = "PetstoreError";
  /** What the call sent: pass it again to repeat the call without a second pet or order. */
  readonly idempotencyKey: string | undefined;
  /** The status of the last response, if there was one. The fields that follow are of that response too. */
  readonly status: number | undefined;
  readonly headers: Headers | undefined;
  readonly response: ResponseMetadata | undefined;
  /** Its first 1,000 characters. */
  readonly body: string | undefined;

  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details);
    this.name = new.target.className;
    this.idempotencyKey = details.idempotencyKey;
    this.response = details.response;
    this.status = details.response?.status;
    this.headers = details.response?.headers;
    this.body = details.body?.slice(0, MAX_BODY);
  }
}

/** The server rejected the request. */
export class ApiError extends PetstoreError {
  static override className = "ApiError";
  declare readonly status: number;
  declare readonly headers: Headers;
  declare readonly response: ResponseMetadata;
  /** undefined if something in front of the server responded; `other` if this release does not know the code. */
  readonly code: ErrorCode | "other" | undefined;
  readonly requestId: string | undefined;
  /** The seconds to wait. */
  readonly retryAfter: number | undefined;

  constructor(
    message: string,
    details: ErrorDetails & { code?: string | undefined; response: ResponseMetadata },
  ) {
    super(message, details);
    this.code = knownCode(details.code);
    this.requestId = details.response.requestId;
    this.retryAfter = details.response.retryAfter;
  }
}

/** 400, 413, 415 and other 4xx without a class of their own. */
export class InvalidRequestError extends ApiError {
  static override className = "InvalidRequestError";
}
/** 401. */
export class AuthenticationError extends ApiError {
  static override className = "AuthenticationError";
}
/** 403. */
export class PermissionError extends ApiError {
  static override className = "PermissionError";
}
/** 404 and 410. */
export class NotFoundError extends ApiError {
  static override className = "NotFoundError";
}
/** 409, 412 and 422. */
export class ConflictError extends ApiError {
  static override className = "ConflictError";
}
/** 429. */
export class RateLimitError extends ApiError {
  static override className = "RateLimitError";
}
/** 5xx. */
export class ServerError extends ApiError {
  static override className = "ServerError";
}

/** No response; `cause` is the error of `fetch`. */
export class ConnectionError extends PetstoreError {
  static override className = "ConnectionError";
}
/** The deadline of the call passed; `cause` is its last error, if it had one. */
export class TimeoutError extends PetstoreError {
  static override className = "TimeoutError";
}
/** A response that the API never sends: no JSON, no list, a redirect. Something else responded. */
export class InvalidResponseError extends PetstoreError {
  static override className = "InvalidResponseError";
}
