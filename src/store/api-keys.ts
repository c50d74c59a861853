import { withoutNulls } from "../domain/fields.ts";
import {
  type ApiKey,
  type Credential,
  type KeyChange,
  type KeySecret,
  apiKeyOf,
  NEW_KEY_DEFAULTS,
  type NewKey,
  storedKeyOf,
} from "../domain/api-keys.ts";
import type { KeyList, KeyListQuery } from "../domain/key-lists.ts";
import type { NewSecret } from "../domain/secrets.ts";
import type { Attribution } from "../domain/audit.ts";
import { keyCreationEntry, keyExpiryEntry, keyRotationEntry, keyUpdateEntry } from "../domain/key-entries.ts";
import type { ChangedKey, StoredChanges, KeyStore } from "../domain/ports/keys.ts";
import { type Page, pageOf } from "../domain/pages.ts";
import { DAY_MS } from "../text/time-units.ts";
import { DAILY_USAGE_DAYS } from "../domain/usage-history.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { addAudit } from "./audit.ts";
import { ReusedCounts } from "./reused-counts.ts";
import { countsOf, KEY_COLUMNS, keyPage, type SortValue, sortValue } from "./key-list.ts";
import { KEY_ROWS } from "./sql/rows.ts";
import { deletionTime, type RetentionNow } from "./retention-clock.ts";
import { objectsOf, requireRow, rowsOf, rowsOfQuery, type SqlDatabase, type Steps } from "./sql/steps.ts";
import { jsonArray, type SqlValue } from "./sql/values.ts";
import type { Dialect } from "./sql/dialect.ts";

/** A row of KEY_COLUMNS, and maybe of others. */
type KeyRow = Readonly<Record<string, SqlValue | null>>;

function apiKeyOfRow(row: KeyRow): ApiKey {
  const unbannedAt = row["unbannedAt"] ?? null;
  return {
    ...apiKeyOf(KEY_ROWS.workingObjectOf(row)),
    ...(unbannedAt !== null && { unbannedAt: Number(unbannedAt) }),
  };
}

export const SELECT_CREDENTIALS = `SELECT ${KEY_COLUMNS}, hash, valid_until AS "validUntil"
  FROM key_secrets JOIN api_keys ON api_keys.id = key_id WHERE`;
const FIND_CREDENTIAL = `${SELECT_CREDENTIALS} hash = ?`;

/** Returns the keys that have these secrets, by the hashes of the secrets. */
export function* findCredentials(sql: string, hashes: string): Steps<Map<string, Credential>> {
  const rows = yield* rowsOf<KeyRow & { hash: string; validUntil: SqlValue | null }>(sql, hashes);
  return new Map(
    rows.map((row) => [
      row.hash,
      { key: apiKeyOfRow(row), ...(row.validUntil !== null && { validUntil: Number(row.validUntil) }) },
    ]),
  );
}

/** Null removes a value. Only Enterprise keys have limits of their own; on another plan those of the plan apply. */
function applyChange(key: ApiKey, change: KeyChange): ApiKey {
  const { limits, ...changed } = { ...key, ...change };
  // The limits are checked here too, because somebody else may have changed the key since the change was validated.
  const hasLimits = changed.plan === "enterprise" && limits !== undefined;
  const revokedAt = key.revokedAt ?? change.revokedAt;
  return withoutNulls({
    ...changed,
    ...(hasLimits && { limits }),
    ...(revokedAt !== undefined && { revokedAt }),
  });
}

/**
 * The column is called `issued_at`, because earlier releases select `created_at` from a join with api_keys without
 * naming the table.
 */
const SECRET_COLUMNS = `key_id AS "keyId", hint, issued_at AS "createdAt", valid_until AS "validUntil"`;

type SecretRow = KeySecret & { readonly keyId: number };

function secretsByKey(rows: readonly SecretRow[]): ReadonlyMap<number, readonly KeySecret[]> {
  const secrets = Map.groupBy(rows, ({ keyId }) => keyId);
  return new Map([...secrets].map(([id, some]) => [id, some.map(secretOf).toSorted(newestFirst)]));
}

function secretOf(row: SecretRow): KeySecret {
  const { keyId: _, ...secret } = row;
  return secret;
}

/**
 * Sorts the newest secret first. Secrets of earlier releases have no time of creation and come last. Of two secrets
 * from the same time, the one that is valid for longer is newer.
 */
function newestFirst(a: KeySecret, b: KeySecret): number {
  const { createdAt = 0, validUntil = Number.MAX_SAFE_INTEGER } = a;
  return (b.createdAt ?? 0) - createdAt || (b.validUntil ?? Number.MAX_SAFE_INTEGER) - validUntil;
}

const SELECT = `SELECT ${KEY_COLUMNS} FROM api_keys`;
const SELECT_ANY = "SELECT id FROM api_keys ORDER BY id LIMIT 1";
const SELECT_CHANGED = `SELECT ${KEY_COLUMNS}, unban_revision AS "unbanRevision" FROM api_keys
  WHERE revision > ? ORDER BY revision`;
const WRITTEN_COLUMNS = Object.keys(KEY_ROWS.writtenColumns);
const INSERT = `INSERT INTO api_keys (${WRITTEN_COLUMNS.join(", ")}, revision)
  VALUES (${WRITTEN_COLUMNS.map(() => "?").join(", ")}, ?) RETURNING ${KEY_COLUMNS}`;
const UPDATE = `UPDATE api_keys SET ${WRITTEN_COLUMNS.map((column) => `${column} = ?`).join(", ")},
  pardoned_at = ?, unban_revision = coalesce(?, unban_revision), revision = ? WHERE id = ?`;
const INSERT_SECRET = "INSERT INTO key_secrets (hash, key_id, hint, issued_at) VALUES (?, ?, ?, ?)";
/** A secret that already ends earlier keeps that end. */
const LIMIT_SECRETS = `UPDATE key_secrets SET valid_until = ?
  WHERE key_id = ? AND coalesce(valid_until > ?, TRUE)`;

/** How long a secret is kept after it was replaced and has stopped working: as long as the usage history. */
const REPLACED_SECRETS_MS = DAILY_USAGE_DAYS * DAY_MS;
/** Deletes the secrets of a key that were replaced before a time, by one that is older than that time, too. */
const DELETE_REPLACED = `DELETE FROM key_secrets WHERE key_id = ?1 AND valid_until < ?2 AND coalesce(issued_at, 0) <
  (SELECT max(later.issued_at) FROM key_secrets AS later WHERE later.key_id = ?1 AND later.issued_at < ?2)`;

/** The keys whose expiry is near and not announced yet. */
const EXPIRES_SOON = `expires_at > ? AND expires_at <= ? AND revoked_at IS NULL
  AND coalesce(announced_expiry <> expires_at, TRUE)`;
/** The most keys of a transaction, which takes SQLite some milliseconds, in which requests wait. */
const ANNOUNCED_AT_ONCE = 100;

export interface KeyStoreOptions {
  readonly findCredential?: KeyStore["findCredential"];
  readonly retentionNow?: RetentionNow | undefined;
}

/**
 * The keys, with the same statements on both databases. On PostgreSQL, lookups that arrive together share a statement.
 */
export class SqlKeyStore implements KeyStore {
  readonly #counts = new ReusedCounts();
  readonly findCredential: KeyStore["findCredential"];
  readonly #retentionNow: RetentionNow | undefined;

  constructor(
    private readonly database: SqlDatabase,
    options: KeyStoreOptions = {},
  ) {
    const findOne: KeyStore["findCredential"] = (hash) =>
      database.read(function* () {
        return (yield* findCredentials(FIND_CREDENTIAL, hash)).get(hash);
      });
    this.findCredential = options.findCredential ?? findOne;
    this.#retentionNow = options.retentionNow;
  }

  /**
   * Reads the revision before the keys, so that a change in between is reported twice. The other order would miss it.
   */
  changesSince(since: number): Awaitable<StoredChanges> {
    const select = `SELECT revision, ${this.database.dialect.timeline} AS timeline,
      EXISTS (SELECT 1 FROM server_questions) AS "hasQuestions" FROM key_revision`;
    return this.database.read(function* () {
      const [stored] = yield* objectsOf<Omit<StoredChanges, "changed">>(select);
      const { revision, timeline, hasQuestions } = requireRow(stored);
      const rows = revision > since ? yield* rowsOf<KeyRow>(SELECT_CHANGED, since) : [];
      const changed = rows.map((row): ChangedKey => ({
        key: apiKeyOfRow(row),
        kind: Number(row["unbanRevision"] ?? since) > since ? "unban" : "key",
      }));
      return { revision, timeline, changed, hasQuestions: Boolean(hasQuestions) };
    });
  }

  listKeys(query: KeyListQuery): Awaitable<KeyList> {
    const { dialect } = this.database;
    const counts = this.#counts;
    return this.database.read(function* () {
      const page = yield* listedKeys(query, dialect);
      return { ...page, ...countsOf(yield* counts.read(query, dialect), query.filter) };
    });
  }

  getKey(id: number): Awaitable<ApiKey | undefined> {
    return this.database.read(() => findKey(id));
  }

  getKeys(ids: readonly number[]): Awaitable<readonly ApiKey[]> {
    const select = `${SELECT} WHERE ${this.database.dialect.isOneOf("id", "?")}`;
    return this.database.read(function* () {
      return (yield* rowsOf<KeyRow>(select, jsonArray(ids))).map(apiKeyOfRow);
    });
  }

  listSecrets(keyIds: readonly number[]): Awaitable<ReadonlyMap<number, readonly KeySecret[]>> {
    const { dialect } = this.database;
    const select = `SELECT ${SECRET_COLUMNS} FROM key_secrets WHERE ${dialect.isOneOf("key_id", "?")}`;
    return this.database.read(function* () {
      return secretsByKey(yield* objectsOf<SecretRow>(select, jsonArray(keyIds)));
    });
  }

  createKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey> {
    return this.#change((revision) => addKey({ key, secret, revision, by }));
  }

  async createFirstKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey | undefined> {
    if ((await this.database.read(() => rowsOf(SELECT_ANY))).length > 0) return undefined;
    // Changes run one after the other, so a concurrent call sees the key as the first call left it.
    return this.#change(function* (revision) {
      const isFirst = (yield* rowsOf(SELECT_ANY)).length === 0;
      return isFirst ? yield* addKey({ key, secret, revision, by }) : undefined;
    });
  }

  addSecret(id: number, secret: NewSecret & { overlapEndsAt: number }, by: Attribution): Promise<void> {
    const { overlapEndsAt } = secret;
    const keptSince = deletionTime(by.at, this.#retentionNow) - REPLACED_SECRETS_MS;
    return this.#change(function* (revision) {
      yield* requireKey(id);
      yield* rowsOf(DELETE_REPLACED, id, keptSince);
      yield* rowsOf(LIMIT_SECRETS, overlapEndsAt, id, overlapEndsAt);
      yield* rowsOf(INSERT_SECRET, secret.hash, id, secret.hint, by.at);
      yield* rowsOf("UPDATE api_keys SET revision = ? WHERE id = ?", revision, id);
      yield* addAudit(keyRotationEntry(id, secret, by));
    });
  }

  updateKey(id: number, change: KeyChange, by: Attribution): Promise<ApiKey> {
    return this.#change(function* (revision) {
      const before = yield* requireKey(id);
      const after = applyChange(before, change);
      const { unbannedAt = null } = after;
      const unbanRevision = change.unbannedAt === undefined ? null : revision;
      const values = KEY_ROWS.valuesOf(storedKeyOf(after));
      yield* rowsOf(UPDATE, ...values, unbannedAt, unbanRevision, revision, id);
      const entry = keyUpdateEntry({ before, after, change }, by);
      if (entry) yield* addAudit(entry);
      return after;
    });
  }

  announceExpiries(until: number, by: Attribution): Promise<boolean> {
    const { dialect } = this.database;
    const select = `${SELECT} WHERE ${EXPIRES_SOON} ORDER BY expires_at, id LIMIT +${ANNOUNCED_AT_ONCE}`;
    const lock = dialect.lockRows("NO KEY UPDATE");
    const update = `UPDATE api_keys SET announced_expiry = expires_at WHERE ${dialect.isOneOf("id", "?")}`;
    return this.database.write(function* () {
      const keys = (yield* rowsOf<KeyRow>(select + lock, by.at, until)).map(apiKeyOfRow);
      if (keys.length > 0) yield* rowsOf(update, jsonArray(keys.map(({ id }) => id)));
      for (const key of keys) yield* addAudit(keyExpiryEntry(key, by));
      return keys.length === ANNOUNCED_AT_ONCE;
    });
  }

  #change<T>(work: (revision: number) => Steps<T>): Promise<T> {
    return this.database.write(function* () {
      return yield* work(yield* nextRevision());
    });
  }
}

/**
 * The first statement of a change updates the row of the revision, which PostgreSQL locks until the commit. So changes
 * run one after the other, and become visible in the order of their revisions.
 */
export function* nextRevision(): Steps<number> {
  const increment = "UPDATE key_revision SET revision = revision + 1 RETURNING revision";
  const [row] = yield* objectsOf<{ revision: number }>(increment);
  return requireRow(row).revision;
}

/** Reads a page. In a list of all keys the revoked ones come last. */
function* listedKeys(query: KeyListQuery, dialect: Dialect): Steps<Page<ApiKey>> {
  const { after, limit, filter } = query;
  const [last] = after === undefined ? [] : yield* rowsOfQuery<SortValue>(sortValue(query, after, dialect));
  if (filter?.isRevoked !== undefined || filter?.state !== undefined)
    return pageOf(yield* selectKeys(query, dialect, last), limit);

  const isLastRevoked = last !== undefined && last.revokedAt !== null;
  const ofUnrevoked = { ...query, filter: { ...filter, isRevoked: false } };
  const unrevoked = isLastRevoked ? [] : yield* selectKeys(ofUnrevoked, dialect, last);
  if (unrevoked.length > limit) return pageOf(unrevoked, limit);

  const ofRevoked = { ...query, limit: limit - unrevoked.length, filter: { ...filter, isRevoked: true } };
  const revoked = yield* selectKeys(ofRevoked, dialect, isLastRevoked ? last : undefined);
  return pageOf([...unrevoked, ...revoked], limit);
}

function* selectKeys(query: KeyListQuery, dialect: Dialect, last?: SortValue): Steps<ApiKey[]> {
  return (yield* rowsOfQuery<KeyRow>(keyPage(query, dialect, last))).map(apiKeyOfRow);
}

function* findKey(id: number): Steps<ApiKey | undefined> {
  const [row] = yield* rowsOf<KeyRow>(`${SELECT} WHERE id = ?`, id);
  return row && apiKeyOfRow(row);
}

function* requireKey(id: number): Steps<ApiKey> {
  const key = yield* findKey(id);
  if (key === undefined) throw new Error(`key ${id} does not exist`);
  return key;
}

interface Insertion {
  readonly key: NewKey;
  readonly secret: NewSecret;
  readonly revision: number;
  readonly by: Attribution;
}

function* addKey({ key, secret, revision, by }: Insertion): Steps<ApiKey> {
  const values = KEY_ROWS.valuesOf(storedKeyOf({ ...NEW_KEY_DEFAULTS, ...key }));
  const [row] = yield* rowsOf<KeyRow>(INSERT, ...values, revision);
  const created = apiKeyOfRow(requireRow(row));
  yield* rowsOf(INSERT_SECRET, secret.hash, created.id, secret.hint, by.at);
  yield* addAudit(keyCreationEntry(created, secret, by));
  return created;
}
