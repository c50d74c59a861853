import { INT64_MAX } from "../api/json.ts";
import { columnOf } from "../domain/fields.ts";
import type { OrderPageQuery, OrderQuery, PetQuery } from "../domain/ports.ts";
import { ORDER_FILTERS, type OrderFilters, PET_FILTERS, type PetFilters } from "../domain/resources.ts";
import { OPERATOR_ORDER_ROWS, ORDER_ROWS, PET_ROWS } from "./rows.ts";
import {
  type ColumnType,
  type Dialect,
  jsonArray,
  type RangeIndex,
  type SqlValue,
  type Statement,
} from "./statements.ts";

interface PageOptions {
  /** The columns that all rows of the page have the same values in. */
  readonly filters: readonly string[];
  /** How many of them an index begins with, 1 by default; it ends with `id`. The others select among its rows. */
  readonly indexed?: number;
  readonly isDescending?: boolean;
  /** Whether the page has rows with given identifiers, a JSON array, instead of those that follow one. */
  readonly isByIds?: boolean;
  /** The SQL of the parameters: the values of the filters, the identifier or identifiers, and the limit. */
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
export function selectPage(select: string, options: PageOptions, dialect: Dialect): string {
  const { filters, isDescending = false, isByIds = false, parameters = [] } = options;
  const indexed = isByIds ? 0 : Math.min(options.indexed ?? 1, filters.length);
  const [follows, ends, direction] = isDescending ? ["<", ">=", " DESC"] : [">", "<=", ""];
  const parameter = (i: number) => parameters[i] ?? `?${i + 1}`;
  const [id, limit] = [parameter(filters.length), parameter(filters.length + 1)];
  const conditions = filters.slice(0, indexed).map((column, i) => `${column} = ${parameter(i)}`);
  const last = dialect.comparesRows ? filters[indexed - 1] : undefined;
  if (isByIds) conditions.push(dialect.isOneOf("id", id));
  else if (last === undefined) conditions.push(`id ${follows} ${id}`);
  else {
    const value = parameter(indexed - 1);
    conditions.splice(-1, 1, `(${last}, id) ${follows} (${value}, ${id})`, `${last} ${ends} ${value}`);
  }
  conditions.push(
    ...filters.slice(indexed).map((column, i) => isWithoutIndex(column, parameter(indexed + i))),
  );
  const { rangeIndex } = dialect;
  if (rangeIndex && indexed > 0 && rangeIndex.column === filters[0])
    return `${select} WHERE id IN (${selectIdsInRanges(rangeIndex, conditions, { id, limit })}) ORDER BY id`;
  const order = last === undefined ? ["id"] : [last, "id"];
  return `${select} WHERE ${conditions.join(" AND ")}
    ORDER BY ${order.map((column) => column + direction).join(", ")} LIMIT +${limit}`;
}

/**
 * Selects the identifiers of a page, in ascending order, with an index that begins with ranges of identifiers: from the
 * range of the cursor on, one range after the other, until the page is full. Ranges without a row are skipped. Of a
 * million pets, a page of a category without a pet takes 1 ms, and other pages 20 µs.
 *
 * CROSS JOIN makes the ranges the outer loop, and as a coroutine they are computed as they are needed. An ORDER BY
 * would make SQLite read all rows of the category, since it does not know the order of the ranges.
 */
function selectIdsInRanges(
  { name, table, bits }: RangeIndex,
  conditions: readonly string[],
  { id, limit }: { readonly id: string; readonly limit: string },
): string {
  return `WITH RECURSIVE range (number) AS NOT MATERIALIZED (
      SELECT ${id} >> ${bits}
      UNION ALL
      SELECT (SELECT id >> ${bits} FROM ${table} WHERE id >= (number + 1) << ${bits} ORDER BY id LIMIT 1)
      FROM range WHERE number < (SELECT max(id) FROM ${table}) >> ${bits})
    SELECT id FROM range CROSS JOIN ${table} INDEXED BY ${name}
    WHERE id >> ${bits} = number AND ${conditions.join(" AND ")} LIMIT +${limit}`;
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
  readonly type: ColumnType;
  readonly value: SqlValue;
}

/** Returns a function that lists the filters of a query, in the order of the table of filters. */
function filterReader<Filters extends object>(
  table: Required<Record<keyof Filters & string, unknown>>,
  columns: Readonly<Record<string, ColumnType>>,
) {
  const known = Object.keys(table).map((name) => {
    const column = columnOf(name);
    const type = columns[column];
    if (type === undefined) throw new Error(`the filter ${name} has no column`);
    return { name, column, type };
  });
  return (query: Filters): readonly Filter[] => {
    const filters: Filter[] = [];
    for (const filter of known) {
      // The schemas of filters produce only such values.
      const value = Reflect.get(query, filter.name) as SqlValue | undefined;
      // Integers of both databases are bigints.
      if (value !== undefined)
        filters.push({ ...filter, value: filter.type === "integer" ? BigInt(value) : value });
    }
    return filters;
  };
}

export const petFiltersIn = filterReader<PetFilters>(PET_FILTERS, PET_ROWS.columns);
const orderFiltersIn = filterReader<OrderFilters>(ORDER_FILTERS, ORDER_ROWS.columns);

/** The identifiers that a query names and that follow its cursor. */
export function idsAfter({ ids = [], after }: PetQuery): readonly bigint[] {
  return after === undefined ? ids : ids.filter((id) => id > after);
}

const SELECT_PETS = `SELECT ${PET_ROWS.selected} FROM pets`;

export function petPage(query: PetQuery, dialect: Dialect): Statement {
  const { ids, after = 0n, limit } = query;
  const filters = petFiltersIn(query);
  const isByIds = ids !== undefined;
  const from = isByIds ? jsonArray(idsAfter(query)) : after;
  return {
    sql: selectPage(SELECT_PETS, { filters: filters.map(({ column }) => column), isByIds }, dialect),
    values: [...filters.map(({ value }) => value), from, limit + 1],
  };
}

type Condition = Pick<Filter, "column" | "value">;

/**
 * The filters of the orders of a key. In PostgreSQL, only the indexes that begin with the key have the order of bytes,
 * so they are used.
 */
function filtersOfKey(keyId: number, query: OrderFilters, { bytewise }: Dialect): readonly Condition[] {
  const filters = orderFiltersIn(query).map(({ column, type, value }) => ({
    column: type === "text" ? bytewise(column) : column,
    value,
  }));
  return [{ column: "key_id", value: keyId }, ...filters];
}

const SELECT_ORDERS = `SELECT ${ORDER_ROWS.selected} FROM orders`;
const SELECT_ORDERS_OF_ANY_KEY = `SELECT ${OPERATOR_ORDER_ROWS.selected} FROM orders`;

export function orderPageOfKey(keyId: number, query: OrderPageQuery, dialect: Dialect): Statement {
  const { after = 0n, limit } = query;
  const filters = filtersOfKey(keyId, query, dialect);
  return {
    sql: selectPage(SELECT_ORDERS, { filters: filters.map(({ column }) => column), indexed: 2 }, dialect),
    values: [...filters.map(({ value }) => value), after, limit + 1],
  };
}

/** Selects the orders of all keys, newest first. A pet has few orders, so the index on pets comes first. */
export function orderPage(query: OrderQuery, dialect: Dialect): Statement {
  const { petId, keyId, before = INT64_MAX, limit } = query;
  const ofPet = petId === undefined ? [] : [{ column: "pet_id", value: petId }];
  const others = keyId === undefined ? orderFiltersIn(query) : filtersOfKey(keyId, query, dialect);
  const filters: readonly Condition[] = [...ofPet, ...others];
  const indexed = petId === undefined && keyId !== undefined ? 2 : 1;
  const options = { filters: filters.map(({ column }) => column), indexed, isDescending: true };
  return {
    sql: selectPage(SELECT_ORDERS_OF_ANY_KEY, options, dialect),
    values: [...filters.map(({ value }) => value), before, limit + 1],
  };
}
