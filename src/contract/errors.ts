/** The closed set of error codes, and the one place where a code meets its status. */
export const ERRORS = {
  invalid_json: { status: 400, meaning: "The body is not JSON in UTF-8." },
  invalid_body: { status: 400, meaning: "The body lacks a required field or holds an invalid value." },
  invalid_parameter: { status: 400, meaning: "A query parameter or request header has an invalid value." },
  missing_api_key: { status: 401, meaning: "The request carries no API key." },
  invalid_api_key: {
    status: 401,
    meaning: "The API key is wrong, revoked, expired or of another environment.",
  },
  not_found: { status: 404, meaning: "No resource lives at this path." },
  pet_not_found: { status: 404, meaning: "No pet has this identifier." },
  order_not_found: { status: 404, meaning: "No order has this identifier." },
  method_not_allowed: {
    status: 405,
    meaning: "The path exists, but not with this method; `Allow` lists those it has.",
  },
  pet_not_available: { status: 409, meaning: "The pet is pending or sold." },
  order_closed: { status: 409, meaning: "The order is already completed or cancelled." },
  idempotency_conflict: {
    status: 409,
    meaning: "The first request with this `Idempotency-Key` is still running.",
  },
  operation_removed: { status: 410, meaning: "The operation has been removed." },
  body_too_large: { status: 413, meaning: "The body is larger than 64 KiB." },
  unsupported_media_type: { status: 415, meaning: "The body is not `application/json`." },
  idempotency_key_reused: { status: 422, meaning: "This `Idempotency-Key` was used with another body." },
  rate_limited: { status: 429, meaning: "The plan's limit is used up; `Retry-After` says how long to wait." },
  key_banned: { status: 429, meaning: "The key is banned for a while; `Retry-After` says how long." },
  internal_error: { status: 500, meaning: "The service failed; the fault is ours and has been logged." },
  unavailable: {
    status: 503,
    meaning: "The service cannot answer right now; `Retry-After` says when to try again.",
  },
} as const satisfies Record<string, { status: number; meaning: string }>;

export type ErrorCode = keyof typeof ERRORS;

/** An expected "no": a value that handlers return, never something they throw. */
export interface Rejection<C extends ErrorCode = ErrorCode> {
  readonly code: C;
  /** For the client. Names what is at fault and what it should be. */
  readonly message: string;
}

export function rejection<C extends ErrorCode>(code: C, message: string): Rejection<C> {
  return { code, message };
}

/**
 * An engine that cannot answer now (busy, full, gone). Thrown, because no caller can do anything about it but
 * say 503. The message is for the log; the client only ever hears "try again".
 */
export class Unavailable extends Error {
  override readonly name = "Unavailable";
  readonly retryAfterSeconds: number;

  constructor(message: string, options: { cause?: unknown; retryAfterSeconds?: number } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterSeconds = options.retryAfterSeconds ?? 1;
  }
}
