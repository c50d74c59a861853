/*
 * What an operator's credential may do, and what it ends with: with everything that it comes from. A token, a session
 * and a code each lead to the token that an operator has or had: a session remembers the token that made it, and a code
 * the token that was current when the code was made. A code that was made in a session ends with that session, and so
 * does the session by the code. So one rule holds for all three, whatever has changed since.
 */

import { Rejection } from "../../api/errors.ts";
import type { AuditAction } from "../../domain/audit.ts";
import {
  leastRoleOf,
  mayCall,
  type OperatorAccess,
  type OperatorSession,
  type Role,
  tokenExpired,
} from "../../domain/operators.ts";
import { forbiddenRole, replacedToken } from "../errors.ts";

/** The operator who has signed in or sent a token. */
export interface Principal {
  readonly id: number;
  readonly name: string;
  readonly role: Role;
  /** The hash of the token with which the operator was authenticated, or which made their session or code. */
  readonly tokenHash: string;
  /** When the overlap of an earlier token ends; undefined for the newest token. */
  readonly overlapEndsAt?: number | undefined;
  /** The hash of the session cookie, for a session. */
  readonly session?: string;
  /** The subject of an operator who signs in with a provider. */
  readonly subject?: string | undefined;
}

/** A token, a session or a code. */
export type FoundCredential = Pick<OperatorSession, "tokenHash" | "madeIn"> &
  Partial<Pick<OperatorSession, "endsAt">>;

/**
 * Finds who has a credential, with the role that they have now. Returns undefined if it has ended, or something that it
 * comes from: its session, its token or the overlap of that, its operator. The clock of the machine decides.
 */
export function principalWith(
  access: OperatorAccess,
  { tokenHash, madeIn, endsAt = Infinity }: FoundCredential,
  now: number,
): Principal | Rejection<"invalid_token"> | undefined {
  const token = access.tokens.get(tokenHash);
  if (token === undefined || now >= (token.validUntil ?? Infinity)) return undefined;
  const { operator, validUntil } = token;
  const { id, name, role, subject, expiresAt = Infinity } = operator;
  if (now >= expiresAt) return tokenExpired(operator);
  if (now >= endsAt) return undefined;
  if (madeIn !== undefined) {
    const session = access.sessions.get(madeIn);
    const maker = session && principalWith(access, session, now);
    if (maker === undefined || maker instanceof Rejection) return maker;
  }
  return { id, name, role, tokenHash, overlapEndsAt: validUntil, subject };
}

interface CalledOperation {
  readonly method: string;
  readonly role?: Role;
  readonly audited?: string;
  readonly makesCredential?: boolean;
}

/** Why a principal may not call an operation; undefined if they may. */
export function callRejection(
  principal: Principal,
  operation: CalledOperation,
): Rejection<"forbidden_role" | "replaced_token"> | undefined {
  const leastRole = leastRoleOf(operation);
  if (!mayCall(principal.role, leastRole)) return forbiddenRole(principal, leastRole);
  const isEarlier = principal.overlapEndsAt !== undefined;
  return isEarlier && changesCredentials(operation) ? replacedToken(principal) : undefined;
}

/** The actions whose target is a credential begin so. */
const CREDENTIALS = ["operator.", "key.", "admin."];
/** A ban is no part of a key. */
const UNBANNED: AuditAction = "key.unbanned";

/**
 * Whether an operation makes, changes or ends credentials: operators, their tokens, sessions and codes, or API keys. A
 * token that was replaced could stay for good with it, or lock others out.
 */
export function changesCredentials({ audited = "", makesCredential = false }: CalledOperation): boolean {
  return (
    makesCredential || (audited !== UNBANNED && CREDENTIALS.some((prefix) => audited.startsWith(prefix)))
  );
}
