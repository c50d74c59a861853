import type { Stores } from "../../src/domain/ports/stores.ts";

/** The step after which a session says which token made it. */
export const SESSION_STEP = "the token of each session and sign-in code of an operator";

const hash = (digit: number) => String(digit).repeat(64);

/** Adds sessions of release 1.2.0: of an operator, and of one whose token was replaced with an overlap. */
export const ADD_SESSIONS = [
  "INSERT INTO operators (name, role, created_at) VALUES ('ann', 'admin', 0), ('bob', 'admin', 0)",
  `INSERT INTO operator_tokens (hash, operator_id, hint, issued_at, replaced_at, valid_until) VALUES
    ('${hash(0)}', 1, '', 0, 1, NULL), ('${hash(1)}', 1, '', 1, NULL, NULL),
    ('${hash(2)}', 2, '', 0, 1, 9000000000000), ('${hash(3)}', 2, '', 1, NULL, NULL)`,
  `INSERT INTO operator_sessions (cookie_hash, secret_hash, operator_id, created_at, ends_at) VALUES
    ('${hash(4)}', '${hash(4)}', 1, 2, 9000000000000), ('${hash(5)}', '${hash(5)}', 2, 2, 9000000000000)`,
];

export async function sessionTokens({ operators }: Pick<Stores, "operators">) {
  const { sessions } = await operators.readAccess();
  return [...sessions.values()].map(({ operatorId, tokenHash }) => [operatorId, tokenHash]);
}

/** It is unknown whether the new token of the second operator made the session. */
export const EXPECTED_TOKENS = [[1, hash(1)]];
