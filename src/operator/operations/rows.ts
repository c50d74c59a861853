/* The parts that rows in the table of operations, and their schemas, share. */

import type { BoundedList, Operation } from "../../api/api.ts";
import { cursorSchema, type ListName } from "../../domain/cursor.ts";
import { dateTime, integer, line, nullable, object, queryInteger, type Schema } from "../../api/schema.ts";
import { type AuditAction, MAX_REASON_LENGTH } from "../../domain/audit.ts";
import { EXAMPLE_TIME } from "../../domain/fields.ts";
import { type Role, ROLES } from "../../domain/operators.ts";
import type { AdminErrorCode } from "../errors.ts";

export interface AdminOperation extends Operation<AdminErrorCode> {
  readonly tag:
    | "Session"
    | "Operators"
    | "Server"
    | "Keys"
    | "Plans"
    | "Usage"
    | "Requests"
    | "Audit"
    | "Pets"
    | "Orders";
  readonly identifier?: NonNullable<Operation<AdminErrorCode>["identifier"]> & {
    readonly name: "keyId" | "petId" | "orderId" | "operatorId";
  };
  /** Whether the operation works without a session or token. */
  readonly needsNoToken?: true;
  /** Whether only a running server can execute it. Servers and commands ask one for it through the database. */
  readonly needsRunningServer?: true;
  /** The audit entry that an operation other than a GET writes; `nothing` if it changes nothing. */
  readonly audited?: string;
  /** Whether it makes a credential without an audit entry of its own. */
  readonly makesCredential?: true;
  /** The least role of an operator who may call the operation: by default viewer for a GET, admin otherwise. */
  readonly role?: Role;
  /**
   * As how many requests a call counts in the rate of its operator: about one for every 5 ms that it takes with 10,000
   * keys; by default 1.
   */
  readonly cost?: number;
}

/** The role of operations that every operator may call. */
export const EVERY_OPERATOR = ROLES[0];

/** Whether the operation changes data. */
export function changesData({ audited = "nothing" }: AdminOperation): boolean {
  return audited !== "nothing";
}

/** The errors of every operation. */
export const UNAUTHENTICATED_ERRORS = [
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
  "too_many_requests",
  "forbidden_role",
  ...UNAUTHENTICATED_ERRORS,
] as const satisfies readonly AdminErrorCode[];

export const ADMIN_PAGE_LIMIT = { min: 1, max: 500, default: 50 } as const;

export const limit = queryInteger(ADMIN_PAGE_LIMIT);
export const since = dateTime("From this time on");
export const until = dateTime("Before this time");
export function cursor(list: ListName): Schema<bigint> {
  return cursorSchema(list, "the nextCursor of the page before");
}

export const count = (description: string) => integer({ min: 0, max: Number.MAX_SAFE_INTEGER, description });
export const time = (description: string) => dateTime({ description, examples: [EXAMPLE_TIME] });

export const nextCursor = nullable(line(40, "`cursor` of the next page"), "Null on the last page");

/** The body of a change that is final or severe. Clients of release 1.1.0 send none. */
export const Reasoned = object(
  "Why it is done",
  {},
  { reason: line(MAX_REASON_LENGTH, "Why this is done, for the audit trail") },
);

export function ok<S extends Schema<unknown>>(description: string, body: S) {
  return { status: 200, description, body } as const;
}

export function created<S extends Schema<unknown>>(description: string, body: S) {
  return { status: 201, description, body } as const;
}

type IdentifierIn<Path> = Path extends `${string}{${infer Noun}Id}${string}`
  ? { readonly identifier: { name: `${Noun}Id`; notFound: `${Noun}_not_found`; description: string } }
  : unknown;

function identifierIn(path: string) {
  const [, noun] = /\{(\w+)Id\}/.exec(path) ?? [];
  const description = `Identifier of the ${noun === "key" ? "API key" : noun}`;
  return noun && { identifier: { name: `${noun}Id`, notFound: `${noun}_not_found`, description } };
}

type Tag = AdminOperation["tag"];
type Row = Omit<AdminOperation, "tag" | "identifier"> &
  BoundedList &
  ({ readonly method: "GET" } | { readonly audited: AuditAction | "nothing" }) &
  // A question has the operation and its query, and no body.
  ({ readonly needsRunningServer?: never } | { readonly needsRunningServer: true; readonly body?: never });
type Rows = Readonly<Record<string, Row>>;

/**
 * Makes the operations that the documentation shows together. The path shows what the identifier names. A row that is
 * not valid stays in the result, so that the type check reports the row and not its users.
 */
export function tagged<
  const T extends Tag,
  const R extends Readonly<Record<string, { readonly path: string }>>,
>(tag: T, rows: R & Rows) {
  const complete = Object.entries(rows).map(([id, row]) => [id, { ...row, tag, ...identifierIn(row.path) }]);
  return Object.fromEntries(complete) as {
    readonly [Id in keyof R]: R[Id] & { readonly tag: T } & IdentifierIn<R[Id]["path"]>;
  };
}
