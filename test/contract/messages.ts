import type { ErrorCode } from "../../src/petstore/errors.ts";

/** The exact message of every error code, for the inputs of the examples in the OpenAPI document. */
export const MESSAGES: Readonly<Record<ErrorCode, string>> = {
  invalid_json: "The request body is not valid JSON: the error is at line 1, column 16.",
  invalid_body: "categoryId must be an integer from -2^63 to 2^63 - 1.",
  invalid_parameter: "limit must be an integer from 1 to 100.",
  missing_api_key: "Missing API key. Send it in the Authorization header: Bearer <key>.",
  invalid_api_key: "Invalid API key. It is mistyped or revoked, or was replaced when the key was rotated.",
  read_only_key: "This API key is read-only. Use GET or HEAD, or a key with write access.",
  not_found: "No such path. The paths of the API are listed at /docs.",
  pet_not_found: "Pet 42 does not exist.",
  order_not_found: "Order 42 does not exist.",
  method_not_allowed: "DELETE is not allowed on this path. Allowed methods: GET, HEAD, POST, OPTIONS.",
  pet_not_available: "Pet 1 is pending. A pet that is pending or sold cannot be ordered.",
  order_closed: "Order 1 is already completed. Only placed orders can be updated.",
  idempotency_conflict: "A request with this Idempotency-Key is still in progress. Retry in a moment.",
  operation_removed:
    "This operation was removed on 5 December 2030. Use GET /pets?status=available, or GET /pets?id={petId} for one pet.",
  precondition_failed: "The ETag of order 1 is not in If-Match. Fetch the order again.",
  body_too_large: "The request body must not exceed 16 KiB.",
  unsupported_media_type: "Content-Type must be application/json.",
  idempotency_key_reused:
    "This Idempotency-Key was already used with a different request body. Use a new key.",
  rate_limited: "Too many requests: the limit is 60 requests a minute. Retry after 12 seconds.",
  key_banned:
    "This API key is temporarily banned because requests continued after a 429. Retry after 300 seconds.",
  internal_error: "An internal error occurred. It has been logged.",
  unavailable: "The service is temporarily unavailable. Retry after 1 second.",
};
