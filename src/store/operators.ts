import type { Rejection } from "../api/errors.ts";
import type { NewSecret } from "../domain/api-keys.ts";
import type { Attribution, NewAuditEntry } from "../domain/audit.ts";
import {
  isLastingAdmin,
  lastAdmin,
  MAX_EARLIER_TOKENS,
  MAX_OPERATORS,
  MAX_SESSIONS,
  MAX_SESSIONS_OF_OPERATOR,
  MAX_SIGN_IN_CODES,
  mayCall,
  type NewOperator,
  type Operator,
  type OperatorAccess,
  type OperatorChange,
  type OperatorCredential,
  operatorEntry,
  operatorExists,
  operatorExpired,
  operatorNotFound,
  operatorRevoked,
  type OperatorSession,
  operatorState,
  operatorUpdated,
  type SignInCode,
  tokenOfOther,
  tokenReplaced,
  tooManyOperators,
} from "../domain/operators.ts";
import { withChange } from "../domain/fields.ts";
import type { OperatorStore, TokenRotation } from "../domain/ports.ts";
import { HOUR_MS } from "../domain/usage-history.ts";
import type { Awaitable } from "../runtime/event-loop.ts";
import { formatTime } from "../text/formatting.ts";
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
  last_used_at AS "lastUsedAt", expires_at AS "expiresAt", revoked_at AS "revokedAt",
  (SELECT max(valid_until) FROM operator_tokens AS earlier
    WHERE earlier.operator_id = operators.id AND earlier.valid_until IS NOT NULL) AS "overlapEndsAt"`;
const WITH_TOKENS = "operators JOIN operator_tokens ON operator_id = operators.id AND replaced_at IS NULL";
const SELECT = `SELECT ${COLUMNS} FROM ${WITH_TOKENS}`;
const SELECT_ACTIVE = `SELECT hash, ${COLUMNS} FROM ${WITH_TOKENS} WHERE revoked_at IS NULL`;
const SELECT_EARLIER = `SELECT hash, operator_id AS "operatorId", valid_until AS "validUntil"
  FROM operator_tokens WHERE valid_until IS NOT NULL`;
/**
 * Excludes the sessions and codes of release 1.1.0 without an `operator_id`: they belonged to the token of a setting.
 */
const SELECT_SESSIONS = `SELECT cookie_hash AS "cookieHash", secret_hash AS "secretHash",
  operator_id AS "operatorId", created_at AS "createdAt", ends_at AS "endsAt"
  FROM operator_sessions WHERE operator_id IS NOT NULL`;
const CODE_COLUMNS = `code_hash AS "codeHash", operator_id AS "operatorId", ends_at AS "endsAt", made_by AS "madeBy"`;
const SELECT_CODES = `SELECT ${CODE_COLUMNS} FROM sign_in_codes WHERE operator_id IS NOT NULL`;
/** Stands for all rows of a table. OFFSET requires a LIMIT in SQLite, and PostgreSQL allows no negative one. */
const ALL = 1_000_000;
const MAX_LISTED = MAX_OPERATORS + 300;

interface EarlierToken {
  readonly hash: string;
  readonly operatorId: number;
  readonly validUntil: number;
}

function* findOperator(id: number) {
  const [row] = yield* objectsOf<Operator>(`${SELECT} WHERE operators.id = ?`, id);
  return row;
}

function* addOperator({ name, role, expiresAt }: NewOperator, token: NewSecret, by: Attribution) {
  const [row] = yield* rowsOf<{ id: number }>(
    "INSERT INTO operators (name, role, created_at, expires_at) VALUES (?, ?, ?, ?) RETURNING id",
    name,
    role,
    by.at,
    expiresAt ?? null,
  );
  const { id } = requireRow(row);
  yield* addToken(id, token, by);
  const { hint } = token;
  const expiry = expiresAt === undefined ? {} : { expiresAt: formatTime(expiresAt) };
  yield* addAudit(operatorEntry("operator.created", { id, name, role, hint, ...expiry }, by));
  const times = { createdAt: by.at, issuedAt: by.at, ...(expiresAt !== undefined && { expiresAt }) };
  return { id, name, role, hint, ...times };
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
  { hash, hint, keeps, overlapEndsAt }: Omit<TokenRotation, "replaces">,
  by: Attribution,
) {
  const { overlapEndsAt: _, ...rest } = operator;
  const { id, name } = operator;
  const rotated = { ...rest, hint, issuedAt: by.at };
  yield* endEarlierTokens(id, overlapEndsAt === undefined ? undefined : by.at);
  const replace = `UPDATE operator_tokens SET replaced_at = ?, valid_until = ?
    WHERE operator_id = ? AND replaced_at IS NULL`;
  yield* rowsOf(replace, by.at, overlapEndsAt ?? null, id);
  yield* addToken(id, { hash, hint }, by);
  if (overlapEndsAt === undefined) {
    yield* endSessions(id, keeps);
    yield* addAudit(operatorEntry("operator.rotated", { id, name, hint }, by));
    return rotated;
  }
  const shorten = "UPDATE operator_tokens SET valid_until = ? WHERE operator_id = ? AND valid_until > ?";
  yield* rowsOf(shorten, overlapEndsAt, id, overlapEndsAt);
  yield* rowsOf(
    "UPDATE operator_sessions SET ends_at = ? WHERE operator_id = ? AND cookie_hash <> ? AND ends_at > ?",
    overlapEndsAt,
    id,
    keeps ?? "",
    overlapEndsAt,
  );
  const previousTokensValidUntil = formatTime(overlapEndsAt);
  yield* addAudit(operatorEntry("operator.rotated", { id, name, hint, previousTokensValidUntil }, by));
  return { ...rotated, overlapEndsAt };
}

/** Ends the overlaps of earlier rotations: all of them, or those that are over and the oldest of too many. */
function* endEarlierTokens(id: number, now?: number) {
  const oldest = `SELECT hash FROM operator_tokens WHERE operator_id = ? AND valid_until IS NOT NULL
    ORDER BY issued_at DESC, hash DESC LIMIT ${ALL} OFFSET ${now === undefined ? 0 : MAX_EARLIER_TOKENS - 1}`;
  const end = `UPDATE operator_tokens SET valid_until = NULL
    WHERE operator_id = ? AND (valid_until <= ? OR hash IN (${oldest}))`;
  yield* rowsOf(end, id, now ?? 0, id);
}

/** Whether the token is the operator's current one. */
function* hasToken(id: number, hash: string) {
  const found = yield* rowsOf(`${SELECT_ACTIVE} AND operators.id = ? AND hash = ?`, id, hash);
  return found.length > 0;
}

/** Ends all sessions but the one to keep. Returns how many that were. */
function* endSessions(id: number, keeps = "") {
  yield* rowsOf("DELETE FROM sign_in_codes WHERE operator_id = ?", id);
  const end =
    "DELETE FROM operator_sessions WHERE operator_id = ? AND cookie_hash <> ? RETURNING cookie_hash";
  return (yield* rowsOf(end, id, keeps)).length;
}

/** Whether the token lets the operator in at this time: the current one, or one that was replaced with an overlap. */
function* isAccepted(id: number, hash: string, now: number) {
  const operator = yield* findOperator(id);
  if (operator === undefined || operatorState(operator, now) !== "active") return false;
  const earlier = `${SELECT_EARLIER} AND operator_id = ? AND hash = ? AND valid_until > ?`;
  return (yield* hasToken(id, hash)) || (yield* rowsOf(earlier, id, hash, now)).length > 0;
}

function* isLastAdmin(operator: Operator) {
  if (!isLastingAdmin(operator)) return false;
  const lasting =
    "SELECT id FROM operators WHERE role = 'admin' AND revoked_at IS NULL AND expires_at IS NULL";
  return (yield* rowsOf(lasting)).length === 1;
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
      if (holder && holder.revokedAt !== null) return operatorRevoked(operator);
      const owner = yield* ownerOf(token);
      if (owner !== undefined) return tokenOfOther(owner);
      const found = holder && (yield* findOperator(holder.id));
      // A role that was changed stays, and a token of a setting grants no more than the setting says.
      if (found === undefined || !mayCall(role, found.role))
        return yield* createOperator(operator, token, by);
      return yield* replaceToken(found, token, by);
    });
  }

  async createFirstOperator(operator: NewOperator, token: NewSecret, by: Attribution) {
    const select = `SELECT id FROM operators
      WHERE (role = 'admin' AND expires_at IS NULL) OR name = ? LIMIT 1`;
    const isFirst = function* () {
      if ((yield* rowsOf(select, operator.name)).length > 0) return false;
      return (yield* ownerOf(token)) === undefined;
    };
    if (!(await this.database.read(isFirst))) return undefined;
    return this.#change(function* () {
      return (yield* isFirst()) ? yield* addOperator(operator, token, by) : undefined;
    });
  }

  updateOperator(id: number, change: OperatorChange, by: Attribution) {
    return this.#change(function* () {
      const before = yield* findOperator(id);
      if (before === undefined) return operatorNotFound(id);
      if (before.revokedAt !== undefined) return operatorRevoked(before);
      const after = withChange(before, change);
      if (!isLastingAdmin(after) && (yield* isLastAdmin(before))) return lastAdmin(before);
      const update = "UPDATE operators SET role = ?, expires_at = ? WHERE id = ?";
      yield* rowsOf(update, after.role, after.expiresAt ?? null, id);
      if (!mayCall(after.role, "viewer")) yield* endSessions(id);
      const entry = operatorUpdated(before, after, by);
      if (entry) yield* addAudit(entry);
      return after;
    });
  }

  rotateOperator(id: number, { replaces, ...token }: TokenRotation, by: Attribution) {
    return this.#change(function* () {
      const operator = yield* findOperator(id);
      if (operator === undefined) return operatorNotFound(id);
      if (replaces !== undefined && !(yield* hasToken(id, replaces))) return tokenReplaced(operator);
      const state = operatorState(operator, by.at);
      if (state !== "active") return (state === "revoked" ? operatorRevoked : operatorExpired)(operator);
      return yield* replaceToken(operator, token, by);
    });
  }

  revokeOperator(id: number, by: Attribution) {
    return this.#change(function* (): Steps<Operator | Rejection<"operator_not_found" | "last_admin">> {
      const operator = yield* findOperator(id);
      if (operator === undefined) return operatorNotFound(id);
      const { name, role, revokedAt } = operator;
      if (revokedAt !== undefined) return operator;
      if (yield* isLastAdmin(operator)) return lastAdmin(operator);
      yield* rowsOf("UPDATE operators SET revoked_at = ? WHERE id = ?", by.at, id);
      yield* endEarlierTokens(id);
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
      const active = yield* objectsOf<Operator & { hash: string }>(SELECT_ACTIVE);
      const earlier = yield* rowsOf<EarlierToken>(SELECT_EARLIER);
      const sessions = yield* rowsOf<OperatorSession>(SELECT_SESSIONS);
      const codes = yield* objectsOf<SignInCode>(SELECT_CODES);
      const tokens = new Map<string, OperatorCredential>();
      const operators = new Map<number, Operator>();
      for (const { hash, ...operator } of active) {
        tokens.set(hash, { operator });
        operators.set(operator.id, operator);
      }
      for (const { hash, operatorId, validUntil } of earlier) {
        const operator = operators.get(operatorId);
        if (operator) tokens.set(hash, { operator, validUntil });
      }
      return {
        tokens,
        sessions: new Map(sessions.map((row) => [row.cookieHash, row])),
        codes: new Map(codes.map((row) => [row.codeHash, row])),
      };
    });
  }

  createCode({ codeHash, operatorId, endsAt, madeBy }: SignInCode, now: number): Promise<void> {
    return this.database.write(function* () {
      yield* rowsOf(
        `DELETE FROM sign_in_codes WHERE ends_at <= ? OR code_hash IN (SELECT code_hash FROM sign_in_codes
           ORDER BY ends_at DESC, code_hash LIMIT ${ALL} OFFSET ${MAX_SIGN_IN_CODES - 1})`,
        now,
      );
      const insert =
        "INSERT INTO sign_in_codes (code_hash, operator_id, ends_at, made_by) VALUES (?, ?, ?, ?)";
      yield* rowsOf(insert, codeHash, operatorId, endsAt, madeBy ?? null);
    });
  }

  takeCode(codeHash: string): Promise<SignInCode | undefined> {
    return this.database.write(function* () {
      const take = `DELETE FROM sign_in_codes WHERE code_hash = ? RETURNING ${CODE_COLUMNS}`;
      const [row] = yield* objectsOf<SignInCode>(take, codeHash);
      return row;
    });
  }

  createSession(session: OperatorSession, entry: NewAuditEntry, tokenHash: string): Promise<boolean> {
    const { cookieHash, secretHash, operatorId, createdAt, endsAt } = session;
    return this.#change(function* () {
      if (!(yield* isAccepted(operatorId, tokenHash, createdAt))) return false;
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

  deleteSessions(operatorId: number, { at, actor }: Attribution): Promise<void> {
    return this.database.write(function* () {
      const sessions = yield* endSessions(operatorId);
      if (sessions > 0) yield* addAudit({ at, actor, action: "admin.signed-out", after: { sessions } });
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
