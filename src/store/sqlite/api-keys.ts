import type {
  ApiKey,
  Credential,
  KeyChange,
  KeyList,
  KeyListQuery,
  KeySecret,
  NewKey,
  NewSecret,
} from "../../domain/api-keys.ts";
import { type Attribution, keyCreated, keyRolled, keyUpdated } from "../../domain/audit.ts";
import type { KeyChanges, KeyStore } from "../../domain/ports.ts";
import { TimeSlice, yieldToEventLoop } from "../../event-loop.ts";
import { pageOf, SQLITE_DIALECT } from "../rows.ts";
import {
  applyChange,
  CHANGED_KEY_COLUMNS,
  type ChangedKeyRow,
  changesOf,
  KEY_COLUMNS,
  keyCount,
  keyOf,
  keyPage,
  type KeyRow,
  keyValues,
  SECRET_COLUMNS,
  type SecretRow,
  secretsByKey,
  sortValue,
  WRITTEN_KEY_COLUMNS,
} from "../api-keys.ts";
import { insertAudit } from "./audit.ts";
import type { Connection } from "./connection.ts";

/** Keys that are read before the time is looked at. */
const IDS_PER_READ = 100;

const SELECT = `SELECT ${KEY_COLUMNS} FROM api_keys`;
const SELECT_BY_HASH = `SELECT ${KEY_COLUMNS}, valid_until AS validUntil
  FROM key_secrets JOIN api_keys ON api_keys.id = key_id WHERE hash = ?`;
const SELECT_BY_IDS = `${SELECT} WHERE id IN (SELECT value FROM json_each(?))`;
const SELECT_SECRETS = `SELECT ${SECRET_COLUMNS} FROM key_secrets
  WHERE key_id IN (SELECT value FROM json_each(?))`;
const SELECT_CHANGED = `SELECT ${CHANGED_KEY_COLUMNS} FROM api_keys WHERE revision > ? ORDER BY revision`;
const INSERT = `INSERT INTO api_keys (${WRITTEN_KEY_COLUMNS.join(", ")}, created_at, revision)
  VALUES (${WRITTEN_KEY_COLUMNS.map(() => "?").join(", ")}, ?, ?)`;
const UPDATE = `UPDATE api_keys SET ${WRITTEN_KEY_COLUMNS.map((column) => `${column} = ?`).join(", ")},
  revoked_at = ?, pardoned_at = ?, unban_revision = coalesce(?, unban_revision), revision = ? WHERE id = ?`;
/** A secret that already has an earlier end keeps it. */
const LIMIT_SECRETS = `UPDATE key_secrets
  SET valid_until = min(coalesce(valid_until, ?1), ?1) WHERE key_id = ?2`;
const INSERT_SECRET = "INSERT INTO key_secrets (hash, key_id, hint, issued_at) VALUES (?, ?, ?, ?)";

/** Has a connection of its own: a change of a key waits for the write lock, a client's request does not. */
export class SqliteKeyStore implements KeyStore {
  constructor(private readonly connection: Connection) {}

  findCredential(secretHash: string): Credential | undefined {
    const row = this.connection.get<KeyRow & { validUntil: bigint | null }>(SELECT_BY_HASH, secretHash);
    if (row === undefined) return undefined;
    const key = keyOf(row);
    return row.validUntil === null ? { key } : { key, validUntil: Number(row.validUntil) };
  }

  /** Reads the revision before the keys: a change in between is then reported twice. The other order would miss it. */
  changesSince(since: number): KeyChanges {
    const stored = this.connection.get<{ revision: bigint }>("SELECT revision FROM key_revision");
    const revision = Number(stored?.revision ?? 0);
    const rows = revision > since ? this.connection.all<ChangedKeyRow>(SELECT_CHANGED, since) : [];
    return { revision, ...changesOf(rows, since) };
  }

  /** Two statements, between which other work of the event loop goes on. */
  async listKeys(query: KeyListQuery): Promise<KeyList> {
    const last = sortValue(query, SQLITE_DIALECT);
    const lastValue = last && this.connection.query<{ value: string | bigint }>(last)[0]?.value;
    const rows = this.connection.query<KeyRow>(keyPage(query, SQLITE_DIALECT, lastValue));
    const page = pageOf(rows, query.limit, keyOf);
    if (query.after === undefined && !page.hasMore) return { ...page, total: page.items.length };
    await yieldToEventLoop();
    const [count] = this.connection.query<{ total: bigint }>(keyCount(query, SQLITE_DIALECT));
    return { ...page, total: Number(count?.total ?? 0) };
  }

  getKey(id: number): ApiKey | undefined {
    const row = this.connection.get<KeyRow>(`${SELECT} WHERE id = ?`, id);
    return row && keyOf(row);
  }

  async getKeys(ids: readonly number[]): Promise<readonly ApiKey[]> {
    const keys: ApiKey[] = [];
    const turn = new TimeSlice();
    for (let start = 0; start < ids.length; start += IDS_PER_READ) {
      if (turn.isOver) await turn.next();
      const some = JSON.stringify(ids.slice(start, start + IDS_PER_READ));
      keys.push(...this.connection.all<KeyRow>(SELECT_BY_IDS, some).map(keyOf));
    }
    return keys;
  }

  listSecrets(keyIds: readonly number[]): ReadonlyMap<number, readonly KeySecret[]> {
    return secretsByKey(this.connection.all<SecretRow>(SELECT_SECRETS, JSON.stringify(keyIds)));
  }

  createKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey> {
    return this.connection.transactionWhenUnlocked(() => this.#create(key, secret, by));
  }

  createFirstKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey | undefined> {
    return this.connection.transactionWhenUnlocked(() =>
      this.connection.get(SELECT_CHANGED, 0) === undefined ? this.#create(key, secret, by) : undefined,
    );
  }

  #create(newKey: NewKey, secret: NewSecret, by: Attribution): ApiKey {
    const values = [...keyValues(newKey), newKey.createdAt, this.#nextRevision()];
    const id = Number(this.connection.run(INSERT, ...values).lastInsertRowid);
    this.connection.run(INSERT_SECRET, secret.hash, id, secret.hint, by.at);
    const key = this.#require(id);
    insertAudit(this.connection, keyCreated(key, secret, by));
    return key;
  }

  addSecret(id: number, secret: NewSecret & { overlapEndsAt: number }, by: Attribution): Promise<void> {
    return this.connection.transactionWhenUnlocked(() => {
      this.#require(id);
      this.connection.run(LIMIT_SECRETS, secret.overlapEndsAt, id);
      this.connection.run(INSERT_SECRET, secret.hash, id, secret.hint, by.at);
      this.connection.run("UPDATE api_keys SET revision = ? WHERE id = ?", this.#nextRevision(), id);
      insertAudit(this.connection, keyRolled(id, secret, by));
    });
  }

  updateKey(id: number, change: KeyChange, by: Attribution): Promise<ApiKey> {
    return this.connection.transactionWhenUnlocked(() => {
      const before = this.#require(id);
      const after = applyChange(before, change);
      const { revokedAt = null, unbannedAt = null } = after;
      const revision = this.#nextRevision();
      const unbanRevision = change.unbannedAt === undefined ? null : revision;
      const values = [...keyValues(after), revokedAt, unbannedAt, unbanRevision, revision, id];
      this.connection.run(UPDATE, ...values);
      const entry = keyUpdated({ before, after, change }, by);
      if (entry) insertAudit(this.connection, entry);
      return after;
    });
  }

  close(): void {
    this.connection.close();
  }

  #nextRevision(): bigint {
    const next = this.connection.get<{ revision: bigint }>(
      "UPDATE key_revision SET revision = revision + 1 RETURNING revision",
    );
    if (next === undefined) throw new Error("the table key_revision is empty");
    return next.revision;
  }

  #require(id: number): ApiKey {
    const key = this.getKey(id);
    if (key === undefined) throw new Error(`key ${id} does not exist`);
    return key;
  }
}
