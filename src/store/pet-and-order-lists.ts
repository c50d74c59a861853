import { INT64_MAX } from "../api/json.ts";
import { columnOf, type ResourceField } from "../domain/fields.ts";
import type { OrderPageQuery, OrderQuery, PetQuery } from "../domain/ports/pets-and-orders.ts";
import {
  ORDER_FILTERS,
  type OrderFilters,
  PET_FIELDS,
  PET_FILTERS,
  type PetFilters,
} from "../domain/pets-and-orders.ts";
import { MAX_ROWS_SEARCHED, PET_SEARCH } from "../domain/size-limits.ts";
import { OPERATOR_ORDER_ROWS, ORDER_ROWS, PET_ROWS } from "./sql/rows.ts";
import type { BoundedPage, Statement } from "./sql/steps.ts";
import { jsonArray, type SqlValue, SqlValues } from "./sql/values.ts";
import type { ColumnType, Dialect, PetIndex } from "./sql/dialect.ts";

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
function selectPage(select: string, options: PageOptions, dialect: Dialect): string {
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
  const order = last === undefined ? ["id"] : [last, "id"];
  return `${select} WHERE ${conditions.join(" AND ")}
    ORDER BY ${order.map((column) => column + direction).join(", ")} LIMIT +${limit}`;
}

/**
 * Selects a page of pets. The index has the columns of all filters, so that a page reads the pets that it shows and no
 * others. Where the index has choices after those columns, the page merges the pages of all choices: SQLite reads each
 * as far as the merged page needs it. Of 3,000,000 pets, a page of 20 takes 25 µs with four choices, and 19 with one.
 * Pets that are not in the index are read in their order; there are few.
 */
export function selectPets(select: string, options: PageOptions, dialect: Dialect): string {
  const { filters, isByIds = false, parameters = [] } = options;
  if (isByIds || filters.length === 0) return selectPage(select, options, dialect);
  const { name, columns, partial } = petIndex(filters, dialect);
  const from = select + dialect.indexedBy(name);
  const given = Object.values(columns).slice(0, filters.length);
  const merged = Object.keys(columns).slice(filters.length);
  if (merged.length === 0 && partial === undefined)
    return selectPage(from, { ...options, filters: given, indexed: given.length }, dialect);
  const parameter = (i: number) => parameters[i] ?? `?${i + 1}`;
  const id = parameter(given.length);
  const ofFilters = given.map((column, i) => `${column} = ${parameter(i)}`).join(" AND ");
  let conditions = [partial === undefined ? ofFilters : `${ofFilters} AND ${partial.isIndexed}`];
  for (const column of merged)
    conditions = conditions.flatMap((each) => choicesOf(column).map((choice) => `${each} AND ${choice}`));
  const pages = conditions.map((each) => `${from} WHERE ${each} AND id > ${id}`);
  if (partial !== undefined) {
    const { isOther, othersAfter, inOrder } = partial;
    pages.push(`${select}${inOrder} WHERE id > max(${id}, ${othersAfter}) AND ${isOther} AND ${ofFilters}`);
  }
  return `${pages.join(" UNION ALL ")} ORDER BY id LIMIT +${parameter(given.length + 1)}`;
}

/** The shortest index that begins with the columns of the filters. */
function petIndex(filters: readonly string[], { petIndexes }: Dialect): PetIndex {
  const fitting = petIndexes.filter(({ columns }) => `${Object.keys(columns)},`.startsWith(`${filters},`));
  const [shortest] = fitting.toSorted((a, b) => lengthOf(a) - lengthOf(b));
  if (shortest === undefined) throw new Error(`no index of pets begins with ${filters.join(", ")}`);
  return shortest;
}

const lengthOf = ({ columns }: PetIndex) => Object.keys(columns).length;

/** A condition for each choice of a column of pets, and for none. */
function choicesOf(column: string): readonly string[] {
  const field = Object.entries<ResourceField>(PET_FIELDS).find(([name]) => columnOf(name) === column)?.[1];
  if (field?.schema.kind !== "choice") throw new Error(`${column} has no choices to merge pages of`);
  const choices = field.schema.choices.map((choice) => `${column} = '${choice}'`);
  return field.ifMissing === undefined ? choices : [`${column} IS NULL`, ...choices];
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
    sql: selectPets(SELECT_PETS, { filters: filters.map(({ column }) => column), isByIds }, dialect),
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

/**
 * Selects the orders of all keys, newest first. The orders of a pet are read from the index on pets, up to a bound, and
 * the other filters select among them: further indexes would cost every order more than the few lists of a pet.
 */
export function orderPage(query: OrderQuery, dialect: Dialect): BoundedPage {
  const { petId, keyId, before = INT64_MAX, limit } = query;
  if (petId !== undefined) return orderPageOfPet(petId, query, dialect);
  const filters = keyId === undefined ? orderFiltersIn(query) : filtersOfKey(keyId, query, dialect);
  const indexed = keyId === undefined ? 1 : 2;
  const options = { filters: filters.map(({ column }) => column), indexed, isDescending: true };
  const sql = selectPage(SELECT_ORDERS_OF_ANY_KEY, options, dialect);
  return {
    page: { sql, values: [...filters.map(({ value }) => value), before, limit + 1] },
    lastRead: undefined,
  };
}

function orderPageOfPet(petId: bigint, query: OrderQuery, dialect: Dialect): BoundedPage {
  const { keyId, before = INT64_MAX, limit } = query;
  const ofPet = { filters: ["pet_id"], isDescending: true };
  const others = keyId === undefined ? orderFiltersIn(query) : filtersOfKey(keyId, query, dialect);
  if (others.length === 0) {
    const sql = selectPage(SELECT_ORDERS_OF_ANY_KEY, ofPet, dialect);
    return { page: { sql, values: [petId, before, limit + 1] }, lastRead: undefined };
  }
  const rows = (columns: string) => selectPage(`SELECT ${columns} FROM orders`, ofPet, dialect);
  const conditions = others.map(({ column }, i) => `${column} = ?${i + 4}`);
  const sql = `SELECT ${OPERATOR_ORDER_ROWS.selected} FROM (${rows("*")}) AS orders
    WHERE ${conditions.join(" AND ")} ORDER BY id DESC LIMIT +?${others.length + 4}`;
  const values = [petId, before, MAX_ROWS_SEARCHED];
  return {
    page: { sql, values: [...values, ...others.map(({ value }) => value), limit + 1] },
    lastRead: { sql: `${rows("id")} OFFSET ${MAX_ROWS_SEARCHED - 1}`, values: [petId, before, 1] },
  };
}

/** Selects the pets whose names contain a text, among those that follow. */
export function petSearch(text: string, query: PetQuery, dialect: Dialect): BoundedPage {
  const { after = 0n, limit } = query;
  const filters = petFiltersIn(query);
  const values = new SqlValues(dialect);
  for (const { value } of filters) values.add(value);
  values.add(after);
  const given = [...values.all];
  values.add(PET_SEARCH.rowsPerStep);
  const rows = (columns: string) =>
    selectPets(`SELECT ${columns} FROM pets`, { filters: filters.map(({ column }) => column) }, dialect);
  const sql = `SELECT ${PET_ROWS.selected} FROM (${rows("*")}) AS pets
    WHERE ${values.hasText("name", text)} ORDER BY id LIMIT +${values.add(limit + 1)}`;
  return {
    page: { sql, values: values.all, isVaried: true },
    lastRead: { sql: `${rows("id")} OFFSET ${PET_SEARCH.rowsPerStep - 1}`, values: [...given, 1] },
  };
}
