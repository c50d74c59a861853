import type { OrderQuery } from "../../domain/corrections.ts";
import { INT64_MAX } from "../../api/json.ts";
import type { IdempotentRequest, OrderClosing, OrderPlacement, Page, PageQuery } from "../../domain/ports.ts";
import type { Order, OrderStatus } from "../../domain/resources.ts";
import { closeOrder, findOrder, placeOrder, SqlCorrectionStore } from "../orders.ts";
import { OPERATOR_ORDER_COLUMNS, ORDER_COLUMNS, orderOf, type OrderRow } from "../rows.ts";
import type { Statement } from "../statements.ts";
import { IdempotencyRecords } from "./idempotency.ts";
import { type PageQueries, PageReader } from "./pets.ts";
import type { Pools } from "./pool.ts";
import { POSTGRES_DIALECT, postgresDatabase, runAll } from "./statements.ts";

const SELECT = `SELECT ${ORDER_COLUMNS} FROM orders`;
/** The collation belongs to orders_by_key_and_status alone, so that orders_by_status does not serve the order. */
const STATUS_OF_KEY = `status COLLATE "C"`;
export const ORDER_PAGES: PageQueries = {
  all: `${SELECT} WHERE (key_id, id) > ($3, $1) AND key_id <= $3 ORDER BY key_id, id LIMIT $2`,
  byStatus: `${SELECT} WHERE key_id = $3 AND (${STATUS_OF_KEY}, id) > ($4, $1) AND ${STATUS_OF_KEY} <= $4
    ORDER BY ${STATUS_OF_KEY}, id LIMIT $2`,
};

export class Orders {
  readonly #pages: PageReader<OrderRow, Order, [number]>;
  readonly #records: IdempotencyRecords;

  constructor(private readonly pools: Pools) {
    this.#pages = new PageReader(pools.reads, ORDER_PAGES, orderOf);
    this.#records = new IdempotencyRecords("placeOrder", pools.writes, pools.retentionNow);
  }

  list(keyId: number, query: PageQuery<OrderStatus>): Promise<Page<Order>> {
    return this.#pages.read(query, keyId);
  }

  async get(keyId: number, id: bigint): Promise<Order | undefined> {
    return this.pools.reads.query((sql) => runAll(sql, () => findOrder(keyId, id)));
  }

  async place(placement: OrderPlacement, at: number, request: IdempotentRequest | undefined) {
    const write = { at, request };
    const result = await this.pools.rows.transaction(`pet ${placement.petId}`, async (tx) => {
      const earlier = (await this.#records.lockAndFind(tx, [write])).get(write);
      if (earlier !== undefined) return earlier;
      const result = await runAll(tx, () => placeOrder(placement, at, POSTGRES_DIALECT));
      if (!("code" in result)) await this.#records.save(tx, [[write, result]]);
      return result;
    });
    if (request !== undefined) this.#records.purge([write]);
    return result;
  }

  close(closing: OrderClosing, at: number) {
    return this.pools.rows.transaction(`order ${closing.id}`, (tx) =>
      runAll(tx, () => closeOrder(closing, at)),
    );
  }
}

const SELECT_OF_ANY_KEY = `SELECT ${OPERATOR_ORDER_COLUMNS} FROM orders`;

/**
 * Pages of the orders of all keys, newest first. The parameters are the identifier to continue before, the limit, and
 * the filters. Each order leaves PostgreSQL the index that begins with the filters only; see PageQueries. The further
 * filters of a pet's orders are CASE: with OR, PostgreSQL expects so few rows that it sorts all orders of the pet.
 */
export const ALL_ORDER_PAGES = {
  all: `${SELECT_OF_ANY_KEY} WHERE id < $1 ORDER BY id DESC LIMIT $2`,
  byStatus: `${SELECT_OF_ANY_KEY} WHERE (status, id) < ($3, $1) AND status >= $3 ORDER BY status DESC, id DESC LIMIT $2`,
  byKey: `${SELECT_OF_ANY_KEY} WHERE (key_id, id) < ($3, $1) AND key_id >= $3 ORDER BY key_id DESC, id DESC LIMIT $2`,
  byKeyAndStatus: `${SELECT_OF_ANY_KEY} WHERE key_id = $3 AND (${STATUS_OF_KEY}, id) < ($4, $1) AND ${STATUS_OF_KEY} >= $4
    ORDER BY ${STATUS_OF_KEY} DESC, id DESC LIMIT $2`,
  byPet: `${SELECT_OF_ANY_KEY} WHERE (pet_id, id) < ($3, $1) AND pet_id >= $3
    AND CASE WHEN $4::int8 IS NULL THEN true ELSE key_id = $4 END
    AND CASE WHEN $5::text IS NULL THEN true ELSE status = $5 END
    ORDER BY pet_id DESC, id DESC LIMIT $2`,
} as const;

export function postgresCorrectionStore(pools: Pools): SqlCorrectionStore {
  return new SqlCorrectionStore({
    ...postgresDatabase(pools),
    write: (row, statements) => pools.rows.transaction(row, (tx) => runAll(tx, statements)),
    orderPage,
  });
}

function orderPage(query: OrderQuery): Statement {
  const { before = INT64_MAX, limit } = query;
  const [sql, filters] = pageFor(query);
  return { sql, values: [before, limit + 1, ...filters] };
}

function pageFor({ petId, keyId, status }: OrderQuery): [string, Statement["values"]] {
  if (petId !== undefined) return [ALL_ORDER_PAGES.byPet, [petId, keyId ?? null, status ?? null]];
  if (keyId === undefined) {
    return status === undefined ? [ALL_ORDER_PAGES.all, []] : [ALL_ORDER_PAGES.byStatus, [status]];
  }
  return status === undefined
    ? [ALL_ORDER_PAGES.byKey, [keyId]]
    : [ALL_ORDER_PAGES.byKeyAndStatus, [keyId, status]];
}
