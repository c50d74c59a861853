import { dateTime, type Infer, int64, integer, object } from "../api/schema.ts";
import type { ApiKey, ApiKeyPrincipal } from "../domain/api-keys.ts";
import { KEY_FIELDS } from "../domain/key-fields.ts";
import type { Decision, WindowState } from "../domain/rate-limit.ts";
import { EXAMPLE_TIME } from "../domain/fields.ts";
import { formatOptionalTime, formatTime } from "../text/formatting.ts";

export const RateLimitWindow = object("A rate limit, and what is left of it.", {
  limit: integer({
    min: 1,
    max: Number.MAX_SAFE_INTEGER,
    description: "Requests that the window allows",
    examples: [60],
  }),
  remaining: integer({
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    description: "Requests left in the window after this one",
    examples: [59],
  }),
  resetAt: dateTime({
    description: "When the window closes (RFC 3339, UTC), rounded up to a second",
    examples: [EXAMPLE_TIME],
  }),
});

/** The API key of the caller, as the caller sees it. */
export const CallerKey = object("Your API key, and what is left of its rate limits.", {
  id: int64({ description: "Identifier of the API key", examples: [7] }),
  name: KEY_FIELDS.name.schema,
  plan: KEY_FIELDS.plan.schema,
  access: KEY_FIELDS.access.schema,
  expiresAt: KEY_FIELDS.expiresAt.schema,
  minute: RateLimitWindow,
  day: RateLimitWindow,
});
export type CallerKey = Infer<typeof CallerKey>;

/** Writes the key as JSON. The decision about the request has counted the request and opened both windows. */
export function encodeKey(
  { name, expiresAt }: Pick<ApiKey, "name" | "expiresAt">,
  { keyId: id, plan, access }: ApiKeyPrincipal,
  { minute, day }: Decision,
): string {
  return JSON.stringify({
    id,
    name,
    plan,
    access,
    expiresAt: formatOptionalTime(expiresAt),
    minute: rateLimitOf(minute),
    day: rateLimitOf(day),
  });
}

function rateLimitOf({ limit, remaining, resetAt }: WindowState) {
  return { limit, remaining, resetAt: formatTime(resetAt * 1000) };
}
