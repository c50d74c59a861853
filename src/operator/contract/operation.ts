import type { Operation } from "../../api/api.ts";
import { cursorOf, type ListName } from "../../api/cursor.ts";
import { dateTime, queryInteger, type Schema } from "../../api/schema.ts";
import type { AdminErrorCode } from "./errors.ts";

/** In front of every path of the admin API. */
export const ADMIN_BASE_PATH = "/api";

/** A row of the table of operations. */
export interface AdminOperation extends Operation<AdminErrorCode> {
  readonly tag: "Session" | "Server" | "Keys" | "Usage" | "Audit" | "Pets" | "Orders";
  /** Whether it responds without a session or token. */
  readonly needsNoToken?: true;
  readonly deprecated?: true;
}

/** The errors of every operation. */
export const OPEN_ERRORS = [
  "forbidden_host",
  "forbidden_origin",
  "internal_error",
  "unavailable",
] as const satisfies readonly AdminErrorCode[];

/** The errors of every operation that needs a session or token. */
export const COMMON_ADMIN_ERRORS = [
  "not_signed_in",
  "invalid_token",
  "too_many_attempts",
  ...OPEN_ERRORS,
] as const satisfies readonly AdminErrorCode[];

export const BODY_ERRORS = [
  "invalid_json",
  "invalid_body",
  "body_too_large",
  "unsupported_media_type",
] as const satisfies readonly AdminErrorCode[];

export const ADMIN_PAGE_LIMIT = { min: 1, max: 500, default: 50 } as const;

export const limit = queryInteger(ADMIN_PAGE_LIMIT);
export const since = dateTime({ description: "From this time on" });
export const until = dateTime({ description: "Before this time" });

export function cursor(list: ListName): Schema<bigint> {
  return cursorOf(list, "the nextCursor of the page before");
}

/** A success with a body. */
export function ok<S extends Schema<unknown>>(description: string, body: S) {
  return { status: 200, description, body } as const;
}
