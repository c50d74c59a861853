import type { ErrorCode } from "../src/contract/errors.ts";
import type { AuditAction } from "../src/domain/audit.ts";

/** What a client does about an error, beyond what its meaning says. */
export const ACTIONS: Readonly<Record<ErrorCode, string>> = {
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

export const AUDIT_MEANINGS: Readonly<Record<AuditAction, string>> = {
  "key.created": "A key was created.",
  "key.updated": "Fields of a key were changed.",
  "key.rolled": "A key got a new secret.",
  "key.revoked": "A key was revoked.",
  "key.banned": "A server banned a key.",
  "key.unbanned": "An operator ended the ban of a key, or reset its strikes.",
  "pet.updated": "An operator corrected a pet.",
  "pet.deleted": "An operator deleted a pet.",
  "order.updated": "An operator completed or cancelled an order.",
  "data.imported": "Pets or orders were imported from a file.",
  "data.exported": "API keys were exported with the hashes of their secrets.",
  "admin.signed-in": "Somebody signed in to the console.",
  "admin.sign-in-failed": "Somebody tried to sign in with a wrong token.",
  "admin.signed-out": "Somebody signed out of the console.",
  "admin.token-rolled": "The admin token was replaced.",
};
