import {
  bodyTooLarge,
  type DocumentedError,
  errorTable,
  Rejection,
  retryAfterText,
  STANDARD_ERRORS,
  temporarilyUnavailable,
} from "../api/errors.ts";
import { countOf, kibibytes } from "../text/formatting.ts";
import type { Environment } from "../domain/environments.ts";
import { DOCS_PATH } from "../domain/paths.ts";
import { KEY_PREFIX } from "../domain/secrets.ts";
import type { WindowState } from "../domain/rate-limit.ts";
import { IDEMPOTENCY_KEY_MAX_LENGTH } from "../domain/idempotency.ts";
import { MAX_BODY_BYTES } from "../domain/size-limits.ts";

/** The error codes of every API with keys, besides the standard ones. */
const PUBLIC_ERRORS = {
  invalid_parameter: {
    status: 400,
    meaning: "A query parameter or header has an invalid value.",
    action: "Correct the parameter that `message` names.",
  },
  missing_api_key: { status: 401, meaning: "The request has no API key.", action: "Send your key." },
  invalid_api_key: {
    status: 401,
    meaning: "The API key is mistyped, revoked, disabled, expired or from another environment.",
    action: "Check the key and the environment.",
  },
  read_only_key: {
    status: 403,
    meaning: "The API key is read-only: it may use `GET`, `HEAD` and `OPTIONS`.",
    action: "Use a key with write access.",
  },
  idempotency_conflict: {
    status: 409,
    meaning: "A request with the same `Idempotency-Key` is still in progress.",
    action: "Retry in a moment.",
  },
  operation_removed: {
    status: 410,
    meaning: "The operation was removed. `Link` has its replacement.",
    action: "Use the replacement.",
  },
  body_too_large: {
    status: 413,
    meaning: `The request body exceeds ${kibibytes(MAX_BODY_BYTES)}.`,
    action: "Send a smaller body.",
  },
  idempotency_key_reused: {
    status: 422,
    meaning: "The `Idempotency-Key` was already used with a different request body.",
    action: "Use a new key for a new operation.",
  },
  rate_limited: {
    status: 429,
    meaning: "A rate limit is exhausted. `Retry-After` has the seconds to wait.",
    action: "Wait, then retry.",
  },
  key_banned: {
    status: 429,
    meaning: "The API key is temporarily banned. `Retry-After` has the seconds to wait.",
    action: "Wait, then retry.",
  },
  internal_error: {
    ...STANDARD_ERRORS.internal_error,
    action: "Retry; send a `POST` with its `Idempotency-Key`.",
  },
} as const;

/** Combines the errors of every API with keys with those of one. */
export function publicErrorTable<Code extends string>(own: Readonly<Record<Code, DocumentedError>>) {
  return errorTable<Code | keyof typeof PUBLIC_ERRORS, DocumentedError>({ ...own, ...PUBLIC_ERRORS });
}

/** The errors of responses outside the API, which belong to no operation. */
export const FRONT_ERRORS = publicErrorTable({});

export const INVALID_IDEMPOTENCY_KEY = new Rejection(
  "invalid_parameter",
  `Idempotency-Key must be 1 to ${IDEMPOTENCY_KEY_MAX_LENGTH} visible ASCII characters.`,
);

/** The rejections by the reason why a request has no principal. */
export const UNAUTHENTICATED = {
  missing_api_key: new Rejection(
    "missing_api_key",
    "Missing API key. Send it in the Authorization header: Bearer <key>.",
  ),
  invalid_api_key: new Rejection(
    "invalid_api_key",
    "Invalid API key. It is mistyped or revoked, or was replaced when the key was rotated.",
  ),
  disabled_api_key: new Rejection(
    "invalid_api_key",
    "This API key is disabled. Whoever gave it to you can enable it again.",
  ),
  expired_api_key: new Rejection(
    "invalid_api_key",
    "This API key has expired. Whoever gave it to you can extend it.",
  ),
  staging_api_key: otherEnvironmentRejection("staging", "production"),
  production_api_key: otherEnvironmentRejection("production", "staging"),
};

function otherEnvironmentRejection(own: Environment, here: Environment): Rejection<"invalid_api_key"> {
  return new Rejection(
    "invalid_api_key",
    `This API key is for ${own}, and this is ${here}. Use a key that begins with ${KEY_PREFIX[here]}.`,
  );
}

export const READ_ONLY_KEY = new Rejection(
  "read_only_key",
  "This API key is read-only. Use GET or HEAD, or a key with write access.",
);

export const NOT_FOUND = new Rejection(
  "not_found",
  `No such path. The paths of the API are listed at ${DOCS_PATH}.`,
);

export const BODY_TOO_LARGE = bodyTooLarge(MAX_BODY_BYTES);

/** What a 429 says as soon as its key has a strike. */
export const BAN_WARNING = "Requests before then may lead to a ban.";

/** Names the limit to wait for, and warns of a ban. */
export function rateLimited(
  window: "minute" | "day",
  { limit, strikes }: Pick<WindowState, "limit" | "strikes">,
  retryAfterSeconds: number,
): Rejection<"rate_limited"> {
  const requests = countOf(limit, "request");
  const message = `Too many requests: the limit is ${requests} a ${window}. ${retryAfterText(retryAfterSeconds)}`;
  const warning = strikes > 0 ? ` ${BAN_WARNING}` : "";
  return new Rejection("rate_limited", message + warning, retryAfterSeconds);
}

export function keyBanned(retryAfterSeconds: number): Rejection<"key_banned"> {
  return new Rejection(
    "key_banned",
    `This API key is temporarily banned because requests continued after a 429. ${retryAfterText(retryAfterSeconds)}`,
    retryAfterSeconds,
  );
}

/** The response precedes any request, so it has no rate limit headers. */
export const TOO_MANY_CONNECTIONS = temporarilyUnavailable(
  "Your address has too many open connections; reuse them",
  1,
);

export function authenticationUnavailable(retryAfterSeconds: number): Rejection<"unavailable"> {
  return temporarilyUnavailable("The API key cannot be verified right now", retryAfterSeconds);
}
