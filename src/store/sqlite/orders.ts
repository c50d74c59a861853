import type { Statement } from "bun:sqlite";
import type { Order, OrderStatus } from "../../contract/resources.ts";
import type { Page, PageQuery } from "../../domain/ports.ts";
import { ORDER_COLUMNS, orderOf, type OrderRow } from "../rows.ts";
import type { Connection } from "./connection.ts";
import { PageReader } from "./page-query.ts";

const SELECT = `SELECT ${ORDER_COLUMNS} FROM orders`;

export class Orders {
  readonly #pages: PageReader<OrderRow, OrderStatus>;
  readonly #selectById: Statement<OrderRow, [bigint]>;
  readonly #insert: Statement<unknown, [bigint, OrderStatus, number]>;
  readonly #updateStatus: Statement<unknown, [OrderStatus, bigint]>;

  constructor(connection: Connection) {
    this.#pages = new PageReader(connection, SELECT);
    this.#selectById = connection.prepare(`${SELECT} WHERE id = ?`);
    this.#insert = connection.prepare("INSERT INTO orders (pet_id, status, created_at) VALUES (?, ?, ?)");
    this.#updateStatus = connection.prepare("UPDATE orders SET status = ? WHERE id = ?");
  }

  list(query: PageQuery<OrderStatus>): Page<Order> {
    return this.#pages.read(query, orderOf);
  }

  get(id: bigint): Order | undefined {
    const row = this.#selectById.get(id);
    return row === null ? undefined : orderOf(row);
  }

  insert(petId: bigint, at: number): Order {
    const { lastInsertRowid } = this.#insert.run(petId, "placed", at);
    return orderOf({ id: BigInt(lastInsertRowid), petId, status: "placed", createdAt: BigInt(at) });
  }

  setStatus(id: bigint, status: OrderStatus): void {
    this.#updateStatus.run(status, id);
  }
}
