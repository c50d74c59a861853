/*
 * The sessions of operators, and the codes that start one. Sessions and codes without a `token_hash` are of earlier
 * releases and do not say which token they belong to. They are not read, and are deleted like all others.
 */

import {
  MAX_SESSIONS,
  MAX_SIGN_IN_CODES,
  type NewSignInCode,
  type OperatorSession,
  type SignInCode,
} from "../domain/operators.ts";
import { currentTokenOf } from "./operator-tokens.ts";
import { isAfterNewest, objectsOf, rowsOf } from "./sql/steps.ts";

const CODE_COLUMNS = `code_hash AS "codeHash", operator_id AS "operatorId", token_hash AS "tokenHash",
  ends_at AS "endsAt", made_by AS "madeBy", made_in AS "madeIn"`;

export function readSessions() {
  return objectsOf<OperatorSession>(
    `SELECT cookie_hash AS "cookieHash", secret_hash AS "secretHash", operator_id AS "operatorId",
       token_hash AS "tokenHash", made_in AS "madeIn", created_at AS "createdAt", ends_at AS "endsAt"
       FROM operator_sessions WHERE token_hash IS NOT NULL`,
  );
}

/** Adds a session. Deletes those that have ended, and the oldest of too many of the operator. */
export function* addSession(session: OperatorSession, endedBy: number) {
  const { cookieHash, secretHash, operatorId, tokenHash, madeIn, createdAt, endsAt } = session;
  const isTooOld = isAfterNewest(MAX_SESSIONS - 1, {
    key: "cookie_hash",
    from: "operator_sessions",
    of: "operator_id = ?",
    newestFirst: "created_at DESC, cookie_hash",
  });
  yield* rowsOf(`DELETE FROM operator_sessions WHERE ends_at <= ? OR ${isTooOld}`, endedBy, operatorId);
  yield* rowsOf(
    `INSERT INTO operator_sessions
       (cookie_hash, secret_hash, operator_id, token_hash, made_in, created_at, ends_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    cookieHash,
    secretHash,
    operatorId,
    tokenHash,
    madeIn ?? null,
    createdAt,
    endsAt,
  );
}

/** Deletes a session. Returns whether it existed. */
export function* endSession(cookieHash: string) {
  const end = "DELETE FROM operator_sessions WHERE cookie_hash = ? RETURNING cookie_hash";
  return (yield* rowsOf(end, cookieHash)).length > 0;
}

/** Deletes the codes of an operator, and all sessions but the one to keep. Returns how many sessions those were. */
export function* endSessions(operatorId: number, keeps = "") {
  yield* rowsOf("DELETE FROM sign_in_codes WHERE operator_id = ?", operatorId);
  const end =
    "DELETE FROM operator_sessions WHERE operator_id = ? AND cookie_hash <> ? RETURNING cookie_hash";
  return (yield* rowsOf(end, operatorId, keeps)).length;
}

/** Makes a session one of another token. */
export function* moveSession(cookieHash: string, tokenHash: string) {
  yield* rowsOf("UPDATE operator_sessions SET token_hash = ? WHERE cookie_hash = ?", tokenHash, cookieHash);
}

export function readCodes() {
  return objectsOf<SignInCode>(`SELECT ${CODE_COLUMNS} FROM sign_in_codes WHERE token_hash IS NOT NULL`);
}

/** Adds a code of the current token. Deletes those that have ended, and the oldest of too many of the operator. */
export function* addCode({ codeHash, operatorId, endsAt, madeBy, madeIn }: NewSignInCode, endedBy: number) {
  const isTooOld = isAfterNewest(MAX_SIGN_IN_CODES - 1, {
    key: "code_hash",
    from: "sign_in_codes",
    of: "operator_id = ?",
    newestFirst: "ends_at DESC, code_hash",
  });
  yield* rowsOf(`DELETE FROM sign_in_codes WHERE ends_at <= ? OR ${isTooOld}`, endedBy, operatorId);
  const insert = `INSERT INTO sign_in_codes (code_hash, operator_id, token_hash, ends_at, made_by, made_in)
    VALUES (?1, ?2, ${currentTokenOf("?2")}, ?3, ?4, ?5)`;
  yield* rowsOf(insert, codeHash, operatorId, endsAt, madeBy ?? null, madeIn ?? null);
}

/** Deletes and returns a code. */
export function* takeCode(codeHash: string) {
  const take = `DELETE FROM sign_in_codes WHERE code_hash = ? RETURNING ${CODE_COLUMNS}`;
  const [code] = yield* objectsOf<SignInCode>(take, codeHash);
  return code;
}
