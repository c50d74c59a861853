import type { SQL } from "bun";
import { Overloaded } from "../../api/errors.ts";
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
import { pageOf, POSTGRES_DIALECT, type SqlQuery } from "../rows.ts";
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
import type { Pools } from "./pool.ts";

const SELECT_ANY = "SELECT id FROM api_keys ORDER BY id LIMIT 1";
const SELECT = `SELECT ${KEY_COLUMNS} FROM api_keys`;
/** The parameter is a list with commas. */
export const SELECT_CREDENTIALS = `SELECT ${KEY_COLUMNS}, hash, valid_until AS "validUntil"
  FROM key_secrets JOIN api_keys ON api_keys.id = key_id WHERE hash = ANY (string_to_array($1, ','))`;
/** The parameter is a list with commas. */
const SELECT_SECRETS = `SELECT ${SECRET_COLUMNS} FROM key_secrets
  WHERE key_id = ANY (string_to_array($1, ',')::bigint[])`;

/** The parameters of the written columns are $1, $2, …; these follow them. */
const [A, B, C, D, E] = [1, 2, 3, 4, 5].map((n) => `$${WRITTEN_KEY_COLUMNS.length + n}`);
const INSERT = `INSERT INTO api_keys (${WRITTEN_KEY_COLUMNS.join(", ")}, created_at, revision)
  VALUES (${WRITTEN_KEY_COLUMNS.map((_, index) => `$${index + 1}`).join(", ")}, ${A}, ${B}) RETURNING ${KEY_COLUMNS}`;
const UPDATE = `UPDATE api_keys
  SET ${WRITTEN_KEY_COLUMNS.map((column, index) => `${column} = $${index + 1}`).join(", ")},
    revoked_at = ${A}, pardoned_at = ${B}, unban_revision = coalesce(${C}, unban_revision), revision = ${D}
  WHERE id = ${E}`;

export class PostgresKeyStore implements KeyStore {
  readonly #lookups: CredentialLookups;

  constructor(private readonly pools: Pools) {
    const { maxQueued } = pools;
    this.#lookups = new CredentialLookups({ find: (hashes) => this.#findCredentials(hashes), maxQueued });
  }

  findCredential(secretHash: string): Promise<Credential | undefined> {
    return this.#lookups.find(secretHash);
  }

  async #findCredentials(secretHashes: readonly string[]): Promise<ReadonlyMap<string, Credential>> {
    const rows = await this.pools.lookups.query((sql) =>
      sql.unsafe<CredentialRow[]>(SELECT_CREDENTIALS, [secretHashes.join(",")]),
    );
    return new Map(rows.map((row) => [row.hash, credentialOf(row)]));
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

  async listKeys(query: KeyListQuery): Promise<KeyList> {
    const last = sortValue(query, POSTGRES_DIALECT);
    const [lastRow] = last ? await this.#query<{ value: string | bigint }>(last) : [];
    const [rows, [count]] = await Promise.all([
      this.#query<KeyRow>(keyPage(query, POSTGRES_DIALECT, lastRow?.value)),
      this.#query<{ total: bigint }>(keyCount(query, POSTGRES_DIALECT)),
    ]);
    return { ...pageOf(rows, query.limit, keyOf), total: Number(count?.total ?? 0) };
  }

  async getKey(id: number): Promise<ApiKey | undefined> {
    const [row] = await this.#read<KeyRow>(`${SELECT} WHERE id = $1`, id);
    return row && keyOf(row);
  }

  async getKeys(ids: readonly number[]): Promise<readonly ApiKey[]> {
    return (await this.#read<KeyRow>(`${SELECT} WHERE id = ANY ($1::int8[])`, ids)).map(keyOf);
  }

  async listSecrets(keyIds: readonly number[]): Promise<ReadonlyMap<number, readonly KeySecret[]>> {
    return secretsByKey(await this.#read<SecretRow>(SELECT_SECRETS, keyIds.join(",")));
  }

  createKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey> {
    return this.#change((tx, revision) => insert(tx, { key, secret, revision, by }));
  }

  async createFirstKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey | undefined> {
    if ((await this.#read(SELECT_ANY)).length > 0) return undefined;
    // Changes run one after the other, so a concurrent call sees the key of the first.
    return this.#change(async (tx, revision) =>
      (await tx.unsafe<unknown[]>(SELECT_ANY)).length > 0
        ? undefined
        : insert(tx, { key, secret, revision, by }),
    );
  }

  addSecret(id: number, secret: NewSecret & { overlapEndsAt: number }, by: Attribution): Promise<void> {
    const { hash, hint, overlapEndsAt } = secret;
    return this.#change(async (tx, revision) => {
      await requireKey(tx, id);
      // A secret that already has an earlier end keeps it.
      await tx`UPDATE key_secrets SET valid_until = least(valid_until, ${overlapEndsAt}) WHERE key_id = ${id}`;
      await tx`INSERT INTO key_secrets (hash, key_id, hint, issued_at) VALUES (${hash}, ${id}, ${hint}, ${by.at})`;
      await tx`UPDATE api_keys SET revision = ${revision} WHERE id = ${id}`;
      await insertAudit(tx, keyRolled(id, secret, by));
    });
  }

  updateKey(id: number, change: KeyChange, by: Attribution): Promise<ApiKey> {
    return this.#change(async (tx, revision) => {
      const before = await requireKey(tx, id);
      const after = applyChange(before, change);
      const { revokedAt = null, unbannedAt = null } = after;
      const unbanRevision = change.unbannedAt === undefined ? null : revision;
      await tx.unsafe(UPDATE, [...keyValues(after), revokedAt, unbannedAt, unbanRevision, revision, id]);
      const entry = keyUpdated({ before, after, change }, by);
      if (entry) await insertAudit(tx, entry);
      return after;
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

  #query<Row>({ sql, values }: SqlQuery): Promise<Row[]> {
    return this.#read<Row>(sql, ...values);
  }

  #read<Row>(query: string, ...values: unknown[]): Promise<Row[]> {
    return this.pools.reads.query((sql) => sql.unsafe<Row[]>(query, values));
  }
}

type CredentialRow = KeyRow & { readonly hash: string; readonly validUntil: bigint | null };

function credentialOf(row: CredentialRow): Credential {
  const key = keyOf(row);
  return row.validUntil === null ? { key } : { key, validUntil: Number(row.validUntil) };
}

async function requireKey(tx: SQL, id: number): Promise<ApiKey> {
  const rows = await tx.unsafe<KeyRow[]>(`${SELECT} WHERE id = $1`, [id]);
  return keyOf(required(rows[0], `key ${id} does not exist`));
}

interface Insertion {
  readonly key: NewKey;
  readonly secret: NewSecret;
  readonly revision: bigint;
  readonly by: Attribution;
}

async function insert(tx: SQL, { key, secret, revision, by }: Insertion): Promise<ApiKey> {
  const rows = await tx.unsafe<KeyRow[]>(INSERT, [...keyValues(key), key.createdAt, revision]);
  const created = keyOf(required(rows[0], "PostgreSQL returned no key"));
  const { hash, hint } = secret;
  await tx`INSERT INTO key_secrets (hash, key_id, hint, issued_at)
    VALUES (${hash}, ${created.id}, ${hint}, ${by.at})`;
  await insertAudit(tx, keyCreated(created, secret, by));
  return created;
}

function required<T>(value: T | undefined, message: string): T {
  if (value === undefined) throw new Error(message);
  return value;
}

interface CredentialLookupsOptions {
  /** Finds credentials by the hashes of their secrets, in one query. Hashes that no key has are left out. */
  find(secretHashes: readonly string[]): Promise<ReadonlyMap<string, Credential>>;
  readonly maxQueued: number;
}

interface Lookup {
  readonly secretHash: string;
  resolve(credential: Credential | undefined): void;
  reject(reason: unknown): void;
}

/** The list of hashes is one parameter of the query. */
const MAX_PER_QUERY = 64;

/**
 * Looks secrets up together: those that arrive while a query runs share the next one, so a single lookup never waits.
 * Anybody can cause lookups, and a query costs PostgreSQL and this process nearly the same for one secret as for many.
 */
export class CredentialLookups {
  readonly #options: CredentialLookupsOptions;
  readonly #queue: Lookup[] = [];
  #isRunning = false;

  constructor(options: CredentialLookupsOptions) {
    this.#options = options;
  }

  find(secretHash: string): Promise<Credential | undefined> {
    if (this.#queue.length >= this.#options.maxQueued) {
      return Promise.reject(
        new Overloaded(`the queue for PostgreSQL is full (${this.#queue.length} lookups)`),
      );
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ secretHash, resolve, reject });
      if (!this.#isRunning) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#queue.length > 0) await this.#findAll(this.#queue.splice(0, MAX_PER_QUERY));
    this.#isRunning = false;
  }

  async #findAll(lookups: readonly Lookup[]): Promise<void> {
    try {
      const found = await this.#options.find(lookups.map(({ secretHash }) => secretHash));
      for (const { secretHash, resolve } of lookups) resolve(found.get(secretHash));
    } catch (error) {
      for (const { reject } of lookups) reject(error);
    }
  }
}
