/* What is marked as pure is left out of the console's script, which does not use it. */

import { DAY_MS } from "../text/time-units.ts";
import { Rejection } from "../api/errors.ts";

/** How long the result of a request with an Idempotency-Key is kept. */
export const IDEMPOTENCY_LIFETIME_MS = DAY_MS;
/** The length in characters. */
export const IDEMPOTENCY_KEY_MAX_LENGTH = 255;

export const IDEMPOTENCY_CONFLICT = /* @__PURE__ */ new Rejection(
  "idempotency_conflict",
  "A request with this Idempotency-Key is still in progress. Retry in a moment.",
);
export const IDEMPOTENCY_KEY_REUSED = /* @__PURE__ */ new Rejection(
  "idempotency_key_reused",
  "This Idempotency-Key was already used with a different request body. Use a new key.",
);
