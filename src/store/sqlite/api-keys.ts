import type { Statement } from "bun:sqlite";
import type { ApiKey, Credential, NewKey } from "../../domain/api-keys.ts";
import type { KeyChange, KeyChanges, KeyStore } from "../../domain/ports.ts";
import {
  applyChange,
  CHANGED_KEY_COLUMNS,
  type ChangedKeyRow,
  changesOf,
  KEY_COLUMNS,
  keyOf,
  type KeyRow,
} from "../rows.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./sqlite-errors.ts";

type CredentialRow = KeyRow & { validUntil: bigint | null };
type Int = number | null;

/** Has a connection of its own: a command that changes a key waits for the write lock, a server's request does not. */
export class SqliteKeyStore implements KeyStore {
  readonly #selectByHash: Statement<CredentialRow, [string]>;
  readonly #selectById: Statement<KeyRow, [number]>;
  readonly #selectAll: Statement<KeyRow, []>;
  readonly #selectChanged: Statement<ChangedKeyRow, [number]>;
  readonly #selectRevision: Statement<{ revision: bigint }, []>;
  readonly #incrementRevision: Statement<{ revision: bigint }, []>;
  readonly #insert: Statement<unknown, [string, string, Int, Int, number, Int, bigint]>;
  readonly #updateKey: Statement<unknown, [string, Int, Int, Int, Int, bigint | null, bigint, number]>;
  readonly #limitSecrets: Statement<unknown, [number, number]>;
  readonly #insertSecret: Statement<unknown, [string, number]>;
  readonly #updateRevision: Statement<unknown, [bigint, number]>;

  constructor(private readonly connection: Connection) {
    const select = `SELECT ${KEY_COLUMNS} FROM api_keys`;
    this.#selectByHash = connection.prepare(`SELECT ${KEY_COLUMNS}, valid_until AS validUntil
      FROM key_secrets JOIN api_keys ON api_keys.id = key_id WHERE hash = ?`);
    this.#selectById = connection.prepare(`${select} WHERE id = ?`);
    this.#selectAll = connection.prepare(`${select} ORDER BY id`);
    this.#selectChanged = connection.prepare(
      `SELECT ${CHANGED_KEY_COLUMNS} FROM api_keys WHERE revision > ? ORDER BY revision`,
    );
    this.#selectRevision = connection.prepare("SELECT revision FROM key_revision");
    this.#incrementRevision = connection.prepare(
      "UPDATE key_revision SET revision = revision + 1 RETURNING revision",
    );
    this.#insert = connection.prepare(`INSERT INTO api_keys
      (name, plan, per_minute, per_day, created_at, expires_at, revision) VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#updateKey = connection.prepare(`UPDATE api_keys
      SET plan = ?, per_minute = ?, per_day = ?, revoked_at = ?, pardoned_at = ?,
        unban_revision = coalesce(?, unban_revision), revision = ? WHERE id = ?`);
    // A secret that already has an earlier end keeps it.
    this.#limitSecrets = connection.prepare(`UPDATE key_secrets
      SET valid_until = min(coalesce(valid_until, ?1), ?1) WHERE key_id = ?2`);
    this.#insertSecret = connection.prepare("INSERT INTO key_secrets (hash, key_id) VALUES (?, ?)");
    this.#updateRevision = connection.prepare("UPDATE api_keys SET revision = ? WHERE id = ?");
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

  listKeys(): readonly ApiKey[] {
    return translateErrors(() => this.#selectAll.all().map(keyOf));
  }

  getKey(id: number): ApiKey | undefined {
    const row = translateErrors(() => this.#selectById.get(id));
    return row === null ? undefined : keyOf(row);
  }

  async createKey(key: NewKey, secretHash: string): Promise<ApiKey> {
    return this.connection.transaction(() => this.#create(key, secretHash));
  }

  async createFirstKey(key: NewKey, secretHash: string): Promise<ApiKey | undefined> {
    return this.connection.transaction(() =>
      this.#selectChanged.get(0) === null ? this.#create(key, secretHash) : undefined,
    );
  }

  #create(key: NewKey, secretHash: string): ApiKey {
    const { name, plan, limits, createdAt, expiresAt = null } = key;
    const { perMinute = null, perDay = null } = limits ?? {};
    const row = this.#insert.run(name, plan, perMinute, perDay, createdAt, expiresAt, this.#nextRevision());
    const id = Number(row.lastInsertRowid);
    this.#insertSecret.run(secretHash, id);
    return this.#require(id);
  }

  async addSecret(id: number, secretHash: string, overlapEndsAt: number): Promise<void> {
    this.connection.transaction(() => {
      this.#require(id);
      this.#limitSecrets.run(overlapEndsAt, id);
      this.#insertSecret.run(secretHash, id);
      this.#updateRevision.run(this.#nextRevision(), id);
    });
  }

  async updateKey(id: number, change: KeyChange): Promise<void> {
    this.connection.transaction(() => {
      const { plan, limits, revokedAt = null, unbannedAt = null } = applyChange(this.#require(id), change);
      const { perMinute = null, perDay = null } = limits ?? {};
      const revision = this.#nextRevision();
      const unbanRevision = change.unbannedAt === undefined ? null : revision;
      this.#updateKey.run(plan, perMinute, perDay, revokedAt, unbannedAt, unbanRevision, revision, id);
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
