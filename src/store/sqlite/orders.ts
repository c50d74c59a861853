import { INT64_MAX } from "../../api/json.ts";
import type { OrderQuery } from "../../domain/corrections.ts";
import type { Page, PageQuery } from "../../domain/ports.ts";
import type { Order, OrderStatus } from "../../domain/resources.ts";
import { OPERATOR_ORDER_COLUMNS, ORDER_COLUMNS, orderOf, type OrderRow } from "../rows.ts";
import { pageOf, type Statement } from "../statements.ts";
import type { Connection } from "./connection.ts";
import { AFTER } from "./pets.ts";

const SELECT_PAGE = `SELECT ${ORDER_COLUMNS} FROM orders WHERE key_id = ? AND ${AFTER}`;
const SELECT_PAGE_BY_STATUS = `SELECT ${ORDER_COLUMNS} FROM orders WHERE key_id = ? AND status = ? AND ${AFTER}`;

export function listOrders(
  connection: Connection,
  keyId: number,
  { after = 0n, status, limit }: PageQuery<OrderStatus>,
): Page<Order> {
  const rows =
    status === undefined
      ? connection.all<OrderRow>(SELECT_PAGE, keyId, after, limit + 1)
      : connection.all<OrderRow>(SELECT_PAGE_BY_STATUS, keyId, status, after, limit + 1);
  return pageOf(rows, limit, orderOf);
}

/** Of every key, newest first. */
export function orderPage({ petId, keyId, status, before = INT64_MAX, limit }: OrderQuery): Statement {
  // A pet has few orders, so they are found by the pet: the plus keeps SQLite from using another index.
  const plus = petId === undefined ? "" : "+";
  const filters = [
    ["pet_id", petId],
    [`${plus}key_id`, keyId],
    [`${plus}status`, status],
  ] as const;
  const given = filters.flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]));
  const conditions = given.map(({ column }) => `${column} = ? AND `).join("");
  return {
    sql: `SELECT ${OPERATOR_ORDER_COLUMNS} FROM orders WHERE ${conditions}id < ? ORDER BY id DESC LIMIT +?`,
    values: [...given.map(({ value }) => value), before, limit + 1],
  };
}
