import type { Awaitable } from "../../runtime/awaitable.ts";
import type { Rejection } from "../../api/errors.ts";
import type { NewSecret } from "../secrets.ts";
import type { Attribution, NewAuditEntry } from "../audit.ts";
import type {
  NewOperator,
  NewSignInCode,
  Operator,
  OperatorAccess,
  AdmittedOperator,
  OperatorChange,
  ProviderOperator,
  RejectedOperator,
  UnchangedOperator,
  OperatorSession,
  SignInCode,
} from "../operators.ts";

/**
 * Operators, their tokens, sessions and sign-in codes. Every change is one transaction with its audit entry. Rotating
 * or revoking an operator ends their sessions.
 */
export interface OperatorStore {
  /**
   * Lists the oldest first, by default of all names: at most 500, first of all those who are active, then those who
   * expired last.
   */
  listOperators(name?: string): Awaitable<readonly Operator[]>;
  /** Creates an operator with a name that nobody has who is not revoked. */
  createOperator(
    operator: NewOperator,
    token: NewSecret,
    by: Attribution,
  ): Promise<Operator | Rejection<"operator_exists" | "too_many_operators">>;
  /**
   * Creates an admin if there has never been one without an expiry, and the name and token are new. Of concurrent
   * calls, one does.
   */
  createFirstOperator(
    operator: NewOperator,
    token: NewSecret,
    by: Attribution,
  ): Promise<Operator | undefined>;
  /**
   * Sets the token of the operator with this name and role, who is created if there is none. Returns undefined if the
   * operator already has the token. Rejects a token that was used before, and any token of a revoked operator: neither
   * becomes valid again.
   */
  importOperator(
    operator: NewOperator,
    token: NewSecret,
    by: Attribution,
  ): Promise<
    | Operator
    | undefined
    | Rejection<"invalid_token" | "operator_not_active" | "operator_exists" | "too_many_operators">
  >;
  /**
   * Changes the role or the expiry. At least one admin has no expiry. The sessions of an operator who can no longer
   * sign in end. One who signs in with a provider gets no more than it grants.
   */
  updateOperator(id: number, change: OperatorChange, by: Attribution): Promise<Operator | UnchangedOperator>;
  /**
   * Admits a person whom a provider has authenticated. The token stays while the same person is active; otherwise the
   * given one replaces it. Rejects a revoked person, by the name and by the subject, until an operator of that name is
   * created again. The operators of the person's other addresses expire.
   */
  admitOperator(
    person: ProviderOperator,
    token: NewSecret,
    by: Attribution,
  ): Promise<AdmittedOperator | RejectedOperator>;
  /** Lets every operator of a person expire at once. */
  expirePerson(subject: string, by: Attribution): Promise<void>;
  /** Rotates the token. One who signs in with a provider has none. */
  rotateOperator(
    id: number,
    token: TokenRotation,
    by: Attribution,
  ): Promise<
    | Operator
    | Rejection<"operator_not_found" | "operator_not_active" | "operator_of_provider" | "invalid_token">
  >;
  /** Revokes a person by every address. Leaves an operator who is already revoked as it is. */
  revokeOperator(
    id: number,
    by: Attribution,
  ): Promise<Operator | Rejection<"operator_not_found" | "last_admin">>;
  /** Records when an operator last sent a request, to the hour. */
  recordUse(id: number, at: number): Promise<void>;

  readAccess(): Awaitable<OperatorAccess>;
  /** Deletes expired codes, and the oldest of too many of the operator. */
  createCode(code: NewSignInCode, now: number): Promise<void>;
  /** Deletes and returns the code. Of concurrent calls, one gets it. */
  takeCode(codeHash: string): Promise<SignInCode | undefined>;
  /**
   * Creates the session if its token still works, and returns whether it does. Deletes expired sessions, and the oldest
   * of too many of the operator.
   */
  createSession(session: OperatorSession, entry: NewAuditEntry): Promise<boolean>;
  /** Records the entry if the session exists. */
  deleteSession(cookieHash: string, entry: NewAuditEntry): Promise<void>;
  /** Deletes all sessions and codes of an operator. */
  deleteSessions(operatorId: number, by: Attribution): Promise<void>;
}

export interface TokenRotation extends NewSecret {
  /** The hash of the session that stays valid: from now on it is one of the new token. */
  readonly keeps?: string | undefined;
  /** The hash of the only token that may be replaced. If the operator has another one, nothing changes. */
  readonly replaces?: string | undefined;
  /** When the earlier tokens, and with them their sessions and codes, stop working; by default at once. */
  readonly overlapEndsAt?: number | undefined;
}
