import type { SQL } from "bun";
import type { Pet } from "../../../domain/resources.ts";
import type { OrderWithKey } from "../../../domain/corrections.ts";
import type { ExportedKey, ExportStore } from "../../../domain/data-transfer.ts";
import type { UsageInterval, UsageRow } from "../../../domain/usage-history.ts";
import { exportedKeysOf, type HashedSecretRow, STORED_SECRET_COLUMNS } from "../../export-rows.ts";
import { KEY_COLUMNS, type KeyRow } from "../../key-rows.ts";
import {
  ORDER_WITH_KEY_COLUMNS,
  orderWithKeyOf,
  type OrderWithKeyRow,
  PET_COLUMNS,
  petOf,
  type PetRow,
  type StoredCounts,
  usageRowsOf,
} from "../../rows.ts";
import { connect, toUnavailable } from "../connection.ts";

const ROWS_PER_PAGE = 5_000;
const TIMEOUT_MS = 60_000;

export function openExportStore(url: string, schema: string | undefined): ExportStore {
  const sql = connect(url, {
    schema,
    maxConnections: 1,
    connectMs: TIMEOUT_MS,
    statementMs: TIMEOUT_MS,
    lockMs: TIMEOUT_MS,
    // The reader of a pipe may be slow.
    idleInTransactionMs: 60 * TIMEOUT_MS,
  });
  return new PostgresExportStore(sql);
}

type UsageCountsRow = StoredCounts & { readonly keyId: number };

const SECRETS = `SELECT ${STORED_SECRET_COLUMNS} FROM key_secrets
  WHERE key_id BETWEEN $1 AND $2 ORDER BY key_id, hash`;

class PostgresExportStore implements ExportStore {
  constructor(private readonly sql: SQL) {}

  async *pets(): AsyncGenerator<readonly Pet[]> {
    for await (const rows of this.#pages<PetRow>(`SELECT ${PET_COLUMNS} FROM pets`)) yield rows.map(petOf);
  }

  async *orders(): AsyncGenerator<readonly OrderWithKey[]> {
    const pages = this.#pages<OrderWithKeyRow>(`SELECT ${ORDER_WITH_KEY_COLUMNS} FROM orders`);
    for await (const rows of pages) yield rows.map(orderWithKeyOf);
  }

  async *keys(): AsyncGenerator<readonly ExportedKey[]> {
    const select = `SELECT ${KEY_COLUMNS} FROM api_keys WHERE id > $1 ORDER BY id LIMIT $2`;
    const pages = this.#snapshot(async (tx, last: KeyPage | undefined): Promise<KeyPage> => {
      const keys = await tx.unsafe<KeyRow[]>(select, [last?.keys.at(-1)?.id ?? 0, ROWS_PER_PAGE]);
      const secrets = await tx.unsafe<HashedSecretRow[]>(SECRETS, [keys[0]?.id ?? 0, keys.at(-1)?.id ?? 0]);
      return { keys, secrets, length: keys.length };
    });
    for await (const { keys, secrets } of pages) yield exportedKeysOf(keys, secrets);
  }

  async *usage(by: UsageInterval): AsyncGenerator<readonly UsageRow[]> {
    const select = `SELECT start::float8, key_id::float8 AS "keyId", admitted::float8, limited::float8,
        banned::float8, errors::float8, operations::text AS operations
      FROM usage_${by}s WHERE (usage_${by}s.start, key_id) > ($1, $2) ORDER BY usage_${by}s.start, key_id LIMIT $3`;
    const pages = this.#snapshot((tx, last: UsageCountsRow[] | undefined) => {
      const { start = -1, keyId = 0 } = last?.at(-1) ?? {};
      return tx.unsafe<UsageCountsRow[]>(select, [start, keyId, ROWS_PER_PAGE]);
    });
    for await (const rows of pages) yield rows.flatMap((row) => usageRowsOf(row.keyId, row));
  }

  async close(): Promise<void> {
    await this.sql.close({ timeout: 0 });
  }

  #pages<Row extends { readonly id: bigint }>(select: string): AsyncGenerator<Row[]> {
    const page = `${select} WHERE id > $1 ORDER BY id LIMIT $2`;
    return this.#snapshot((tx, last: Row[] | undefined) =>
      tx.unsafe<Row[]>(page, [last?.at(-1)?.id ?? 0n, ROWS_PER_PAGE]),
    );
  }

  /** REPEATABLE READ: each query sees what was committed before the first one. `read` gets the page before. */
  async *#snapshot<Page extends { readonly length: number }>(
    read: (tx: SQL, last: Page | undefined) => Promise<Page>,
  ): AsyncGenerator<Page> {
    const tx = await this.sql.reserve();
    try {
      await tx.unsafe("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      let last: Page | undefined;
      for (;;) {
        last = await read(tx, last);
        if (last.length > 0) yield last;
        if (last.length < ROWS_PER_PAGE) return;
      }
    } catch (error) {
      throw toUnavailable(error);
    } finally {
      // A connection that is lost has no transaction.
      await tx.unsafe("COMMIT").catch(() => {});
      tx.release();
    }
  }
}

interface KeyPage {
  readonly keys: readonly KeyRow[];
  readonly secrets: readonly HashedSecretRow[];
  readonly length: number;
}
