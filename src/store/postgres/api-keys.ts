import type { SQL } from "bun";
import type { ApiKey, Credential, NewKey } from "../../domain/api-keys.ts";
import type { KeyStore } from "../../domain/ports.ts";
import { changedKey, KEY_COLUMNS, type KeyChange, keyOf, type KeyRow } from "../key-rows.ts";
import type { Pools } from "./pools.ts";

const ANY_KEY = "SELECT id FROM api_keys ORDER BY id LIMIT 1";
const SELECT = `SELECT ${KEY_COLUMNS} FROM api_keys`;

export class PostgresKeyStore implements KeyStore {
  constructor(private readonly pools: Pools) {}

  async findCredential(secretHash: string): Promise<Credential | undefined> {
    const [row] = await this.#read<KeyRow & { validUntil: bigint | null }>(
      `SELECT ${KEY_COLUMNS}, valid_until AS "validUntil"
       FROM key_secrets JOIN api_keys ON api_keys.id = key_id WHERE hash = $1`,
      secretHash,
    );
    if (row === undefined) return undefined;
    const key = keyOf(row);
    return row.validUntil === null ? { key } : { key, validUntil: Number(row.validUntil) };
  }

  /** In one statement, which sees one state: the revision is that of the keys shown. */
  async changesSince(since: number): Promise<{ revision: number; changed: readonly ApiKey[] }> {
    const rows = await this.#read<{ current: bigint } & (KeyRow | { id: null })>(
      `SELECT current.revision AS current, ${KEY_COLUMNS}
       FROM key_revision AS current LEFT JOIN api_keys ON api_keys.revision > $1
       WHERE sole = 1 ORDER BY api_keys.revision`,
      since,
    );
    const changed = rows.flatMap((row) => (row.id === null ? [] : keyOf(row)));
    return { revision: Number(rows[0]?.current ?? 0), changed };
  }

  async listKeys(): Promise<readonly ApiKey[]> {
    return (await this.#read<KeyRow>(`${SELECT} ORDER BY id`)).map(keyOf);
  }

  async getKey(id: number): Promise<ApiKey | undefined> {
    const [row] = await this.#read<KeyRow>(`${SELECT} WHERE id = $1`, id);
    return row && keyOf(row);
  }

  createKey(key: NewKey, secretHash: string): Promise<ApiKey> {
    return this.#change((tx, revision) => insert(tx, { key, secretHash, revision }));
  }

  async createFirstKey(key: NewKey, secretHash: string): Promise<ApiKey | undefined> {
    if ((await this.#read(ANY_KEY)).length > 0) return undefined;
    // Changes are made one after the other, so whoever comes second sees the key of the first.
    return this.#change(async (tx, revision) =>
      (await tx.unsafe<unknown[]>(ANY_KEY)).length > 0
        ? undefined
        : insert(tx, { key, secretHash, revision }),
    );
  }

  addSecret(id: number, secretHash: string, overlapEndsAt: number): Promise<void> {
    return this.#change(async (tx, revision) => {
      await existing(tx, id);
      // A secret that was rolled before keeps its own, earlier end.
      await tx`UPDATE key_secrets SET valid_until = least(valid_until, ${overlapEndsAt}) WHERE key_id = ${id}`;
      await tx`INSERT INTO key_secrets (hash, key_id) VALUES (${secretHash}, ${id})`;
      await tx`UPDATE api_keys SET revision = ${revision} WHERE id = ${id}`;
    });
  }

  updateKey(id: number, change: KeyChange): Promise<void> {
    return this.#change(async (tx, revision) => {
      const { plan, limits, revokedAt, unbannedAt } = changedKey(await existing(tx, id), change);
      await tx`UPDATE api_keys SET plan = ${plan}, per_minute = ${limits?.perMinute}, per_day = ${limits?.perDay},
        revoked_at = ${revokedAt}, pardoned_at = ${unbannedAt}, revision = ${revision} WHERE id = ${id}`;
    });
  }

  /**
   * The counter's row is locked before anything else and until the commit. So changes come one after the other, and
   * their revisions are in the order in which they are seen.
   */
  #change<T>(work: (tx: SQL, revision: bigint) => Promise<T>): Promise<T> {
    return this.pools.writes.transaction(async (tx) => {
      const rows = await tx<{ revision: bigint }[]>`
        UPDATE key_revision SET revision = revision + 1 WHERE sole = 1 RETURNING revision`;
      return work(tx, only(rows, "the counter of key changes").revision);
    });
  }

  #read<Row>(query: string, ...values: unknown[]): Promise<Row[]> {
    return this.pools.reads.run((sql) => sql.unsafe<Row[]>(query, values));
  }
}

async function existing(tx: SQL, id: number): Promise<ApiKey> {
  const rows = await tx.unsafe<KeyRow[]>(`${SELECT} WHERE id = $1`, [id]);
  return only(rows.map(keyOf), `key ${id}`);
}

async function insert(
  tx: SQL,
  { key, secretHash, revision }: { key: NewKey; secretHash: string; revision: bigint },
): Promise<ApiKey> {
  const { name, plan, limits, createdAt, expiresAt } = key;
  const rows = await tx.unsafe<KeyRow[]>(
    `INSERT INTO api_keys (name, plan, per_minute, per_day, created_at, expires_at, revision)
     VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING ${KEY_COLUMNS}`,
    [name, plan, limits?.perMinute, limits?.perDay, createdAt, expiresAt, revision],
  );
  const made = only(rows.map(keyOf), "the key that was just made");
  await tx`INSERT INTO key_secrets (hash, key_id) VALUES (${secretHash}, ${made.id})`;
  return made;
}

function only<T>(found: readonly T[], name: string): T {
  const [one] = found;
  if (one === undefined) throw new Error(`there is no ${name}`);
  return one;
}
