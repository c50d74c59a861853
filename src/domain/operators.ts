import { Rejection } from "../api/errors.ts";
import {
  type Attribution,
  type AuditAction,
  type AuditedValues,
  auditEntry,
  type NewAuditEntry,
} from "./audit.ts";

/** The roles of operators. Each may do what the roles before it may do, and more. */
export const ROLES = ["metrics", "viewer", "support", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** What operators with each role do. */
export const ROLE_MEANINGS: Readonly<Record<Role, string>> = {
  metrics: "reads /metrics, and cannot sign in: for Prometheus",
  viewer: "sees everything, and changes nothing",
  support: "also ends bans, corrects pets and orders, and rotates, disables and enables keys",
  admin: "may do everything",
};

/** Whether a role may call an operation with this least role. */
export function mayCall(role: Role, leastRole: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(leastRole);
}

/** Returns the least role that may call an operation. */
export function leastRoleOf(operation: { readonly method: string; readonly role?: Role }): Role {
  return operation.role ?? (operation.method === "GET" ? "viewer" : "admin");
}

/** A person or a program that operates the service. Times are milliseconds since the epoch. */
export interface Operator {
  readonly id: number;
  readonly name: string;
  readonly role: Role;
  /** The first and the last characters of the token. */
  readonly hint: string;
  readonly createdAt: number;
  /** When the token was issued. */
  readonly issuedAt: number;
  /** The time rounded down to the hour. */
  readonly lastUsedAt?: number;
  readonly revokedAt?: number;
}

export type NewOperator = Pick<Operator, "name" | "role">;

/**
 * Names of people, email addresses and names of programs. A name begins with a letter: it is never an identifier. In
 * audit entries of release 1.1.0, `token` is whoever had the token of a setting.
 */
export const OPERATOR_NAME = /^(?!(?:token|server)$)[a-z][a-z0-9._@+-]{0,63}$/;
export const OPERATOR_NAME_EXPECTED =
  "a letter and up to 63 more letters, digits and . _ @ + -, in lower case, other than token and server";

/** The number of operators that are not revoked. */
export const MAX_OPERATORS = 200;
/** The number of sessions of all operators. A new one ends the oldest. */
export const MAX_SESSIONS = 500;
export const MAX_SESSIONS_OF_OPERATOR = 100;
export const MAX_SIGN_IN_CODES = 100;

/** A browser that has signed in. Secrets are stored as their SHA-256 in hexadecimal. */
export interface OperatorSession {
  readonly cookieHash: string;
  readonly secretHash: string;
  readonly operatorId: number;
  readonly createdAt: number;
  readonly endsAt: number;
}

/** A code that signs an operator in once. */
export interface SignInCode {
  readonly codeHash: string;
  readonly operatorId: number;
  readonly endsAt: number;
}

/** All valid tokens, sessions and codes, by the hash of what a client sends. */
export interface OperatorAccess {
  readonly tokens: ReadonlyMap<string, Operator>;
  readonly sessions: ReadonlyMap<string, OperatorSession>;
  readonly codes: ReadonlyMap<string, SignInCode>;
}

export function operatorNotFound(id: number | bigint): Rejection<"operator_not_found"> {
  return new Rejection("operator_not_found", `Operator ${id} does not exist.`);
}

export function operatorNotActive(name: string): Rejection<"operator_not_active"> {
  return new Rejection("operator_not_active", `Operator ${name} is revoked. Create another one.`);
}

/** The audit trail identifies operators by name, so a name is never used by two of them. */
export function operatorExists(
  name: string,
  { id, revokedAt }: { readonly id: number; readonly revokedAt: number | null },
): Rejection<"operator_exists"> {
  const message =
    revokedAt === null
      ? `There is an operator ${name} already.`
      : `Operator ${id}, who is revoked, had the name ${name}. A name is not used again, so that the audit trail stays clear; choose another one.`;
  return new Rejection("operator_exists", message);
}

export function tooManyOperators(): Rejection<"too_many_operators"> {
  return new Rejection("too_many_operators", `There are ${MAX_OPERATORS} operators; revoke one first.`);
}

/** A token identifies one operator, so no other operator gets it. */
export function tokenOfOther({ name }: Pick<Operator, "name">): Rejection<"invalid_token"> {
  return new Rejection("invalid_token", `Operator ${name} has or had the token. Make another one.`);
}

export function tokenReplaced({ name }: Pick<Operator, "name">): Rejection<"invalid_token"> {
  return new Rejection("invalid_token", `The token of ${name} was replaced just now.`);
}

export function lastAdmin({ name }: Pick<Operator, "name">): Rejection<"last_admin"> {
  return new Rejection("last_admin", `Operator ${name} is the last admin. Create another one first.`);
}

/** Makes the audit entry of a change, for the transaction of the change. */
export function operatorEntry(
  action: AuditAction & `operator.${string}`,
  { id, name, ...operator }: Pick<Operator, "id" | "name"> & AuditedValues,
  by: Attribution,
): NewAuditEntry {
  return auditEntry(action, id, { ...by, after: { name, ...operator } });
}
