import type { Statement } from "bun:sqlite";
import type { ApiKey, Credential, NewKey } from "../../domain/api-keys.ts";
import type { KeyStore } from "../../domain/ports.ts";
import { changedKey, KEY_COLUMNS, type KeyChange, keyOf, type KeyRow } from "../key-rows.ts";
import type { Connection } from "./connection.ts";
import { guarded } from "./sqlite-errors.ts";

type CredentialRow = KeyRow & { validUntil: bigint | null };
type Int = number | null;

/**
 * Keys, on a connection of their own: a command that changes one waits for its turn to write, while the server's writes
 * of pets never block in SQLite.
 */
export class SqliteKeyStore implements KeyStore {
  readonly #byHash: Statement<CredentialRow, [string]>;
  readonly #byId: Statement<KeyRow, [number]>;
  readonly #all: Statement<KeyRow, []>;
  readonly #changed: Statement<KeyRow, [number]>;
  readonly #revision: Statement<{ revision: bigint }, []>;
  readonly #nextRevision: Statement<{ revision: bigint }, []>;
  readonly #insert: Statement<unknown, [string, string, Int, Int, number, Int, bigint]>;
  readonly #update: Statement<unknown, [string, Int, Int, Int, Int, bigint, number]>;
  readonly #endSecrets: Statement<unknown, [number, number]>;
  readonly #insertSecret: Statement<unknown, [string, number]>;
  readonly #touch: Statement<unknown, [bigint, number]>;

  constructor(private readonly connection: Connection) {
    const select = `SELECT ${KEY_COLUMNS} FROM api_keys`;
    this.#byHash = connection.prepare(`SELECT ${KEY_COLUMNS}, valid_until AS validUntil
      FROM key_secrets JOIN api_keys ON api_keys.id = key_id WHERE hash = ?`);
    this.#byId = connection.prepare(`${select} WHERE id = ?`);
    this.#all = connection.prepare(`${select} ORDER BY id`);
    this.#changed = connection.prepare(`${select} WHERE revision > ? ORDER BY revision`);
    this.#revision = connection.prepare("SELECT revision FROM key_revision");
    this.#nextRevision = connection.prepare(
      "UPDATE key_revision SET revision = revision + 1 RETURNING revision",
    );
    this.#insert = connection.prepare(`INSERT INTO api_keys
      (name, plan, per_minute, per_day, created_at, expires_at, revision) VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#update = connection.prepare(`UPDATE api_keys
      SET plan = ?, per_minute = ?, per_day = ?, revoked_at = ?, pardoned_at = ?, revision = ? WHERE id = ?`);
    // A secret that was rolled before keeps its own, earlier end.
    this.#endSecrets = connection.prepare(`UPDATE key_secrets
      SET valid_until = min(coalesce(valid_until, ?1), ?1) WHERE key_id = ?2`);
    this.#insertSecret = connection.prepare("INSERT INTO key_secrets (hash, key_id) VALUES (?, ?)");
    this.#touch = connection.prepare("UPDATE api_keys SET revision = ? WHERE id = ?");
  }

  findCredential(secretHash: string): Credential | undefined {
    const row = guarded(() => this.#byHash.get(secretHash));
    if (row === null) return undefined;
    const key = keyOf(row);
    return row.validUntil === null ? { key } : { key, validUntil: Number(row.validUntil) };
  }

  /**
   * The revision is read before the keys: a change that comes in between is reported now and once more the next time,
   * while the other order would lose it.
   */
  changesSince(since: number): { revision: number; changed: readonly ApiKey[] } {
    return guarded(() => {
      const revision = Number(this.#revision.get()?.revision ?? 0);
      if (revision <= since) return { revision, changed: [] };
      return { revision, changed: this.#changed.all(since).map(keyOf) };
    });
  }

  listKeys(): readonly ApiKey[] {
    return guarded(() => this.#all.all().map(keyOf));
  }

  getKey(id: number): ApiKey | undefined {
    const row = guarded(() => this.#byId.get(id));
    return row === null ? undefined : keyOf(row);
  }

  async createKey(key: NewKey, secretHash: string): Promise<ApiKey> {
    return this.connection.transaction(() => this.#create(key, secretHash));
  }

  async createFirstKey(key: NewKey, secretHash: string): Promise<ApiKey | undefined> {
    return this.connection.transaction(() =>
      this.#changed.get(0) === null ? this.#create(key, secretHash) : undefined,
    );
  }

  #create(key: NewKey, secretHash: string): ApiKey {
    const { name, plan, limits, createdAt, expiresAt = null } = key;
    const { perMinute = null, perDay = null } = limits ?? {};
    const row = this.#insert.run(name, plan, perMinute, perDay, createdAt, expiresAt, this.#advance());
    const id = Number(row.lastInsertRowid);
    this.#insertSecret.run(secretHash, id);
    return this.#existing(id);
  }

  async addSecret(id: number, secretHash: string, overlapEndsAt: number): Promise<void> {
    this.connection.transaction(() => {
      this.#existing(id);
      this.#endSecrets.run(overlapEndsAt, id);
      this.#insertSecret.run(secretHash, id);
      this.#touch.run(this.#advance(), id);
    });
  }

  async updateKey(id: number, change: KeyChange): Promise<void> {
    this.connection.transaction(() => {
      const { plan, limits, revokedAt = null, unbannedAt = null } = changedKey(this.#existing(id), change);
      const { perMinute = null, perDay = null } = limits ?? {};
      this.#update.run(plan, perMinute, perDay, revokedAt, unbannedAt, this.#advance(), id);
    });
  }

  close(): void {
    this.connection.close();
  }

  #advance(): bigint {
    const next = this.#nextRevision.get();
    if (next === null) throw new Error("the counter of key changes is missing");
    return next.revision;
  }

  #existing(id: number): ApiKey {
    const key = this.getKey(id);
    if (key === undefined) throw new Error(`there is no key ${id}`);
    return key;
  }
}
