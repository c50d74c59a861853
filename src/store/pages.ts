import { INT64_MAX } from "../api/json.ts";
import { columnOf } from "../domain/fields.ts";
import type { OrderPageQuery, OrderQuery, PetQuery } from "../domain/ports.ts";
import { ORDER_FILTERS, type OrderFilters, PET_FILTERS, type PetFilters } from "../domain/resources.ts";
import { OPERATOR_ORDER_ROWS, ORDER_ROWS, PET_ROWS } from "./rows.ts";
import { type Dialect, jsonArray, type SqlValue, type Statement } from "./statements.ts";

interface PageOptions {
  /** Columns that an index begins with; the index ends with `id`. All rows of the page have the same values in them. */
  readonly filters: readonly string[];
  /** Further columns to filter by, which no index covers. */
  readonly further?: readonly string[];
  readonly isDescending?: boolean;
  /**
   * The SQL of the parameters: the values of the filters, the identifier that the page follows, the limit, and the
   * values of the further filters.
   */
  readonly parameters?: readonly string[];
}

/**
 * Selects a page in the order of `id`.
 *
 * An index finds the first row of every page, so the last page costs as much as the first. With the condition
 * `status = ? AND id > ?`, PostgreSQL may walk all pets by `id` and filter by status. Where the old pets are sold and
 * the available ones come last, that reads the whole table. The condition `(status, id) > (?, ?) AND status <= ?` means
 * the same, and with the order by (status, id) only the index on (status, id) fits. SQLite would not use the index for
 * the `id` of such a pair.
 *
 * The statement has `LIMIT +?` instead of `LIMIT ?`, because SQLite plans by the value of a bare limit, and so compiles
 * the statement again at every call.
 */
export function selectPage(select: string, options: PageOptions, { comparesRows }: Dialect): string {
  const { filters, further = [], isDescending = false, parameters = [] } = options;
  const [follows, ends, direction] = isDescending ? ["<", ">=", " DESC"] : [">", "<=", ""];
  const parameter = (i: number) => parameters[i] ?? `?${i + 1}`;
  const count = filters.length;
  const [id, limit] = [parameter(count), parameter(count + 1)];
  const conditions = filters.map((column, i) => `${column} = ${parameter(i)}`);
  const last = filters.at(-1);
  if (comparesRows && last !== undefined) {
    const value = parameter(count - 1);
    conditions.splice(-1, 1, `(${last}, id) ${follows} (${value}, ${id})`, `${last} ${ends} ${value}`);
  } else conditions.push(`id ${follows} ${id}`);
  conditions.push(...further.map((column, i) => isWithoutIndex(column, parameter(count + 2 + i))));
  const order = comparesRows && last !== undefined ? [last, "id"] : ["id"];
  return `${select} WHERE ${conditions.join(" AND ")}
    ORDER BY ${order.map((column) => column + direction).join(", ")} LIMIT +${limit}`;
}

/**
 * A condition that no index is used for. Databases do not look for one, and PostgreSQL expects enough rows to read them
 * in their order.
 */
function isWithoutIndex(column: string, parameter: string): string {
  return `CASE WHEN ${column} = ${parameter} THEN TRUE ELSE FALSE END`;
}

export interface Filter {
  readonly name: string;
  readonly column: string;
  readonly value: SqlValue;
}

/** Returns a function that lists the filters of a query, in the order of the table of filters. */
function filterReader<Filters extends object>(table: Required<Record<keyof Filters & string, unknown>>) {
  const columns = Object.keys(table).map((name) => ({ name, column: columnOf(name) }));
  return (query: Filters): readonly Filter[] => {
    const filters: Filter[] = [];
    for (const { name, column } of columns) {
      // The schemas of filters produce only such values.
      const value = Reflect.get(query, name) as SqlValue | undefined;
      if (value !== undefined) filters.push({ name, column, value });
    }
    return filters;
  };
}

export const petFiltersIn = filterReader<PetFilters>(PET_FILTERS);
const orderFiltersIn = filterReader<OrderFilters>(ORDER_FILTERS);

/** The identifiers that a query names and that follow its cursor. */
export function idsAfter({ ids = [], after }: PetQuery): readonly bigint[] {
  return after === undefined ? ids : ids.filter((id) => id > after);
}

const SELECT_PETS = `SELECT ${PET_ROWS.selected} FROM pets`;

export function petPage(query: PetQuery, dialect: Dialect): Statement {
  const { ids, after = 0n, limit } = query;
  const filters = petFiltersIn(query);
  const columns = filters.map(({ column }) => column);
  const values = filters.map(({ value }) => value);
  if (ids === undefined) {
    return {
      sql: selectPage(SELECT_PETS, { filters: columns }, dialect),
      values: [...values, after, limit + 1],
    };
  }
  const conditions = [dialect.isOneOf("id", "?"), ...columns.map((column) => isWithoutIndex(column, "?"))];
  return {
    sql: `${SELECT_PETS} WHERE ${conditions.join(" AND ")} ORDER BY id LIMIT +?`,
    values: [jsonArray(idsAfter(query)), ...values, limit + 1],
  };
}

const SELECT_ORDERS = `SELECT ${ORDER_ROWS.selected} FROM orders`;
const SELECT_ORDERS_OF_ANY_KEY = `SELECT ${OPERATOR_ORDER_ROWS.selected} FROM orders`;

/**
 * Selects the orders of a key. In PostgreSQL, only the index on keys and statuses has the order of bytes, so it is
 * used.
 */
export function orderPageOfKey(keyId: number, query: OrderPageQuery, dialect: Dialect): Statement {
  const { after = 0n, limit } = query;
  const filters = orderFiltersIn(query);
  const columns = ["key_id", ...filters.map(({ column }) => dialect.bytewise(column))];
  return {
    sql: selectPage(SELECT_ORDERS, { filters: columns }, dialect),
    values: [keyId, ...filters.map(({ value }) => value), after, limit + 1],
  };
}

/** Selects the orders of all keys, newest first. A pet has few orders, so the index on pets comes first. */
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
