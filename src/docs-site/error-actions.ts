import type { ErrorCode } from "../petstore/errors.ts";

/** What a client does about an error, beyond what its meaning says. */
export const ERROR_ACTIONS: Readonly<Record<ErrorCode, string>> = {
  invalid_json: "Send valid JSON.",
  invalid_body: "Correct the fields that `message` names.",
  invalid_parameter: "Correct the parameter that `message` names.",
  missing_api_key: "Send your key.",
  invalid_api_key: "Check the key and the environment.",
  read_only_key: "Use a key with write access.",
  not_found: "Check the path.",
  pet_not_found: "Check the identifier.",
  order_not_found: "Check the identifier.",
  method_not_allowed: "Use a method from `Allow`.",
  pet_not_available: "Order another pet.",
  order_closed: "Nothing; the order is final.",
  idempotency_conflict: "Repeat the request in a moment.",
  operation_removed: "Use the operation in `Link`.",
  body_too_large: "Send a smaller body.",
  unsupported_media_type: "Set `Content-Type`.",
  idempotency_key_reused: "Use a new key for a new operation.",
  rate_limited: "Wait `Retry-After` seconds.",
  key_banned: "Wait `Retry-After` seconds.",
  internal_error: "Repeat a `POST` with its `Idempotency-Key`.",
  unavailable: "Repeat after `Retry-After` seconds.",
};
