import type { SQL } from "bun";
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
import type { Pools } from "./pools.ts";

const SELECT_ANY = "SELECT id FROM api_keys ORDER BY id LIMIT 1";
const SELECT = `SELECT ${KEY_COLUMNS} FROM api_keys`;
const SELECT_CREDENTIAL = `SELECT ${KEY_COLUMNS}, valid_until AS "validUntil"
  FROM key_secrets JOIN api_keys ON api_keys.id = key_id WHERE hash = $1`;

export class PostgresKeyStore implements KeyStore {
  constructor(private readonly pools: Pools) {}

  async findCredential(secretHash: string): Promise<Credential | undefined> {
    const [row] = await this.pools.lookUps.query((sql) =>
      sql.unsafe<(KeyRow & { validUntil: bigint | null })[]>(SELECT_CREDENTIAL, [secretHash]),
    );
    if (row === undefined) return undefined;
    const key = keyOf(row);
    return row.validUntil === null ? { key } : { key, validUntil: Number(row.validUntil) };
  }

  /** One statement, so that the revision and the keys come from the same snapshot. */
  async changesSince(since: number): Promise<KeyChanges> {
    const rows = await this.#read<{ current: bigint } & (ChangedKeyRow | { id: null })>(
      `SELECT current.revision AS current, ${CHANGED_KEY_COLUMNS}
       FROM key_revision AS current LEFT JOIN api_keys ON api_keys.revision > $1
       WHERE sole = 1 ORDER BY api_keys.revision`,
      since,
    );
    const changed = rows.flatMap((row) => (row.id === null ? [] : row));
    return { revision: Number(rows[0]?.current ?? 0), ...changesOf(changed, since) };
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
    if ((await this.#read(SELECT_ANY)).length > 0) return undefined;
    // Changes run one after the other, so a concurrent call sees the key of the first.
    return this.#change(async (tx, revision) =>
      (await tx.unsafe<unknown[]>(SELECT_ANY)).length > 0
        ? undefined
        : insert(tx, { key, secretHash, revision }),
    );
  }

  addSecret(id: number, secretHash: string, overlapEndsAt: number): Promise<void> {
    return this.#change(async (tx, revision) => {
      await requireKey(tx, id);
      // A secret that already has an earlier end keeps it.
      await tx`UPDATE key_secrets SET valid_until = least(valid_until, ${overlapEndsAt}) WHERE key_id = ${id}`;
      await tx`INSERT INTO key_secrets (hash, key_id) VALUES (${secretHash}, ${id})`;
      await tx`UPDATE api_keys SET revision = ${revision} WHERE id = ${id}`;
    });
  }

  updateKey(id: number, change: KeyChange): Promise<void> {
    return this.#change(async (tx, revision) => {
      const { plan, limits, revokedAt, unbannedAt } = applyChange(await requireKey(tx, id), change);
      await tx`UPDATE api_keys SET plan = ${plan}, per_minute = ${limits?.perMinute}, per_day = ${limits?.perDay},
        revoked_at = ${revokedAt}, pardoned_at = ${unbannedAt}, revision = ${revision} WHERE id = ${id}`;
      if (change.unbannedAt !== undefined) {
        await tx`UPDATE api_keys SET unban_revision = ${revision} WHERE id = ${id}`;
      }
    });
  }

  /**
   * Updates the row of the revision first, which locks it until the commit. So changes run one after the other, and
   * become visible in the order of their revisions.
   */
  #change<T>(work: (tx: SQL, revision: bigint) => Promise<T>): Promise<T> {
    return this.pools.writes.transaction(async (tx) => {
      const rows = await tx<{ revision: bigint }[]>`
        UPDATE key_revision SET revision = revision + 1 WHERE sole = 1 RETURNING revision`;
      return work(tx, required(rows[0], "the table key_revision is empty").revision);
    });
  }

  #read<Row>(query: string, ...values: unknown[]): Promise<Row[]> {
    return this.pools.reads.query((sql) => sql.unsafe<Row[]>(query, values));
  }
}

async function requireKey(tx: SQL, id: number): Promise<ApiKey> {
  const rows = await tx.unsafe<KeyRow[]>(`${SELECT} WHERE id = $1`, [id]);
  return keyOf(required(rows[0], `key ${id} does not exist`));
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
  const created = keyOf(required(rows[0], "PostgreSQL returned no key"));
  await tx`INSERT INTO key_secrets (hash, key_id) VALUES (${secretHash}, ${created.id})`;
  return created;
}

function required<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new Error(message);
  return value;
}
