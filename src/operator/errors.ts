import { errorTable, rejection, type Rejection, retryAfter } from "../api/errors.ts";
import { kibibytes } from "../api/formatting.ts";

/** The longest valid body is a key with notes of 2,000 escaped surrogate pairs. */
export const MAX_ADMIN_BODY_BYTES = 64 * 1024;

/** Of an operation that needs no token: JSON of 64 KiB takes 8 ms to parse, which anybody could ask for. */
export const MAX_OPEN_BODY_BYTES = 2 * 1024;

/** The closed set of error codes of the admin API, each with its status. */
export const ADMIN_ERRORS = errorTable({
  not_signed_in: { status: 401, meaning: "The request has neither a session cookie nor the admin token." },
  invalid_token: { status: 401, meaning: "The admin token is wrong, or was replaced." },
  forbidden_host: {
    status: 403,
    meaning: "`Host` is neither an IP address, `localhost` nor a name in `--admin-hostname`.",
  },
  forbidden_origin: { status: 403, meaning: "The request comes from a page of another origin." },
  key_not_found: { status: 404, meaning: "No API key has this identifier or secret." },
  pet_not_found: { status: 404, meaning: "No pet has this identifier." },
  order_not_found: { status: 404, meaning: "No order has this identifier." },
  key_not_active: { status: 409, meaning: "The API key is revoked or expired, so it cannot be changed." },
  pet_ordered: { status: 409, meaning: "The pet has a placed order. Complete or cancel the order first." },
  pet_has_orders: { status: 409, meaning: "The pet has orders, so it cannot be deleted." },
  order_closed: { status: 409, meaning: "The order is already completed or cancelled." },
  body_too_large: {
    status: 413,
    meaning: `The request body exceeds ${kibibytes(MAX_ADMIN_BODY_BYTES)}, or ${kibibytes(MAX_OPEN_BODY_BYTES)} to sign in.`,
  },
  too_many_attempts: {
    status: 429,
    meaning: "Too many wrong tokens were sent. `Retry-After` has the seconds to wait.",
  },
});

export type AdminErrorCode = keyof typeof ADMIN_ERRORS;

export const NOT_SIGNED_IN = rejection(
  "not_signed_in",
  "Sign in first: open the URL that petstore admin-url prints, or send the admin token in the Authorization header: Bearer <token>.",
);
export const INVALID_TOKEN = rejection(
  "invalid_token",
  "The admin token is wrong or was replaced. petstore admin-url prints the current one.",
);

export function tooManyAttempts(retryAfterSeconds: number) {
  const message = `Too many wrong tokens were sent. ${retryAfter(retryAfterSeconds)}`;
  return { ...rejection("too_many_attempts", message), retryAfterSeconds };
}

export const FORBIDDEN_HOST = rejection(
  "forbidden_host",
  "The Host header must have an IP address, localhost or a name that the server was given with --admin-hostname.",
);
export const FORBIDDEN_ORIGIN = rejection(
  "forbidden_origin",
  "The request comes from a page of another origin, which the Origin or Sec-Fetch-Site header tells.",
);
export const ADMIN_PATH_NOT_FOUND = rejection(
  "not_found",
  "No such path. The paths of the admin API are listed at /api/openapi.json.",
);

export function keyNotFound(id: number | bigint): Rejection<"key_not_found"> {
  return rejection("key_not_found", `Key ${id} does not exist.`);
}

/** At least one of the fields is required. */
export function nothingToChange(fields: readonly string[]): Rejection<"invalid_body"> {
  return rejection("invalid_body", `At least one of ${fields.join(", ")} is required.`);
}
