import type { Rejection } from "../api/errors.ts";
import type { NewSecret } from "../domain/api-keys.ts";
import type { Attribution, NewAuditEntry } from "../domain/audit.ts";
import {
  lastAdmin,
  MAX_OPERATORS,
  MAX_SESSIONS,
  MAX_SESSIONS_OF_OPERATOR,
  MAX_SIGN_IN_CODES,
  type NewOperator,
  type Operator,
  type OperatorAccess,
  operatorEntry,
  operatorExists,
  operatorNotActive,
  operatorNotFound,
  type OperatorSession,
  type SignInCode,
  tokenOfOther,
  tokenReplaced,
  tooManyOperators,
} from "../domain/operators.ts";
import type { OperatorStore } from "../domain/ports.ts";
import { HOUR_MS } from "../domain/usage-history.ts";
import type { Awaitable } from "../runtime/event-loop.ts";
import { addAudit } from "./audit.ts";
import {
  numberRowsOf as rowsOf,
  objectsOf,
  requireRow,
  type SqlDatabase,
  type Statements,
  type Steps,
} from "./statements.ts";

const COLUMNS = `operators.id, name, role, hint, created_at AS "createdAt", issued_at AS "issuedAt",
  last_used_at AS "lastUsedAt", revoked_at AS "revokedAt"`;
const WITH_TOKENS = "operators JOIN operator_tokens ON operator_id = operators.id AND replaced_at IS NULL";
const SELECT = `SELECT ${COLUMNS} FROM ${WITH_TOKENS}`;
const SELECT_ACTIVE = `SELECT hash, ${COLUMNS} FROM ${WITH_TOKENS} WHERE revoked_at IS NULL`;
/**
 * Excludes the sessions and codes of release 1.1.0 without an `operator_id`: they belonged to the token of a setting.
 */
const SELECT_SESSIONS = `SELECT cookie_hash AS "cookieHash", secret_hash AS "secretHash",
  operator_id AS "operatorId", created_at AS "createdAt", ends_at AS "endsAt"
  FROM operator_sessions WHERE operator_id IS NOT NULL`;
const CODE_COLUMNS = `code_hash AS "codeHash", operator_id AS "operatorId", ends_at AS "endsAt"`;
const SELECT_CODES = `SELECT ${CODE_COLUMNS} FROM sign_in_codes WHERE operator_id IS NOT NULL`;
/** Stands for all rows of a table. OFFSET requires a LIMIT in SQLite, and PostgreSQL allows no negative one. */
const ALL = 1_000_000;
const MAX_LISTED = MAX_OPERATORS + 300;

function* findOperator(id: number) {
  const [row] = yield* objectsOf<Operator>(`${SELECT} WHERE operators.id = ?`, id);
  return row;
}

function* addOperator({ name, role }: NewOperator, token: NewSecret, by: Attribution) {
  const [row] = yield* rowsOf<{ id: number }>(
    "INSERT INTO operators (name, role, created_at) VALUES (?, ?, ?) RETURNING id",
    name,
    role,
    by.at,
  );
  const { id } = requireRow(row);
  yield* addToken(id, token, by);
  const { hint } = token;
  yield* addAudit(operatorEntry("operator.created", { id, name, role, hint }, by));
  return { id, name, role, hint, createdAt: by.at, issuedAt: by.at };
}

function* addToken(id: number, { hash, hint }: NewSecret, { at }: Attribution) {
  const insert = "INSERT INTO operator_tokens (hash, operator_id, hint, issued_at) VALUES (?, ?, ?, ?)";
  yield* rowsOf(insert, hash, id, hint, at);
}

/** The operator who has the token or had it before. */
function* ownerOf({ hash }: NewSecret) {
  const [owner] = yield* rowsOf<{ name: string }>(
    "SELECT name FROM operator_tokens JOIN operators ON id = operator_id WHERE hash = ?",
    hash,
  );
  return owner;
}

/** The operator who has the name, or the last one who had it. */
function* holderOf(name: string) {
  const [holder] = yield* rowsOf<{ id: number; revokedAt: number | null }>(
    `SELECT id, revoked_at AS "revokedAt" FROM operators WHERE name = ? ORDER BY revoked_at IS NOT NULL, id DESC LIMIT 1`,
    name,
  );
  return holder;
}

function* createOperator(operator: NewOperator, token: NewSecret, by: Attribution) {
  const { name } = operator;
  const holder = yield* holderOf(name);
  if (holder) return operatorExists(name, holder);
  const active = yield* rowsOf("SELECT id FROM operators WHERE revoked_at IS NULL");
  if (active.length >= MAX_OPERATORS) return tooManyOperators();
  return yield* addOperator(operator, token, by);
}

function* replaceToken(
  operator: Operator,
  token: NewSecret & { keeps?: string | undefined },
  by: Attribution,
) {
  const { id, name } = operator;
  const replace = "UPDATE operator_tokens SET replaced_at = ? WHERE operator_id = ? AND replaced_at IS NULL";
  yield* rowsOf(replace, by.at, id);
  yield* addToken(id, token, by);
  yield* endSessions(id, token.keeps);
  yield* addAudit(operatorEntry("operator.rotated", { id, name, hint: token.hint }, by));
  return { ...operator, hint: token.hint, issuedAt: by.at };
}

/** Whether the token is the operator's current one. */
function* hasToken(id: number, hash: string) {
  const found = yield* rowsOf(`${SELECT_ACTIVE} AND operators.id = ? AND hash = ?`, id, hash);
  return found.length > 0;
}

function* endSessions(id: number, keeps = "") {
  yield* rowsOf("DELETE FROM operator_sessions WHERE operator_id = ? AND cookie_hash <> ?", id, keeps);
  yield* rowsOf("DELETE FROM sign_in_codes WHERE operator_id = ?", id);
}

/**
 * The operators, with the same statements on both databases. There are few operators, so their tables are read as a
 * whole.
 */
export class SqlOperatorStore implements OperatorStore {
  constructor(private readonly database: SqlDatabase) {}

  listOperators(): Awaitable<readonly Operator[]> {
    return this.database.read(function* () {
      const rows = yield* objectsOf<Operator>(
        `${SELECT} ORDER BY CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END, operators.id DESC LIMIT ${MAX_LISTED}`,
      );
      return rows.toSorted((a, b) => a.id - b.id);
    });
  }

  createOperator(operator: NewOperator, token: NewSecret, by: Attribution) {
    return this.#change(() => createOperator(operator, token, by));
  }

  async importOperator(operator: NewOperator, token: NewSecret, by: Attribution) {
    const { name, role } = operator;
    const isImported = function* () {
      const select = `${SELECT_ACTIVE} AND name = ? AND hash = ?`;
      return (yield* rowsOf(select, name, token.hash)).length > 0;
    };
    if (await this.database.read(isImported)) return undefined;
    return this.#change(function* () {
      if (yield* isImported()) return undefined;
      const holder = yield* holderOf(name);
      if (holder && holder.revokedAt !== null) return operatorNotActive(name);
      const owner = yield* ownerOf(token);
      if (owner !== undefined) return tokenOfOther(owner);
      const found = holder && (yield* findOperator(holder.id));
      if (found?.role !== role) return yield* createOperator(operator, token, by);
      return yield* replaceToken(found, token, by);
    });
  }

  async createFirstOperator(operator: NewOperator, token: NewSecret, by: Attribution) {
    const select = "SELECT id FROM operators WHERE role = 'admin' OR name = ? LIMIT 1";
    const isFirst = function* () {
      if ((yield* rowsOf(select, operator.name)).length > 0) return false;
      return (yield* ownerOf(token)) === undefined;
    };
    if (!(await this.database.read(isFirst))) return undefined;
    return this.#change(function* () {
      return (yield* isFirst()) ? yield* addOperator(operator, token, by) : undefined;
    });
  }

  rotateOperator(
    id: number,
    { replaces, ...token }: NewSecret & { keeps?: string | undefined; replaces?: string | undefined },
    by: Attribution,
  ) {
    return this.#change(function* () {
      const operator = yield* findOperator(id);
      if (operator === undefined) return operatorNotFound(id);
      if (replaces !== undefined && !(yield* hasToken(id, replaces))) return tokenReplaced(operator);
      if (operator.revokedAt !== undefined) return operatorNotActive(operator.name);
      return yield* replaceToken(operator, token, by);
    });
  }

  revokeOperator(id: number, by: Attribution) {
    return this.#change(function* (): Steps<Operator | Rejection<"operator_not_found" | "last_admin">> {
      const operator = yield* findOperator(id);
      if (operator === undefined) return operatorNotFound(id);
      const { name, role, revokedAt } = operator;
      if (revokedAt !== undefined) return operator;
      const admins = yield* rowsOf("SELECT id FROM operators WHERE role = 'admin' AND revoked_at IS NULL");
      if (role === "admin" && admins.length === 1) return lastAdmin(operator);
      yield* rowsOf("UPDATE operators SET revoked_at = ? WHERE id = ?", by.at, id);
      yield* endSessions(id);
      yield* addAudit(operatorEntry("operator.revoked", { id, name, role }, by));
      return { ...operator, revokedAt: by.at };
    });
  }

  recordUse(id: number, at: number): Promise<void> {
    return this.database.write(function* () {
      const update = "UPDATE operators SET last_used_at = ? WHERE id = ? AND coalesce(last_used_at, 0) <= ?";
      yield* rowsOf(update, at, id, at - HOUR_MS);
    });
  }

  readAccess(): Awaitable<OperatorAccess> {
    return this.database.read(function* () {
      const tokens = yield* objectsOf<Operator & { hash: string }>(SELECT_ACTIVE);
      const sessions = yield* rowsOf<OperatorSession>(SELECT_SESSIONS);
      const codes = yield* rowsOf<SignInCode>(SELECT_CODES);
      return {
        tokens: new Map(tokens.map(({ hash, ...row }) => [hash, row])),
        sessions: new Map(sessions.map((row) => [row.cookieHash, row])),
        codes: new Map(codes.map((row) => [row.codeHash, row])),
      };
    });
  }

  createCode({ codeHash, operatorId, endsAt }: SignInCode, now: number): Promise<void> {
    return this.database.write(function* () {
      yield* rowsOf(
        `DELETE FROM sign_in_codes WHERE ends_at <= ? OR code_hash IN (SELECT code_hash FROM sign_in_codes
           ORDER BY ends_at DESC, code_hash LIMIT ${ALL} OFFSET ${MAX_SIGN_IN_CODES - 1})`,
        now,
      );
      const insert = "INSERT INTO sign_in_codes (code_hash, operator_id, ends_at) VALUES (?, ?, ?)";
      yield* rowsOf(insert, codeHash, operatorId, endsAt);
    });
  }

  takeCode(codeHash: string): Promise<SignInCode | undefined> {
    return this.database.write(function* () {
      const take = `DELETE FROM sign_in_codes WHERE code_hash = ? RETURNING ${CODE_COLUMNS}`;
      const [row] = yield* rowsOf<SignInCode>(take, codeHash);
      return row;
    });
  }

  createSession(session: OperatorSession, entry: NewAuditEntry, tokenHash: string): Promise<boolean> {
    const { cookieHash, secretHash, operatorId, createdAt, endsAt } = session;
    return this.#change(function* () {
      if (!(yield* hasToken(operatorId, tokenHash))) return false;
      const before = (condition: string, max: number) =>
        `cookie_hash IN (SELECT cookie_hash FROM operator_sessions WHERE ${condition}
           ORDER BY created_at DESC, cookie_hash LIMIT ${ALL} OFFSET ${max - 1})`;
      yield* rowsOf(
        `DELETE FROM operator_sessions WHERE ends_at <= ? OR ${before("ends_at > 0", MAX_SESSIONS)}
           OR ${before("operator_id = ?", MAX_SESSIONS_OF_OPERATOR)}`,
        createdAt,
        operatorId,
      );
      yield* rowsOf(
        `INSERT INTO operator_sessions (cookie_hash, secret_hash, operator_id, created_at, ends_at)
           VALUES (?, ?, ?, ?, ?)`,
        cookieHash,
        secretHash,
        operatorId,
        createdAt,
        endsAt,
      );
      yield* addAudit(entry);
      return true;
    });
  }

  deleteSession(cookieHash: string, entry: NewAuditEntry): Promise<void> {
    return this.database.write(function* () {
      const end = "DELETE FROM operator_sessions WHERE cookie_hash = ? RETURNING cookie_hash";
      if ((yield* rowsOf(end, cookieHash)).length > 0) yield* addAudit(entry);
    });
  }

  /** Locks the table of operators, so that changes run one after the other. */
  #change<T>(statements: Statements<T>): Promise<T> {
    const { dialect } = this.database;
    return this.database.write(function* () {
      yield* rowsOf(dialect.lockTable("operators"));
      return yield* statements();
    });
  }
}
