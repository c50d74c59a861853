import { Rejection } from "../api/errors.ts";
import { formatOptionalTime, formatTime } from "../text/formatting.ts";
import {
  type Attribution,
  type AuditAction,
  type AuditedValues,
  auditEntry,
  changeOf,
  type NewAuditEntry,
} from "./audit.ts";

/** The roles of operators. Each may do what the roles before it may do, and more. */
export const ROLES = ["metrics", "viewer", "support", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** What operators with each role do. */
export const ROLE_MEANINGS: Readonly<Record<Role, string>> = {
  metrics: "reads /metrics, and cannot sign in: for Prometheus",
  viewer: "sees everything, and changes nothing",
  support: "also corrects pets and orders, and rotates, disables, enables and unbans keys",
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
  /** When the tokens and sessions of the operator stop working. */
  readonly expiresAt?: number;
  /** When the earlier tokens stop working, after a rotation with an overlap. */
  readonly overlapEndsAt?: number;
  readonly revokedAt?: number;
  /**
   * The issuer and the subject by which a provider identifies the operator, who expires 12 hours after the last sign-in
   * with it.
   */
  readonly subject?: string;
}

/** The hint of a token that nobody knows: that of an operator who signs in with a provider. */
export const NO_TOKEN = "none";

/** A person who has signed in with a provider, which has verified the address that is the name. */
export type ProviderOperator = Required<Pick<Operator, "name" | "role" | "expiresAt" | "subject">>;

/** The operator who was let in, and the hash of the token for their session. */
export interface AdmittedOperator {
  readonly operator: Operator;
  readonly tokenHash: string;
}

/** Why a person is not let in. */
export type RejectedOperator = Rejection<"operator_not_active" | "too_many_operators" | "last_admin">;

export type NewOperator = Pick<Operator, "name" | "role" | "expiresAt">;

/** Null removes the expiry. */
export type OperatorChange = Partial<Pick<Operator, "role">> & { readonly expiresAt?: number | null };

/** Why an operator is not changed. */
export type UnchangedOperator = Rejection<
  "operator_not_found" | "operator_not_active" | "operator_of_provider" | "too_many_operators" | "last_admin"
>;

export const OPERATOR_STATES = ["active", "expired", "revoked"] as const;

export function operatorState(
  { revokedAt, expiresAt = Infinity }: Pick<Operator, "revokedAt" | "expiresAt">,
  now: number,
): (typeof OPERATOR_STATES)[number] {
  if (revokedAt !== undefined) return "revoked";
  return expiresAt <= now ? "expired" : "active";
}

/**
 * Names of people, email addresses and names of programs. A name begins with a letter: it is never an identifier. In
 * audit entries of release 1.1.0, `token` is whoever had the token of a setting.
 */
export const OPERATOR_NAME = /^(?!(?:token|server)$)[a-z][a-z0-9._@+-]{0,63}$/;
export const OPERATOR_NAME_EXPECTED =
  "a letter and up to 63 more letters, digits and . _ @ + -, in lower case, other than token and server";

/** The number of operators that are active. */
export const MAX_OPERATORS = 200;
/** How many sessions, codes and earlier tokens in an overlap each operator has. A new one ends the oldest. */
export const MAX_SESSIONS = 50;
export const MAX_SIGN_IN_CODES = 5;
export const MAX_EARLIER_TOKENS = 10;

/** A browser that has signed in. Secrets are stored as their SHA-256 in hexadecimal. */
export interface OperatorSession {
  readonly cookieHash: string;
  readonly secretHash: string;
  readonly operatorId: number;
  /** The token that made the session, or that was current when its code was made. The session ends with it. */
  readonly tokenHash: string;
  /** The cookie of the session in which its code was made. The session ends with that one. */
  readonly madeIn?: string | undefined;
  readonly createdAt: number;
  readonly endsAt: number;
}

/** A new code that signs an operator in once. */
export interface NewSignInCode {
  readonly codeHash: string;
  readonly operatorId: number;
  readonly endsAt: number;
  /** The command that made the code, and its user: `admin-url (root)`. Codes of release 1.1.0 have none. */
  readonly madeBy?: string;
  /** The cookie of the session in which it was made, as its hash; undefined if a command made it. */
  readonly madeIn?: string | undefined;
}

export interface SignInCode extends NewSignInCode {
  /** The token that was current when the code was made. */
  readonly tokenHash: string;
}

/** A token that was found, and its operator. */
export interface OperatorCredential {
  readonly operator: Operator;
  /** Set on a token that was replaced: from this time on, only its successor works. */
  readonly validUntil?: number;
}

/**
 * All tokens, sessions and codes of operators who are not revoked, by the hash of what a client sends. Expired tokens,
 * sessions and codes are included.
 */
export interface OperatorAccess {
  readonly tokens: ReadonlyMap<string, OperatorCredential>;
  readonly sessions: ReadonlyMap<string, OperatorSession>;
  readonly codes: ReadonlyMap<string, SignInCode>;
}

export function operatorNotFound(id: number | bigint): Rejection<"operator_not_found"> {
  return new Rejection("operator_not_found", `Operator ${id} does not exist.`);
}

export function operatorRevoked({
  name,
  role,
}: Pick<Operator, "name" | "role">): Rejection<"operator_not_active"> {
  const message = `Operator ${name} is revoked. An admin lets them in again with a new operator of that name: petstore operators create --name ${name} --role ${role}`;
  return new Rejection("operator_not_active", message);
}

type ExpiredOperator = Pick<Operator, "name" | "expiresAt" | "subject">;

export function operatorExpired(operator: ExpiredOperator): Rejection<"operator_not_active"> {
  return new Rejection("operator_not_active", expiredText(operator));
}

/** The rejection of a request with the token or a session of an operator who has expired. */
export function tokenExpired(operator: ExpiredOperator): Rejection<"invalid_token"> {
  return new Rejection("invalid_token", expiredText(operator));
}

function expiredText({ name, expiresAt = 0, subject }: ExpiredOperator): string {
  if (subject !== undefined)
    return `The sign-in of ${name} expired at ${formatTime(expiresAt)}. Sign in again with the provider.`;
  return `The token of ${name} expired at ${formatTime(expiresAt)}. An admin makes it valid again: petstore operators update ${name} --expires 90d`;
}

/** The audit trail identifies operators by name, so two of them never have the same one at a time. */
export function operatorExists(name: string): Rejection<"operator_exists"> {
  return new Rejection("operator_exists", `There is an operator ${name} already.`);
}

export function tooManyOperators(): Rejection<"too_many_operators"> {
  const message = `There are ${MAX_OPERATORS} active operators, which is the limit. An admin revokes one first.`;
  return new Rejection("too_many_operators", message);
}

/** A token identifies one operator, so no other operator gets it. */
export function tokenOfOther({ name }: Pick<Operator, "name">): Rejection<"invalid_token"> {
  return new Rejection("invalid_token", `Operator ${name} has or had the token. Make another one.`);
}

export function tokenReplaced({ name }: Pick<Operator, "name">): Rejection<"invalid_token"> {
  return new Rejection("invalid_token", `The token of ${name} was replaced. Use the new one.`);
}

export function lastAdmin({ name }: Pick<Operator, "name">): Rejection<"last_admin"> {
  const message = `Operator ${name} is the last admin whose token does not expire. Create another one first.`;
  return new Rejection("last_admin", message);
}

export function operatorOfProvider({ name }: Pick<Operator, "name">): Rejection<"operator_of_provider"> {
  const message = `The provider decides on the role and the expiry of ${name}, who signs in with it. Change a rule of --oidc-role, or the claims there.`;
  return new Rejection("operator_of_provider", message);
}

/** What such a person made for themselves would outlive the sign-in. */
export function operatorWithoutToken({ name }: Pick<Operator, "name">): Rejection<"operator_of_provider"> {
  const message = `Operator ${name} signs in with the provider and has no token. For petstore login, the console makes a code on its page of settings.`;
  return new Rejection("operator_of_provider", message);
}

type Allowed = Pick<Operator, "role" | "expiresAt">;

/** Whether an operator has a higher role, or a later expiry. */
export function allowsMore(after: Allowed, before: Allowed): boolean {
  return !mayCall(before.role, after.role) || (after.expiresAt ?? Infinity) > (before.expiresAt ?? Infinity);
}

/** Whether the operator can do everything, without an end. There is always one who can. */
export function isLastingAdmin({ role, expiresAt }: Pick<Operator, "role" | "expiresAt">): boolean {
  return role === "admin" && expiresAt === undefined;
}

/** Makes the audit entry of a change, for the transaction of the change. */
export function operatorEntry(
  action: AuditAction & `operator.${string}`,
  { id, name, ...operator }: Pick<Operator, "id" | "name"> & AuditedValues,
  by: Attribution,
): NewAuditEntry {
  return auditEntry(action, id, { ...by, after: { name, ...operator } });
}

/** Makes the audit entry of a change of the role, the expiry or the person. Returns undefined if nothing changes. */
export function operatorUpdateEntry(
  before: Operator,
  after: Operator,
  by: Attribution,
): NewAuditEntry | undefined {
  const changed = changeOf(changeableValues(before), changeableValues(after));
  const { id, name } = before;
  return (
    changed && auditEntry("operator.updated", id, { ...by, ...changed, after: { name, ...changed.after } })
  );
}

function changeableValues({ role, expiresAt, subject }: Operator) {
  return { role, expiresAt: formatOptionalTime(expiresAt), subject: subject ?? null };
}
