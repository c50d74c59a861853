import type { SQLQueryBindings, Statement } from "bun:sqlite";
import { INT64_MAX } from "../../api/json.ts";
import type { OrderQuery, OrderWithKey } from "../../domain/corrections.ts";
import type { Page } from "../../domain/ports.ts";
import { ORDER_WITH_KEY_COLUMNS, orderWithKeyOf, type OrderWithKeyRow, pageOf } from "../rows.ts";
import type { Connection } from "./connection.ts";
import { translateErrors } from "./sqlite-errors.ts";

type Pages<Filters extends SQLQueryBindings[]> = Statement<OrderWithKeyRow, [...Filters, bigint, number]>;

/** Reads orders as operators do: of every key, newest first. For `LIMIT +?` see PageReader. */
export class OrdersOfAllKeys {
  readonly #select: Pages<[]>;
  readonly #selectByStatus: Pages<[string]>;
  readonly #selectByKey: Pages<[number]>;
  readonly #selectByKeyAndStatus: Pages<[number, string]>;
  readonly #selectByPet: Pages<[bigint, number | null, string | null]>;
  readonly #selectById: Statement<OrderWithKeyRow, [bigint]>;
  readonly #selectPlaced: Statement<{ id: bigint }, [bigint]>;
  readonly #selectLatest: Statement<{ id: bigint }, [bigint]>;

  constructor(connection: Connection) {
    const select = `SELECT ${ORDER_WITH_KEY_COLUMNS} FROM orders WHERE`;
    const newestFirst = "id < ? ORDER BY id DESC LIMIT +?";
    this.#select = connection.prepare(`${select} ${newestFirst}`);
    this.#selectByStatus = connection.prepare(`${select} status = ? AND ${newestFirst}`);
    this.#selectByKey = connection.prepare(`${select} key_id = ? AND ${newestFirst}`);
    this.#selectByKeyAndStatus = connection.prepare(`${select} key_id = ? AND status = ? AND ${newestFirst}`);
    this.#selectByPet = connection.prepare(`${select} pet_id = ?1 AND (?2 IS NULL OR key_id = ?2)
      AND (?3 IS NULL OR status = ?3) AND id < ?4 ORDER BY id DESC LIMIT +?5`);
    this.#selectById = connection.prepare(`${select} id = ?`);
    this.#selectPlaced = connection.prepare("SELECT id FROM orders WHERE pet_id = ? AND status = 'placed'");
    this.#selectLatest = connection.prepare(
      "SELECT id FROM orders WHERE pet_id = ? ORDER BY id DESC LIMIT 1",
    );
  }

  list(query: OrderQuery): Page<OrderWithKey> {
    return translateErrors(() => pageOf(this.#rows(query), query.limit, orderWithKeyOf));
  }

  #rows({ status, keyId, petId, before = INT64_MAX, limit }: OrderQuery): OrderWithKeyRow[] {
    const rows = limit + 1;
    if (petId !== undefined) {
      return this.#selectByPet.all(petId, keyId ?? null, status ?? null, before, rows);
    }
    if (keyId === undefined) {
      return status === undefined
        ? this.#select.all(before, rows)
        : this.#selectByStatus.all(status, before, rows);
    }
    return status === undefined
      ? this.#selectByKey.all(keyId, before, rows)
      : this.#selectByKeyAndStatus.all(keyId, status, before, rows);
  }

  get(id: bigint): OrderWithKey | undefined {
    const row = translateErrors(() => this.#selectById.get(id));
    return row === null ? undefined : orderWithKeyOf(row);
  }

  /** The identifier of the order that a pet is reserved for. */
  placedFor(petId: bigint): bigint | undefined {
    return this.#selectPlaced.get(petId)?.id;
  }

  /** The identifier of the last order for a pet. */
  latestFor(petId: bigint): bigint | undefined {
    return this.#selectLatest.get(petId)?.id;
  }
}
