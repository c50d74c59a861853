import type { Statement } from "bun:sqlite";
import type { ApiKey, Credential, KeySecret, NewKey, NewSecret } from "../../domain/api-keys.ts";
import { type Attribution, keyCreated, keyRolled, keyUpdated } from "../../domain/audit.ts";
import type { KeyListQuery, KeyPage } from "../../domain/key-list.ts";
import type { KeyChange, KeyChanges, KeyStore } from "../../domain/ports.ts";
import { TimeSlice, yieldToEventLoop } from "../../event-loop.ts";
import { SQLITE_DIALECT } from "../dialect.ts";
import { keyCount, keyPage, sortValue } from "../key-list.ts";
import {
  applyChange,
  CHANGED_KEY_COLUMNS,
  type ChangedKeyRow,
  changesOf,
  KEY_COLUMNS,
  keyOf,
  type KeyRow,
  type KeyValues,
  keyValues,
  SECRET_COLUMNS,
  type SecretRow,
  secretsByKey,
  WRITTEN_KEY_COLUMNS,
} from "../key-rows.ts";
import { pageOf } from "../rows.ts";
import { AuditEntries } from "./audit.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./errors.ts";

type CredentialRow = KeyRow & { validUntil: bigint | null };
type Int = number | null;

/** Keys that are read before the time is looked at. */
const IDS_PER_READ = 100;

/** Has a connection of its own: a change of a key waits for the write lock, a client's request does not. */
export class SqliteKeyStore implements KeyStore {
  readonly #selectByHash: Statement<CredentialRow, [string]>;
  readonly #selectById: Statement<KeyRow, [number]>;
  readonly #selectByIds: Statement<KeyRow, [string]>;
  readonly #selectSecretsOf: Statement<SecretRow, [string]>;
  readonly #selectChanged: Statement<ChangedKeyRow, [number]>;
  readonly #selectRevision: Statement<{ revision: bigint }, []>;
  readonly #incrementRevision: Statement<{ revision: bigint }, []>;
  readonly #insert: Statement<unknown, [...KeyValues, number, bigint]>;
  readonly #updateKey: Statement<unknown, [...KeyValues, Int, Int, bigint | null, bigint, number]>;
  readonly #limitSecrets: Statement<unknown, [number, number]>;
  readonly #insertSecret: Statement<unknown, [string, number, string, number]>;
  readonly #updateRevision: Statement<unknown, [bigint, number]>;
  readonly #audit: AuditEntries;

  constructor(private readonly connection: Connection) {
    const select = `SELECT ${KEY_COLUMNS} FROM api_keys`;
    const selectSecrets = `SELECT ${SECRET_COLUMNS} FROM key_secrets`;
    const written = WRITTEN_KEY_COLUMNS;
    this.#selectByHash = connection.prepare(`SELECT ${KEY_COLUMNS}, valid_until AS validUntil
      FROM key_secrets JOIN api_keys ON api_keys.id = key_id WHERE hash = ?`);
    this.#selectById = connection.prepare(`${select} WHERE id = ?`);
    this.#selectByIds = connection.prepare(`${select} WHERE id IN (SELECT value FROM json_each(?))`);
    this.#selectSecretsOf = connection.prepare(
      `${selectSecrets} WHERE key_id IN (SELECT value FROM json_each(?))`,
    );
    this.#selectChanged = connection.prepare(
      `SELECT ${CHANGED_KEY_COLUMNS} FROM api_keys WHERE revision > ? ORDER BY revision`,
    );
    this.#selectRevision = connection.prepare("SELECT revision FROM key_revision");
    this.#incrementRevision = connection.prepare(
      "UPDATE key_revision SET revision = revision + 1 RETURNING revision",
    );
    this.#insert = connection.prepare(`INSERT INTO api_keys
      (${written.join(", ")}, created_at, revision) VALUES (${written.map(() => "?").join(", ")}, ?, ?)`);
    this.#updateKey = connection.prepare(`UPDATE api_keys
      SET ${written.map((column) => `${column} = ?`).join(", ")}, revoked_at = ?, pardoned_at = ?,
        unban_revision = coalesce(?, unban_revision), revision = ? WHERE id = ?`);
    // A secret that already has an earlier end keeps it.
    this.#limitSecrets = connection.prepare(`UPDATE key_secrets
      SET valid_until = min(coalesce(valid_until, ?1), ?1) WHERE key_id = ?2`);
    this.#insertSecret = connection.prepare(
      "INSERT INTO key_secrets (hash, key_id, hint, issued_at) VALUES (?, ?, ?, ?)",
    );
    this.#updateRevision = connection.prepare("UPDATE api_keys SET revision = ? WHERE id = ?");
    this.#audit = new AuditEntries(connection);
  }

  findCredential(secretHash: string): Credential | undefined {
    const row = translateErrors(() => this.#selectByHash.get(secretHash));
    if (row === null) return undefined;
    const key = keyOf(row);
    return row.validUntil === null ? { key } : { key, validUntil: Number(row.validUntil) };
  }

  /** Reads the revision before the keys: a change in between is then reported twice. The other order would miss it. */
  changesSince(since: number): KeyChanges {
    return translateErrors(() => {
      const revision = Number(this.#selectRevision.get()?.revision ?? 0);
      return { revision, ...changesOf(revision > since ? this.#selectChanged.all(since) : [], since) };
    });
  }

  /** Two statements, between which other work of the event loop goes on. */
  async listKeys(query: KeyListQuery): Promise<KeyPage> {
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
    const row = translateErrors(() => this.#selectById.get(id));
    return row === null ? undefined : keyOf(row);
  }

  async getKeys(ids: readonly number[]): Promise<readonly ApiKey[]> {
    const keys: ApiKey[] = [];
    const turn = new TimeSlice();
    for (let start = 0; start < ids.length; start += IDS_PER_READ) {
      if (turn.isOver) await turn.next();
      const some = JSON.stringify(ids.slice(start, start + IDS_PER_READ));
      keys.push(...translateErrors(() => this.#selectByIds.all(some)).map(keyOf));
    }
    return keys;
  }

  listSecrets(keyIds: readonly number[]): ReadonlyMap<number, readonly KeySecret[]> {
    return secretsByKey(translateErrors(() => this.#selectSecretsOf.all(JSON.stringify(keyIds))));
  }

  createKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey> {
    return this.connection.transactionWhenUnlocked(() => this.#create(key, secret, by));
  }

  createFirstKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey | undefined> {
    return this.connection.transactionWhenUnlocked(() =>
      this.#selectChanged.get(0) === null ? this.#create(key, secret, by) : undefined,
    );
  }

  #create(newKey: NewKey, secret: NewSecret, by: Attribution): ApiKey {
    const row = this.#insert.run(...keyValues(newKey), newKey.createdAt, this.#nextRevision());
    const id = Number(row.lastInsertRowid);
    this.#insertSecret.run(secret.hash, id, secret.hint, by.at);
    const key = this.#require(id);
    this.#audit.insert(keyCreated(key, secret, by));
    return key;
  }

  addSecret(id: number, secret: NewSecret & { overlapEndsAt: number }, by: Attribution): Promise<void> {
    return this.connection.transactionWhenUnlocked(() => {
      this.#require(id);
      this.#limitSecrets.run(secret.overlapEndsAt, id);
      this.#insertSecret.run(secret.hash, id, secret.hint, by.at);
      this.#updateRevision.run(this.#nextRevision(), id);
      this.#audit.insert(keyRolled(id, secret, by));
    });
  }

  updateKey(id: number, change: KeyChange, by: Attribution): Promise<ApiKey> {
    return this.connection.transactionWhenUnlocked(() => {
      const before = this.#require(id);
      const after = applyChange(before, change);
      const { revokedAt = null, unbannedAt = null } = after;
      const revision = this.#nextRevision();
      const unbanRevision = change.unbannedAt === undefined ? null : revision;
      this.#updateKey.run(...keyValues(after), revokedAt, unbannedAt, unbanRevision, revision, id);
      const entry = keyUpdated({ before, after, change }, by);
      if (entry) this.#audit.insert(entry);
      return after;
    });
  }

  close(): void {
    this.connection.close();
  }

  #nextRevision(): bigint {
    const next = this.#incrementRevision.get();
    if (next === null) throw new Error("the table key_revision is empty");
    return next.revision;
  }

  #require(id: number): ApiKey {
    const key = this.getKey(id);
    if (key === undefined) throw new Error(`key ${id} does not exist`);
    return key;
  }
}
