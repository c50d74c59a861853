import { INT64_MAX } from "../api/json.ts";
import type { OrderQuery } from "../domain/corrections.ts";
import type { PetQuery } from "../domain/ports.ts";
import { idsAfter, OPERATOR_ORDER_COLUMNS, ORDER_COLUMNS, PET_COLUMNS } from "./rows.ts";
import { type Dialect, jsonArray, type SqlValue, type Statement } from "./statements.ts";

interface PageOptions {
  /** The columns with which an index begins that ends with `id`: all rows of the page have the same values in them. */
  readonly filters: readonly string[];
  /** Further ones, for which no index is used. */
  readonly further?: readonly string[];
  readonly isDescending?: boolean;
}

/**
 * A page in the order of `id`. The parameters are the values of the filters, the identifier that the page follows, the
 * limit, and the values of the further filters.
 *
 * An index finds the first row of every page, so the last page costs what the first one does. Written as
 * `status = ? AND id > ?`, a condition lets PostgreSQL walk all pets by `id` and filter by status. Where the old pets
 * are sold and the available ones come last, that reads the whole table. `(status, id) > (?, ?) AND status <= ?`
 * means the same, and the order by (status, id) leaves it the index on (status, id) only. SQLite does not look up the
 * `id` of such a pair.
 *
 * `LIMIT +?` instead of `LIMIT ?`: SQLite plans by the value of a bare limit, and so compiles the statement again at
 * every call.
 */
function selectPage(select: string, options: PageOptions, { comparesRows }: Dialect): string {
  const { filters, further = [], isDescending = false } = options;
  const [follows, ends, direction] = isDescending ? ["<", ">=", " DESC"] : [">", "<=", ""];
  const count = filters.length;
  const [id, limit] = [`?${count + 1}`, `?${count + 2}`];
  const conditions = filters.map((column, i) => `${column} = ?${i + 1}`);
  const last = filters.at(-1);
  if (comparesRows && last !== undefined) {
    const value = `?${count}`;
    conditions.splice(-1, 1, `(${last}, id) ${follows} (${value}, ${id})`, `${last} ${ends} ${value}`);
  } else conditions.push(`id ${follows} ${id}`);
  conditions.push(...further.map((column, i) => isWithoutIndex(column, `?${count + 3 + i}`)));
  const order = comparesRows && last !== undefined ? [last, "id"] : ["id"];
  return `${select} WHERE ${conditions.join(" AND ")}
    ORDER BY ${order.map((column) => column + direction).join(", ")} LIMIT +${limit}`;
}

/** The database does not look for another index, and PostgreSQL expects enough rows to read them in their order. */
function isWithoutIndex(column: string, parameter: string): string {
  return `CASE WHEN ${column} = ${parameter} THEN TRUE ELSE FALSE END`;
}

const SELECT_PETS = `SELECT ${PET_COLUMNS} FROM pets`;

export function petPage(query: PetQuery, dialect: Dialect): Statement {
  const { ids, status, after = 0n, limit } = query;
  const statuses = status === undefined ? [] : [status];
  if (ids === undefined) {
    const filters = statuses.map(() => "status");
    return { sql: selectPage(SELECT_PETS, { filters }, dialect), values: [...statuses, after, limit + 1] };
  }
  const hasStatus = status === undefined ? "" : ` AND ${isWithoutIndex("status", "?")}`;
  return {
    sql: `${SELECT_PETS} WHERE ${dialect.isOneOf("id", "?")}${hasStatus} ORDER BY id LIMIT +?`,
    values: [jsonArray(idsAfter(query)), ...statuses, limit + 1],
  };
}

const SELECT_ORDERS = `SELECT ${ORDER_COLUMNS} FROM orders`;
const SELECT_ORDERS_OF_ANY_KEY = `SELECT ${OPERATOR_ORDER_COLUMNS} FROM orders`;

/** In PostgreSQL, the order of bytes is that of the index on keys and statuses alone. */
export function orderPagesOfKey(dialect: Dialect): { readonly all: string; readonly byStatus: string } {
  return {
    all: selectPage(SELECT_ORDERS, { filters: ["key_id"] }, dialect),
    byStatus: selectPage(SELECT_ORDERS, { filters: ["key_id", dialect.bytewise("status")] }, dialect),
  };
}

/** Of every key, newest first. A pet has few orders, so they are found by the pet. */
export function orderPage(query: OrderQuery, dialect: Dialect): Statement {
  const { petId, keyId, status, before = INT64_MAX, limit } = query;
  const filters: readonly (readonly [column: string, value: SqlValue | undefined])[] = [
    ["key_id", keyId],
    [keyId === undefined ? "status" : dialect.bytewise("status"), status],
  ];
  const given = filters.flatMap(([column, value]) => (value === undefined ? [] : [{ column, value }]));
  const columns = given.map(({ column }) => column);
  const values = given.map(({ value }) => value);
  const isOfPet = petId !== undefined;
  const options = isOfPet ? { filters: ["pet_id"], further: columns } : { filters: columns };
  return {
    sql: selectPage(SELECT_ORDERS_OF_ANY_KEY, { ...options, isDescending: true }, dialect),
    values: isOfPet ? [petId, before, limit + 1, ...values] : [...values, before, limit + 1],
  };
}
