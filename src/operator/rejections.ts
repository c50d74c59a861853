import { kibibytes, plural } from "../api/formatting.ts";
import type { Rejection } from "../api/errors.ts";
import type { AdminErrorCode } from "./contract/errors.ts";

/** The messages of the admin API's own errors. Those that it shares with the public API are in contract/errors.ts. */

function rejection<C extends AdminErrorCode>(code: C, message: string): Rejection<C> {
  return { code, message };
}

export const NOT_SIGNED_IN = rejection(
  "not_signed_in",
  "Sign in first: open the URL that petstore admin-url prints, or send the admin token in the Authorization header: Bearer <token>.",
);
export const INVALID_TOKEN = rejection(
  "invalid_token",
  "The admin token is wrong or was replaced. petstore admin-url prints the current one.",
);

export function tooManyAttempts(retryAfterSeconds: number) {
  const message = `Too many wrong tokens were sent. Retry after ${plural(retryAfterSeconds, "second")}.`;
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
export function adminBodyTooLarge(maxBytes: number): Rejection<"body_too_large"> {
  return rejection("body_too_large", `The request body must not exceed ${kibibytes(maxBytes)}.`);
}

export function keyNotFound(id: number | bigint): Rejection<"key_not_found"> {
  return rejection("key_not_found", `Key ${id} does not exist.`);
}

/** At least one of the fields is required. */
export function nothingToChange(fields: readonly string[]): Rejection<"invalid_body"> {
  return rejection("invalid_body", `At least one of ${fields.join(", ")} is required.`);
}

/** A message of the domain, such as `key 7 does not exist`, as a sentence. */
export function sentence<C extends AdminErrorCode>(code: C, message: string): Rejection<C> {
  return rejection(code, `${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
}
