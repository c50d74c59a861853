/*
 * The tokens of operators. Every operator has a current one. A token that was replaced works until its `valid_until`,
 * or never again without one, and stays in the table: a setting that still has it would make it valid again. One that
 * nobody knows is deleted instead.
 */

import type { NewSecret } from "../domain/secrets.ts";
import { MAX_EARLIER_TOKENS, NO_TOKEN } from "../domain/operators.ts";
import { isAfterNewest, numberRowsOf, rowsOf } from "./sql/steps.ts";

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

/** Whether the token of an operator works at a time, unless the operator has expired or is revoked. */
export function* isWorkingToken(operatorId: number, hash: string, now: number) {
  const select = `SELECT hash FROM operator_tokens WHERE operator_id = ? AND hash = ? AND (${IS_CURRENT} OR valid_until > ?)`;
  return (yield* rowsOf(select, operatorId, hash, now)).length > 0;
}

export function* addToken(operatorId: number, { hash, hint }: NewSecret, at: number) {
  const insert = "INSERT INTO operator_tokens (hash, operator_id, hint, issued_at) VALUES (?, ?, ?, ?)";
  yield* rowsOf(insert, hash, operatorId, hint, at);
}

interface Replacement {
  readonly at: number;
  /** When the token before and earlier ones stop working; undefined for at once. */
  readonly overlapEndsAt: number | undefined;
}

/** With a sign-in a day, a person would otherwise leave 250 tokens a year. */
const DELETE_UNKNOWN = `DELETE FROM operator_tokens WHERE operator_id = ? AND ${IS_CURRENT} AND hint = ?`;

/** Makes the token the current one. An earlier one that ends before the overlap keeps that end. */
export function* replaceCurrentToken(
  operatorId: number,
  token: NewSecret,
  { at, overlapEndsAt }: Replacement,
) {
  const replace = `UPDATE operator_tokens SET replaced_at = coalesce(replaced_at, ?1), valid_until = ?2
    WHERE operator_id = ?3 AND (${IS_CURRENT} OR valid_until > coalesce(?2, 0))`;
  if (overlapEndsAt === undefined) yield* rowsOf(DELETE_UNKNOWN, operatorId, NO_TOKEN);
  yield* rowsOf(replace, at, overlapEndsAt ?? null, operatorId);
  yield* endEarlierTokens(operatorId, MAX_EARLIER_TOKENS);
  yield* addToken(operatorId, token, at);
}

/** Ends the earlier tokens of an operator, except for the newest. */
export function* endEarlierTokens(operatorId: number, kept = 0) {
  const isTooOld = isAfterNewest(kept, {
    key: "hash",
    from: "operator_tokens",
    of: `operator_id = ?1 AND ${IS_EARLIER}`,
    newestFirst: "issued_at DESC, hash DESC",
  });
  yield* rowsOf(
    `UPDATE operator_tokens SET valid_until = NULL WHERE operator_id = ?1 AND ${isTooOld}`,
    operatorId,
  );
}
