import type { Statement } from "bun:sqlite";
import type { Order, OrderStatus } from "../../domain/resources.ts";
import type { OrderPlacement, Page, PageQuery } from "../../domain/ports.ts";
import { ORDER_COLUMNS, orderOf, type OrderRow } from "../rows.ts";
import type { Connection } from "./connection.ts";
import { PageReader } from "./page-query.ts";
import { translateErrors } from "./sqlite-errors.ts";

const SELECT = `SELECT ${ORDER_COLUMNS} FROM orders`;

export class Orders {
  readonly #pages: PageReader<OrderRow, Order, [number]>;
  readonly #selectById: Statement<OrderRow, [bigint, number]>;
  readonly #insert: Statement<unknown, [number, bigint, OrderStatus, number]>;
  readonly #updateStatus: Statement<unknown, [OrderStatus, bigint]>;

  constructor(connection: Connection) {
    this.#pages = new PageReader(connection, { select: SELECT, scope: "key_id = ?", itemOf: orderOf });
    this.#selectById = connection.prepare(`${SELECT} WHERE id = ? AND key_id = ?`);
    this.#insert = connection.prepare(
      "INSERT INTO orders (key_id, pet_id, status, created_at) VALUES (?, ?, ?, ?)",
    );
    this.#updateStatus = connection.prepare("UPDATE orders SET status = ? WHERE id = ?");
  }

  list(keyId: number, query: PageQuery<OrderStatus>): Page<Order> {
    return this.#pages.read(query, keyId);
  }

  get(keyId: number, id: bigint): Order | undefined {
    const row = translateErrors(() => this.#selectById.get(id, keyId));
    return row === null ? undefined : orderOf(row);
  }

  insert({ keyId, petId }: OrderPlacement, at: number): Order {
    const { lastInsertRowid } = this.#insert.run(keyId, petId, "placed", at);
    return orderOf({ id: BigInt(lastInsertRowid), petId, status: "placed", createdAt: BigInt(at) });
  }

  setStatus(id: bigint, status: OrderStatus): void {
    this.#updateStatus.run(status, id);
  }
}
