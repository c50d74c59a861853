import type { Statement } from "bun:sqlite";
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
import type { Connection } from "../connection.ts";
import { openDatabaseFor } from "../database.ts";
import { MIGRATIONS } from "../migrations.ts";
import { translateErrors } from "../errors.ts";

/** Takes a few milliseconds and less than a megabyte. */
const ROWS_PER_PAGE = 2_000;

export function openExportStore(path: string): ExportStore {
  const options = {
    migrations: MIGRATIONS,
    synchronous: "NORMAL",
    cacheKiB: 4 * 1024,
    busyTimeoutMs: 1_000,
  } as const;
  return openDatabaseFor(path, options, (connection) => new SqliteExportStore(connection));
}

type UsageCountsRow = StoredCounts & { readonly keyId: number };

/** A read transaction sees the database as it was at its first read. */
class SqliteExportStore implements ExportStore {
  readonly #selectPets: Statement<PetRow, [bigint, number]>;
  readonly #selectOrders: Statement<OrderWithKeyRow, [bigint, number]>;
  readonly #selectKeys: Statement<KeyRow, [bigint, number]>;
  readonly #selectSecrets: Statement<HashedSecretRow, [bigint, bigint]>;

  constructor(private readonly connection: Connection) {
    this.#selectPets = connection.prepare(pageOf(`SELECT ${PET_COLUMNS} FROM pets`));
    this.#selectOrders = connection.prepare(pageOf(`SELECT ${ORDER_WITH_KEY_COLUMNS} FROM orders`));
    this.#selectKeys = connection.prepare(pageOf(`SELECT ${KEY_COLUMNS} FROM api_keys`));
    this.#selectSecrets = connection.prepare(`SELECT ${STORED_SECRET_COLUMNS} FROM key_secrets
      WHERE key_id BETWEEN ? AND ? ORDER BY key_id, hash`);
  }

  async *pets(): AsyncGenerator<readonly Pet[]> {
    for (const rows of this.#pages(this.#selectPets)) yield rows.map(petOf);
  }

  async *orders(): AsyncGenerator<readonly OrderWithKey[]> {
    for (const rows of this.#pages(this.#selectOrders)) yield rows.map(orderWithKeyOf);
  }

  async *keys(): AsyncGenerator<readonly ExportedKey[]> {
    for (const rows of this.#pages(this.#selectKeys)) {
      const [first = 0n, last = 0n] = [rows[0]?.id, rows.at(-1)?.id].map((id) => BigInt(id ?? 0));
      yield exportedKeysOf(rows, this.#selectSecrets.all(first, last));
    }
  }

  async *usage(by: UsageInterval): AsyncGenerator<readonly UsageRow[]> {
    const select = this.connection.prepareNumbers<
      UsageCountsRow,
      [number, number, number]
    >(`SELECT start, key_id AS keyId, admitted, limited, banned, errors, operations FROM usage_${by}s
         WHERE (start, key_id) > (?, ?) ORDER BY start, key_id LIMIT +?`);
    const pages = this.#snapshot<UsageCountsRow>((last) =>
      select.all(last?.start ?? -1, last?.keyId ?? 0, ROWS_PER_PAGE),
    );
    for (const rows of pages) yield rows.flatMap((row) => usageRowsOf(row.keyId, row));
  }

  async close(): Promise<void> {
    this.connection.close();
  }

  #pages<Row extends { readonly id: bigint | number }>(
    select: Statement<Row, [bigint, number]>,
  ): Generator<Row[]> {
    return this.#snapshot<Row>((last) => select.all(BigInt(last?.id ?? 0), ROWS_PER_PAGE));
  }

  /** `read` gets the last row of the page before. */
  *#snapshot<Row>(read: (last: Row | undefined) => Row[]): Generator<Row[]> {
    this.connection.run("BEGIN");
    try {
      let last: Row | undefined;
      for (;;) {
        const rows = translateErrors(() => read(last));
        if (rows.length > 0) yield rows;
        if (rows.length < ROWS_PER_PAGE) return;
        last = rows.at(-1);
      }
    } finally {
      this.connection.run("COMMIT");
    }
  }
}

function pageOf(select: string): string {
  return `${select} WHERE id > ? ORDER BY id LIMIT +?`;
}
