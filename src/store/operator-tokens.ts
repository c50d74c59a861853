/*
 * The tokens of operators. A token is in one of three states, which follow one another:
 *
 *   current   `replaced_at` is NULL. Every operator has one. It works unless the operator has expired or is revoked.
 *   earlier   `valid_until` is set: the token was replaced with an overlap, and works until that time.
 *   ended     `replaced_at` is set and `valid_until` is NULL. It never works again, and stays in the table so that
 *             nobody gets it a second time.
 */

import type { NewSecret } from "../domain/api-keys.ts";
import { MAX_EARLIER_TOKENS } from "../domain/operators.ts";
import { isAfterNewest, numberRowsOf, rowsOf } from "./statements.ts";

const IS_CURRENT = "replaced_at IS NULL";
const IS_EARLIER = "valid_until IS NOT NULL";

/** The operators with their current tokens, as the table of a SELECT. */
export const OPERATORS_WITH_TOKENS = `operators JOIN operator_tokens ON operator_id = operators.id AND ${IS_CURRENT}`;

/** An expression for the current token of an operator. */
export const currentTokenOf = (operatorId: string) =>
  `(SELECT hash FROM operator_tokens WHERE operator_id = ${operatorId} AND ${IS_CURRENT})`;

/** An expression for the time at which the last earlier token of an operator stops working. */
export const OVERLAP_ENDS_AT = `(SELECT max(valid_until) FROM operator_tokens AS earlier
    WHERE earlier.operator_id = operators.id AND earlier.${IS_EARLIER})`;

interface EarlierToken {
  readonly hash: string;
  readonly operatorId: number;
  readonly validUntil: number;
}

/** Reads the earlier tokens of all operators, including those whose overlap is over. */
export function readEarlierTokens() {
  return numberRowsOf<EarlierToken>(
    `SELECT hash, operator_id AS "operatorId", valid_until AS "validUntil" FROM operator_tokens WHERE ${IS_EARLIER}`,
  );
}

/** Finds the operator who has the token, or had it. */
export function* findTokenOwner({ hash }: NewSecret) {
  const select = "SELECT name FROM operator_tokens JOIN operators ON id = operator_id WHERE hash = ?";
  const [owner] = yield* rowsOf<{ name: string }>(select, hash);
  return owner;
}

/** Whether the token is the current one of an operator who is not revoked. */
export function* isCurrentToken(operatorId: number, hash: string) {
  const select = `SELECT hash FROM ${OPERATORS_WITH_TOKENS} WHERE revoked_at IS NULL AND operator_id = ? AND hash = ?`;
  return (yield* rowsOf(select, operatorId, hash)).length > 0;
}

/** Whether the token is an earlier one that still works. */
export function* isInOverlap(operatorId: number, hash: string, now: number) {
  const select = "SELECT hash FROM operator_tokens WHERE operator_id = ? AND hash = ? AND valid_until > ?";
  return (yield* rowsOf(select, operatorId, hash, now)).length > 0;
}

export function* addToken(operatorId: number, { hash, hint }: NewSecret, at: number) {
  const insert = "INSERT INTO operator_tokens (hash, operator_id, hint, issued_at) VALUES (?, ?, ?, ?)";
  yield* rowsOf(insert, hash, operatorId, hint, at);
}

interface Replacement {
  readonly at: number;
  /** The time by which earlier overlaps have ended. */
  readonly endedBy: number;
  readonly overlapEndsAt: number | undefined;
}

/** Makes the token the current one. With an overlap, the one before becomes an earlier token; without, it ends. */
export function* replaceCurrentToken(
  operatorId: number,
  token: NewSecret,
  { at, endedBy, overlapEndsAt }: Replacement,
) {
  if (overlapEndsAt === undefined) yield* endEarlierTokens(operatorId);
  else yield* limitEarlierTokens(operatorId, { endedBy, overlapEndsAt });
  const replace = `UPDATE operator_tokens SET replaced_at = ?, valid_until = ? WHERE operator_id = ? AND ${IS_CURRENT}`;
  yield* rowsOf(replace, at, overlapEndsAt ?? null, operatorId);
  yield* addToken(operatorId, token, at);
}

/** Ends all earlier tokens of an operator. */
export function* endEarlierTokens(operatorId: number) {
  const end = `UPDATE operator_tokens SET valid_until = NULL WHERE operator_id = ? AND ${IS_EARLIER}`;
  yield* rowsOf(end, operatorId);
}

/**
 * Prepares a rotation with an overlap: ends the earlier tokens whose overlap is over and the oldest of too many, and
 * lets none of them work longer than the new overlap.
 */
function* limitEarlierTokens(
  operatorId: number,
  { endedBy, overlapEndsAt }: { readonly endedBy: number; readonly overlapEndsAt: number },
) {
  const isTooOld = isAfterNewest(MAX_EARLIER_TOKENS - 1, {
    key: "hash",
    from: `operator_tokens WHERE operator_id = ?1 AND ${IS_EARLIER}`,
    newestFirst: "issued_at DESC, hash DESC",
  });
  const end = `UPDATE operator_tokens SET valid_until = NULL
    WHERE operator_id = ?1 AND (valid_until <= ?2 OR ${isTooOld})`;
  yield* rowsOf(end, operatorId, endedBy);
  const shorten = "UPDATE operator_tokens SET valid_until = ?1 WHERE operator_id = ?2 AND valid_until > ?1";
  yield* rowsOf(shorten, overlapEndsAt, operatorId);
}
