import { cursorOf, type ListName } from "../../contract/cursor.ts";
import { dateTime, type ObjectSchema, queryInteger, type Schema } from "../../contract/schema.ts";
import type { AdminErrorCode } from "./errors.ts";

/** In front of every path of the admin API. */
export const ADMIN_BASE_PATH = "/api";

/** A row of the table of operations. */
export interface AdminOperation {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Relative to the base path; at most one `{parameter}`, the identifier. */
  readonly path: string;
  readonly tag: "Session" | "Server" | "Keys" | "Usage" | "Audit" | "Pets" | "Orders";
  readonly summary: string;
  readonly description: string;
  /** The identifier in the path, and the code of the 404 when it does not exist. */
  readonly identifier?: {
    readonly name: string;
    readonly notFound: AdminErrorCode;
    readonly description: string;
  };
  readonly query?: Readonly<Record<string, Schema<unknown>>>;
  readonly body?: ObjectSchema<unknown>;
  /** Without a body the status is 204. */
  readonly success: {
    readonly status: 200 | 201 | 204;
    readonly description: string;
    readonly body?: Schema<unknown>;
  };
  /** In addition to COMMON_ADMIN_ERRORS, or to OPEN_ERRORS if no token is needed. */
  readonly errors: readonly AdminErrorCode[];
  /** Whether it responds without a session or token. */
  readonly needsNoToken?: true;
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
