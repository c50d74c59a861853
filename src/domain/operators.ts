import { Rejection } from "../api/errors.ts";
import {
  type Attribution,
  type AuditAction,
  type AuditedValues,
  auditEntry,
  type NewAuditEntry,
} from "./audit.ts";

/** What an operator may do. Each role may do what those before it may. */
export const ROLES = ["metrics", "viewer", "support", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** What an operator with the role does. */
export const ROLE_MEANINGS: Readonly<Record<Role, string>> = {
  metrics: "reads /metrics, and cannot sign in: for Prometheus",
  viewer: "sees everything, and changes nothing",
  support: "also ends bans, corrects pets and orders, and rotates, disables and enables keys",
  admin: "may do everything",
};

/** Whether a role may do what at least another one may do. */
export function mayCall(role: Role, leastRole: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(leastRole);
}

/** The least role of an operator who may call an operation. */
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
  /** Of the token. */
  readonly issuedAt: number;
  /** To the hour. */
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

/** Those that are not revoked. */
export const MAX_OPERATORS = 200;
/** Of all operators: of more, the oldest end. One operator cannot end those of all others. */
export const MAX_SESSIONS = 500;
export const MAX_SESSIONS_OF_OPERATOR = 100;
export const MAX_SIGN_IN_CODES = 100;

/** A browser that has signed in. Of all secrets the SHA-256 is stored, in hexadecimal. */
export interface OperatorSession {
  readonly cookieHash: string;
  readonly secretHash: string;
  readonly operatorId: number;
  readonly createdAt: number;
  readonly endsAt: number;
}

/** It signs an operator in once. */
export interface SignInCode {
  readonly codeHash: string;
  readonly operatorId: number;
  readonly endsAt: number;
}

/** All that lets somebody in now, by the hash of what they send. */
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

/** The audit trail has the names of operators: a name that two of them had in turn would be that of nobody. */
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

/** The audit entry of a change. A store writes it in the transaction of the change. */
export function operatorEntry(
  action: AuditAction & `operator.${string}`,
  { id, name, ...operator }: Pick<Operator, "id" | "name"> & AuditedValues,
  by: Attribution,
): NewAuditEntry {
  return auditEntry(action, id, { ...by, after: { name, ...operator } });
}
