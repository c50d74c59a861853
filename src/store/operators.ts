import type { Rejection } from "../api/errors.ts";
import type { NewSecret } from "../domain/secrets.ts";
import type { Attribution, NewAuditEntry } from "../domain/audit.ts";
import {
  allowsMore,
  isLastingAdmin,
  lastAdmin,
  MAX_OPERATORS,
  mayCall,
  NO_TOKEN,
  type NewOperator,
  type NewSignInCode,
  type Operator,
  type OperatorAccess,
  type OperatorChange,
  type OperatorCredential,
  operatorEntry,
  operatorExists,
  operatorExpired,
  operatorNotFound,
  operatorOfProvider,
  operatorRevoked,
  type OperatorSession,
  operatorState,
  operatorUpdateEntry,
  operatorWithoutToken,
  type ProviderOperator,
  type SignInCode,
  tokenOfOther,
  tokenReplaced,
  tooManyOperators,
} from "../domain/operators.ts";
import { withChange } from "../domain/fields.ts";
import type { OperatorStore, TokenRotation } from "../domain/ports/operators.ts";
import { HOUR_MS } from "../text/time-units.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { formatTime } from "../text/formatting.ts";
import { addAudit } from "./audit.ts";
import {
  addCode,
  addSession,
  endSession,
  endSessions,
  moveSession,
  readCodes,
  readSessions,
  takeCode,
} from "./operator-sessions.ts";
import {
  addToken,
  currentTokenOf,
  endEarlierTokens,
  findTokenOwner,
  isCurrentToken,
  isWorkingToken,
  OPERATORS_WITH_TOKENS,
  OVERLAP_ENDS_AT,
  readEarlierTokens,
  replaceCurrentToken,
} from "./operator-tokens.ts";
import { deletionTime, type RetentionNow } from "./retention-clock.ts";
import {
  numberRowsOf,
  objectsOf,
  requireRow,
  rowsOf,
  type SqlDatabase,
  type Statements,
  type Steps,
} from "./sql/steps.ts";

const COLUMNS = `operators.id, name, role, hint, created_at AS "createdAt", issued_at AS "issuedAt",
  last_used_at AS "lastUsedAt", expires_at AS "expiresAt", revoked_at AS "revokedAt",
  ${OVERLAP_ENDS_AT} AS "overlapEndsAt", subject`;
const SELECT = `SELECT ${COLUMNS} FROM ${OPERATORS_WITH_TOKENS}`;
const SELECT_PRESENT = `SELECT hash, ${COLUMNS} FROM ${OPERATORS_WITH_TOKENS} WHERE revoked_at IS NULL`;
/** Sorts those who do not expire, or expire last, first: so all who are active come before those who are not. */
const LAST_EXPIRING = `coalesce(expires_at, ${Number.MAX_SAFE_INTEGER}) DESC`;
/** Everybody who was ever there with a provider is an operator, so there are more than those who are active. */
const MAX_LISTED = MAX_OPERATORS + 300;

function* findOperator(id: number) {
  const [row] = yield* objectsOf<Operator>(`${SELECT} WHERE operators.id = ?`, id);
  return row;
}

/** Reads an operator who exists, as a change has left them. */
function* readOperator(id: number) {
  return requireRow(yield* findOperator(id));
}

function* addOperator(
  { name, role, expiresAt, subject }: NewOperator & Pick<Operator, "subject">,
  token: NewSecret,
  by: Attribution,
) {
  const [row] = yield* numberRowsOf<{ id: number }>(
    "INSERT INTO operators (name, role, created_at, expires_at, subject) VALUES (?, ?, ?, ?, ?) RETURNING id",
    name,
    role,
    by.at,
    expiresAt ?? null,
    subject ?? null,
  );
  const { id } = requireRow(row);
  yield* addToken(id, token, by.at);
  const rest = {
    ...(expiresAt !== undefined && { expiresAt: formatTime(expiresAt) }),
    ...(subject !== undefined && { subject }),
  };
  yield* addAudit(operatorEntry("operator.created", { id, name, role, hint: token.hint, ...rest }, by));
  return yield* readOperator(id);
}

/** The operator who has the name, or the last one who had it. A name is that of one at a time. */
function* holderOf(name: string) {
  const [holder] = yield* numberRowsOf<{ id: number; revokedAt: number | null }>(
    `SELECT id, revoked_at AS "revokedAt" FROM operators WHERE name = ? ORDER BY revoked_at IS NOT NULL, id DESC LIMIT 1`,
    name,
  );
  return holder;
}

function* createOperator(operator: NewOperator, token: NewSecret, by: Attribution) {
  const { name } = operator;
  const holder = yield* holderOf(name);
  if (holder?.revokedAt === null) return operatorExists(name);
  if (yield* isFull(by.at)) return tooManyOperators();
  return yield* addOperator(operator, token, by);
}

/** Whether no more operators can be active. */
function* isFull(now: number) {
  const active =
    "SELECT id FROM operators WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)";
  return (yield* rowsOf(active, now)).length >= MAX_OPERATORS;
}

/** The operators of a name, or of a person, who were revoked last. */
function lastRevoked(column: "name" | "subject", value: string) {
  return rowsOf<{ name: string }>(
    `SELECT name FROM operators WHERE ${column} = ?1
       AND revoked_at = (SELECT max(revoked_at) FROM operators WHERE ${column} = ?1)`,
    value,
  );
}

/** The operators by whom an admin has let a revoked person in again. What is somebody else's by now lets nobody in. */
function* letInAgain(revoked: readonly { name: string }[], subject: string) {
  const operators: Operator[] = [];
  for (const { name } of revoked) {
    const holder = yield* holderOf(name);
    const operator = holder?.revokedAt === null ? yield* findOperator(holder.id) : undefined;
    if (operator && [undefined, subject].includes(operator.subject)) operators.push(operator);
  }
  return operators;
}

function* admitOperator(person: ProviderOperator, token: NewSecret, by: Attribution) {
  const { name, role, expiresAt, subject } = person;
  const holder = yield* holderOf(name);
  if (holder && holder.revokedAt !== null) return operatorRevoked(person);
  const before = holder && (yield* findOperator(holder.id));
  const revoked = yield* lastRevoked("subject", subject);
  const again = yield* letInAgain(revoked, subject);
  const [first] = revoked;
  if (first && again.length === 0) return operatorRevoked({ ...first, role });
  for (const each of before ? [before, ...again] : again)
    if (yield* isLastAdmin(each)) return lastAdmin(each);
  // They are the person's from now on, whatever the address is, so that they end with the person.
  for (const { id } of again) yield* rowsOf("UPDATE operators SET subject = ? WHERE id = ?", subject, id);
  const isActive = before !== undefined && operatorState(before, by.at) === "active";
  yield* expirePerson(subject, by, before?.id);
  if (!isActive && (yield* isFull(by.at))) return tooManyOperators();
  if (before === undefined) return { operator: yield* addOperator(person, token, by), tokenHash: token.hash };
  const { id } = before;
  yield* rowsOf(
    "UPDATE operators SET role = ?, expires_at = ?, subject = ? WHERE id = ?",
    role,
    expiresAt,
    subject,
    id,
  );
  // A person of the provider has no token. In release 1.3.0 they could make one.
  if (!isActive || before.subject !== subject || before.hint !== NO_TOKEN) {
    yield* replaceCurrentToken(id, token, { at: by.at, overlapEndsAt: undefined });
    yield* endSessions(id);
  }
  // The expiry changes with each sign-in, and has no entry.
  const entry = operatorUpdateEntry(before, { ...before, role, subject }, by);
  if (entry) yield* addAudit(entry);
  const [current] = yield* rowsOf<{ hash: string }>(`SELECT ${currentTokenOf("?")} AS hash`, id);
  return { operator: yield* readOperator(id), tokenHash: requireRow(current).hash };
}

/** The operators of a person who are not revoked: one for each address that they have signed in with. */
function operatorsOf(subject: string) {
  return objectsOf<Operator>(`${SELECT} WHERE subject = ? AND revoked_at IS NULL`, subject);
}

/** Lets the operators of a person expire, except for one. So a person has one active operator at most. */
function* expirePerson(subject: string, by: Attribution, exceptId?: number) {
  for (const before of yield* operatorsOf(subject)) {
    const { id } = before;
    if (id === exceptId || operatorState(before, by.at) !== "active") continue;
    yield* rowsOf("UPDATE operators SET expires_at = ? WHERE id = ?", by.at, id);
    yield* endSessions(id);
    const entry = operatorUpdateEntry(before, { ...before, expiresAt: by.at }, by);
    if (entry) yield* addAudit(entry);
  }
}

function* revoke({ id, name, role }: Operator, by: Attribution) {
  yield* rowsOf("UPDATE operators SET revoked_at = ? WHERE id = ?", by.at, id);
  yield* endEarlierTokens(id);
  yield* endSessions(id);
  yield* addAudit(operatorEntry("operator.revoked", { id, name, role }, by));
}

function* replaceToken(
  { id, name }: Operator,
  { hash, hint, keeps, overlapEndsAt }: Omit<TokenRotation, "replaces">,
  by: Attribution,
) {
  yield* replaceCurrentToken(id, { hash, hint }, { at: by.at, overlapEndsAt });
  if (keeps !== undefined) yield* moveSession(keeps, hash);
  if (overlapEndsAt === undefined) yield* endSessions(id, keeps);
  const overlap = overlapEndsAt === undefined ? {} : { previousTokensValidUntil: formatTime(overlapEndsAt) };
  yield* addAudit(operatorEntry("operator.rotated", { id, name, hint, ...overlap }, by));
  return yield* readOperator(id);
}

/** Whether the token lets the operator in at this time. */
function* isAccepted(id: number, hash: string, now: number) {
  const operator = yield* findOperator(id);
  if (operator === undefined || operatorState(operator, now) !== "active") return false;
  return yield* isWorkingToken(id, hash, now);
}

function* isLastAdmin(operator: Operator) {
  if (!isLastingAdmin(operator)) return false;
  const lasting =
    "SELECT id FROM operators WHERE role = 'admin' AND revoked_at IS NULL AND expires_at IS NULL";
  return (yield* rowsOf(lasting)).length === 1;
}

/** The operators, with the same statements on both databases. They are few, so their tables are read as a whole. */
export class SqlOperatorStore implements OperatorStore {
  constructor(
    private readonly database: SqlDatabase,
    private readonly retentionNow?: RetentionNow,
  ) {}

  listOperators(name?: string): Awaitable<readonly Operator[]> {
    return this.database.read(function* () {
      const order = `CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END, ${LAST_EXPIRING}, operators.id DESC`;
      const rows = yield* objectsOf<Operator>(
        `${SELECT} WHERE name = coalesce(?, name) ORDER BY ${order} LIMIT ${MAX_LISTED}`,
        name ?? null,
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
      const select = `${SELECT_PRESENT} AND name = ? AND hash = ?`;
      return (yield* rowsOf(select, name, token.hash)).length > 0;
    };
    if (await this.database.read(isImported)) return undefined;
    return this.#change(function* () {
      if (yield* isImported()) return undefined;
      const holder = yield* holderOf(name);
      if (holder && holder.revokedAt !== null) return operatorRevoked(operator);
      const owner = yield* findTokenOwner(token);
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
      return (yield* findTokenOwner(token)) === undefined;
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
      if (before.subject !== undefined && allowsMore(after, before)) return operatorOfProvider(before);
      if (!isLastingAdmin(after) && (yield* isLastAdmin(before))) return lastAdmin(before);
      const [wasActive, isActive] = [before, after].map((each) => operatorState(each, by.at) === "active");
      if (isActive && !wasActive && (yield* isFull(by.at))) return tooManyOperators();
      const update = "UPDATE operators SET role = ?, expires_at = ? WHERE id = ?";
      yield* rowsOf(update, after.role, after.expiresAt ?? null, id);
      if (!mayCall(after.role, "viewer")) yield* endSessions(id);
      const entry = operatorUpdateEntry(before, after, by);
      if (entry) yield* addAudit(entry);
      return after;
    });
  }

  admitOperator(person: ProviderOperator, token: NewSecret, by: Attribution) {
    return this.#change(() => admitOperator(person, token, by));
  }

  expirePerson(subject: string, by: Attribution): Promise<void> {
    return this.#change(() => expirePerson(subject, by));
  }

  rotateOperator(id: number, { replaces, ...token }: TokenRotation, by: Attribution) {
    return this.#change(function* () {
      const operator = yield* findOperator(id);
      if (operator === undefined) return operatorNotFound(id);
      if (operator.subject !== undefined) return operatorWithoutToken(operator);
      if (replaces !== undefined && !(yield* isCurrentToken(id, replaces))) return tokenReplaced(operator);
      const state = operatorState(operator, by.at);
      if (state !== "active") return (state === "revoked" ? operatorRevoked : operatorExpired)(operator);
      return yield* replaceToken(operator, token, by);
    });
  }

  revokeOperator(id: number, by: Attribution) {
    return this.#change(function* (): Steps<Operator | Rejection<"operator_not_found" | "last_admin">> {
      const operator = yield* findOperator(id);
      if (operator === undefined) return operatorNotFound(id);
      const { subject, revokedAt } = operator;
      if (revokedAt !== undefined) return operator;
      if (yield* isLastAdmin(operator)) return lastAdmin(operator);
      for (const each of subject === undefined ? [operator] : yield* operatorsOf(subject))
        yield* revoke(each, by);
      return yield* readOperator(id);
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
      const present = yield* objectsOf<Operator & { hash: string }>(
        `${SELECT_PRESENT} ORDER BY ${LAST_EXPIRING}, operators.id DESC LIMIT ${MAX_LISTED}`,
      );
      const earlier = yield* readEarlierTokens();
      const sessions = yield* readSessions();
      const codes = yield* readCodes();
      const tokens = new Map<string, OperatorCredential>();
      const operators = new Map<number, Operator>();
      for (const { hash, ...operator } of present) {
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

  createCode(code: NewSignInCode, now: number): Promise<void> {
    return this.database.write(() => addCode(code, deletionTime(now, this.retentionNow)));
  }

  takeCode(codeHash: string): Promise<SignInCode | undefined> {
    return this.database.write(() => takeCode(codeHash));
  }

  createSession(session: OperatorSession, entry: NewAuditEntry): Promise<boolean> {
    const { operatorId, tokenHash, createdAt } = session;
    const endedBy = deletionTime(createdAt, this.retentionNow);
    return this.#change(function* () {
      if (!(yield* isAccepted(operatorId, tokenHash, createdAt))) return false;
      yield* addSession(session, endedBy);
      yield* addAudit(entry);
      return true;
    });
  }

  deleteSession(cookieHash: string, entry: NewAuditEntry): Promise<void> {
    return this.database.write(function* () {
      if (yield* endSession(cookieHash)) yield* addAudit(entry);
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
