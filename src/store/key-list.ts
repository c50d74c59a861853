/*
 * The statements for a list of keys, on both databases. They read all keys, because most filters and orders have no
 * index: 10,000 keys take 1 to 13 ms in SQLite (`npm run bench:admin`).
 */

import { KEY_STATES, type KeyState } from "../domain/api-keys.ts";
import type { KeyFilter, KeyList, KeyListQuery, KeySort } from "../domain/key-lists.ts";
import { canBePartOfHint } from "../domain/secrets.ts";
import { KEY_FIELDS } from "../domain/key-fields.ts";
import { DEPRECATED_OPERATIONS } from "../domain/operation-ids.ts";
import { KEY_ROWS } from "./sql/rows.ts";
import type { Statement } from "./sql/steps.ts";
import { jsonRows, type SqlValue, SqlValues } from "./sql/values.ts";
import type { Dialect } from "./sql/dialect.ts";

const { id: _, ...others } = KEY_FIELDS;
export const KEY_COLUMNS = `api_keys.id, ${KEY_ROWS.select(Object.keys(others))}, pardoned_at AS "unbannedAt"`;

const ID = "api_keys.id";

/** What decides the place of a key in a list, before its identifier. */
export interface SortValue {
  /** Revoked keys come last. */
  readonly revokedAt: SqlValue | null;
  readonly value: SqlValue;
}

/**
 * Selects the keys of a page, and one more if another page follows. `last` is the `sortValue` of the key that the page
 * follows. A list of all keys needs two such pages, because revoked keys come last.
 */
export function keyPage(query: KeyListQuery, dialect: Dialect, last?: SortValue): Statement {
  const { sort = "id", isDescending = false, after, limit } = query;
  const values = new SqlValues(dialect);
  const tables = tablesFor(query, values);
  const conditions = conditionsOf(query, values);
  const columns = [...(sort === "id" ? [] : [sortColumn(sort, dialect)]), ID];
  if (after === undefined || last === undefined || sort !== "id" || isDescending)
    conditions.unshift(ALL_KEYS);
  if (after !== undefined && last !== undefined) {
    const parameters = [...(sort === "id" ? [] : [last.value]), after].map((value) => values.add(value));
    conditions.push(`(${columns.join(", ")}) ${isDescending ? "<" : ">"} (${parameters.join(", ")})`);
  }
  const order = columns.map((column) => (isDescending ? `${column} DESC` : column)).join(", ");
  const sql = `SELECT ${KEY_COLUMNS} FROM ${tables} WHERE ${conditions.join(" AND ")}
    ORDER BY ${order} LIMIT +${values.add(limit + 1)}`;
  return { sql, values: values.all, isVaried: true };
}

/**
 * A condition that is true for all keys. With it SQLite reads the table itself, and not an index that refers to it; a
 * page that follows an identifier is read from there on.
 */
const ALL_KEYS = `${ID} > 0`;

/** Counts the keys on all pages, by state. */
export function keyCounts(query: KeyListQuery, dialect: Dialect): Statement {
  const values = new SqlValues(dialect);
  const { state: _state, isRevoked: _isRevoked, ...filter } = query.filter ?? {};
  const all = { ...query, filter, sort: "id" } as const;
  const tables = tablesFor(all, values);
  const state = stateColumn(query, values);
  const sql = `SELECT state, count(*) AS total FROM (SELECT ${state} AS state FROM ${tables}
    WHERE ${[ALL_KEYS, ...conditionsOf(all, values)].join(" AND ")}) AS states GROUP BY state`;
  return { sql, values: values.all, isVaried: true };
}

export interface StateCount {
  readonly state: KeyState;
  readonly total: bigint;
}

/** What a list says about all pages. */
export function countsOf(
  rows: readonly StateCount[],
  { state, isRevoked }: KeyFilter = {},
): Pick<KeyList, "total" | "counts"> {
  const counts = { active: 0, banned: 0, disabled: 0, expired: 0, revoked: 0 };
  for (const row of rows) counts[row.state] = Number(row.total);
  const isListed = (each: KeyState) =>
    (state === undefined || each === state) &&
    (isRevoked === undefined || isRevoked === (each === "revoked"));
  const listed = KEY_STATES.filter(isListed);
  return { counts, total: listed.reduce((sum, each) => sum + counts[each], 0) };
}

/** Selects the value that a key is sorted by. A page continues after the value of the last key on the page before. */
export function sortValue(query: KeyListQuery, after: number, dialect: Dialect): Statement {
  const { sort = "id" } = query;
  const values = new SqlValues(dialect);
  const from = tablesFor({ ...query, filter: {} }, values);
  const sql = `SELECT revoked_at AS "revokedAt", ${sortColumn(sort, dialect)} AS value FROM ${from}
    WHERE ${ID} = ${values.add(after)}`;
  return { sql, values: values.all, isVaried: true };
}

function tablesFor({ filter, sort, usedToday = [] }: KeyListQuery, values: SqlValues): string {
  let tables = "api_keys";
  if (sort === "lastUsedAt" || filter?.unusedSince !== undefined) {
    tables += ` LEFT JOIN key_last_used ON key_last_used.key_id = ${ID}`;
  }
  if (sort === "usedToday") {
    const counts = values.dialect.tableOfJson(
      { key_id: "integer", used: "integer" },
      values.add(jsonRows(usedToday)),
    );
    // The limit and the cast let SQLite make a table with an index. Otherwise it reads all of the JSON for each key.
    const windows = `SELECT CAST(key_id AS BIGINT) AS key_id, used FROM ${counts} LIMIT ${usedToday.length}`;
    tables += ` LEFT JOIN (${windows}) AS windows ON windows.key_id = ${ID}`;
  }
  return tables;
}

function sortColumn(sort: KeySort, { withoutCase, bytewise }: Dialect): string {
  switch (sort) {
    case "id":
      return ID;
    case "name":
      return withoutCase("name");
    case "plan":
      return bytewise("plan");
    case "createdAt":
      return "created_at";
    case "lastUsedAt":
      return "coalesce(last_used_at, 0)";
    case "usedToday":
      return "coalesce(used, 0)";
  }
}

function conditionsOf(query: KeyListQuery, values: SqlValues): string[] {
  const { filter = {}, now } = query;
  const { plan, state, access, owner, label, unusedSince, deprecatedSince, expiresBefore, isRevoked, ids } =
    filter;
  const search = filter.search?.trim();
  const conditions: string[] = [];
  if (plan !== undefined) conditions.push(`plan = ${values.add(plan)}`);
  if (access !== undefined) conditions.push(`access = ${values.add(access)}`);
  if (owner !== undefined) conditions.push(values.isText("owner", owner));
  if (state !== undefined) conditions.push(`${stateColumn(query, values)} = ${values.add(state)}`);
  if (ids !== undefined) conditions.push(values.isOneOf(ID, ids));
  if (unusedSince !== undefined) {
    conditions.push(`coalesce(last_used_at, created_at) < ${values.add(unusedSince)}`);
  }
  if (isRevoked !== undefined) conditions.push(`revoked_at IS ${isRevoked ? "NOT NULL" : "NULL"}`);
  if (expiresBefore !== undefined) {
    const within = `expires_at > ${values.add(now)} AND expires_at < ${values.add(expiresBefore)}`;
    conditions.push("revoked_at IS NULL", within);
  }
  if (deprecatedSince !== undefined) conditions.push(usesDeprecated(deprecatedSince, values));
  if (label !== undefined) conditions.push(hasLabel(label, values, values.isText("value", label)));
  if (search) conditions.push(contains(search, now, values));
  return conditions;
}

/** The state of a key, as `keyState` in domain/api-keys.ts has it: test/conformance/key-list.ts compares both. */
function stateColumn({ now, bannedKeys = [] }: KeyListQuery, values: SqlValues): string {
  return `CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= ${values.add(now)} THEN 'expired'
    WHEN disabled_at IS NOT NULL THEN 'disabled' WHEN ${values.isOneOf(ID, bannedKeys)} THEN 'banned'
    ELSE 'active' END`;
}

function usesDeprecated(since: number, values: SqlValues): string {
  const operations = DEPRECATED_OPERATIONS.map((operation) => values.add(operation)).join(", ");
  return `${ID} IN (SELECT deprecated_use.key_id FROM deprecated_use WHERE operation IN (${operations})
    AND deprecated_use.last_used_at >= ${values.add(since)})`;
}

/** Parses only the few arrays whose JSON contains the text: parsing all of them would take three times as long. */
function hasLabel(text: string, values: SqlValues, condition: string): string {
  const json = values.hasText("labels", JSON.stringify(text).slice(1, -1));
  return `(${json} AND EXISTS (SELECT 1 FROM ${values.dialect.labels} WHERE ${condition}))`;
}

function contains(text: string, now: number, values: SqlValues): string {
  const found = [
    values.hasText("name", text),
    values.hasText("owner", text),
    hasLabel(text, values, values.hasText("value", text)),
  ];
  if (/^[1-9]\d{0,14}$/.test(text)) found.push(`${ID} = ${values.add(Number(text))}`);
  if (canBePartOfHint(text)) {
    found.push(`${ID} IN (SELECT key_secrets.key_id FROM key_secrets
      WHERE ${values.hasText("hint", text)} AND coalesce(valid_until > ${values.add(now)}, TRUE))`);
  }
  return `(${found.join(" OR ")})`;
}
