import { canBePartOfHint, type KeyListQuery, type KeySort, type KeyState } from "../domain/api-keys.ts";
import { DEPRECATED_OPERATIONS, startOf } from "../domain/usage-history.ts";
import { type Dialect, type SqlValue, SqlValues, type Statement } from "./statements.ts";

export const KEY_COLUMNS = `api_keys.id, name, owner, notes, labels, plan, access,
  per_minute AS "perMinute", per_day AS "perDay", created_at AS "createdAt",
  expires_at AS "expiresAt", revoked_at AS "revokedAt", pardoned_at AS "unbannedAt",
  disabled_at AS "disabledAt"`;

/*
 * The SQL of a list of keys for both databases. It reads all keys, because most filters and orders have no index:
 * 10,000 keys take 1 to 8 ms in SQLite (`npm run bench:admin`), which reads them in parts.
 */

const ID = "api_keys.id";

/** Identifiers from the first to the last. */
export interface KeyRange {
  readonly first: number;
  readonly last: number;
}

/** `lastValue` is the `sortValue` of the key that the page follows. */
interface KeyIdsOptions extends KeyRange {
  readonly lastValue?: SqlValue | undefined;
}

/** Which keys of a range the page can have: the first in its order, with one more than the limit where there is one. */
export function keyIds(query: KeyListQuery, dialect: Dialect, options: KeyIdsOptions): Statement {
  const { sort = "id", isDescending = false, after } = query;
  const { lastValue } = options;
  const values = new SqlValues(dialect);
  const tables = tablesFor(query, values);
  const conditions = conditionsOf(query, options, values);
  if (after !== undefined && lastValue !== undefined) {
    const last = sort === "id" ? [after] : [lastValue, after];
    const parameters = last.map((value) => values.add(value)).join(", ");
    const columns = sortColumns(query, dialect).join(", ");
    conditions.push(`(${columns}) ${isDescending ? "<" : ">"} (${parameters})`);
  }
  // The identifiers are sorted alone: to sort whole rows takes twice as long.
  return pageStatement(`SELECT ${ID} FROM ${tables} WHERE ${conditions.join(" AND ")}`, query, values);
}

/** The same of all these keys, whole. */
export function keysInOrder(query: KeyListQuery, dialect: Dialect, ids: readonly number[]): Statement {
  const values = new SqlValues(dialect);
  const tables = tablesFor(query, values);
  return pageStatement(
    `SELECT ${KEY_COLUMNS} FROM ${tables} WHERE ${values.isOneOf(ID, ids)}`,
    query,
    values,
  );
}

function pageStatement(select: string, query: KeyListQuery, values: SqlValues): Statement {
  const { isDescending = false, limit } = query;
  const columns = sortColumns(query, values.dialect);
  const order = columns.map((column) => (isDescending ? `${column} DESC` : column)).join(", ");
  const sql = `${select} ORDER BY ${order} LIMIT +${values.add(limit + 1)}`;
  return { sql, values: values.all, isVaried: true };
}

function sortColumns({ sort = "id" }: KeyListQuery, dialect: Dialect): readonly string[] {
  return sort === "id" ? [ID] : [sortColumn(sort, dialect), ID];
}

/** How many keys of a range all pages have. */
export function keyCount(query: KeyListQuery, dialect: Dialect, range: KeyRange): Statement {
  const values = new SqlValues(dialect);
  const tables = tablesFor({ ...query, sort: "id" }, values);
  const conditions = conditionsOf(query, range, values);
  const sql = `SELECT count(*) AS total FROM ${tables} WHERE ${conditions.join(" AND ")}`;
  return { sql, values: values.all, isVaried: true };
}

/** The value that a key is sorted by. A page continues after that of the last key of the page before. */
export function sortValue(query: KeyListQuery, dialect: Dialect): Statement | undefined {
  const { sort = "id", now, limit, after } = query;
  if (after === undefined) return undefined;
  const values = new SqlValues(dialect);
  const from = tablesFor({ sort, now, limit }, values);
  const sql = `SELECT ${sortColumn(sort, dialect)} AS value FROM ${from} WHERE ${ID} = ${values.add(after)}`;
  return { sql, values: values.all, isVaried: true };
}

function tablesFor({ filter, sort, now }: KeyListQuery, values: SqlValues): string {
  let tables = "api_keys";
  if (sort === "lastUsedAt" || filter?.unusedSince !== undefined) {
    tables += ` LEFT JOIN key_last_used ON key_last_used.key_id = ${ID}`;
  }
  if (sort === "usedToday") {
    const start = values.add(startOf("day", now));
    tables += ` LEFT JOIN usage_days ON usage_days.start = ${start} AND usage_days.key_id = ${ID}`;
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
      return "coalesce(admitted + limited + banned, 0)";
  }
}

function conditionsOf(query: KeyListQuery, range: KeyRange, values: SqlValues): string[] {
  const { filter = {}, now, bannedKeys = [] } = query;
  const { plan, state, access, owner, label, unusedSince, deprecatedSince } = filter;
  const search = filter.search?.trim();
  const conditions = [isWithin(ID, range, values)];
  if (plan !== undefined) conditions.push(`plan = ${values.add(plan)}`);
  if (access !== undefined) conditions.push(`access = ${values.add(access)}`);
  if (owner !== undefined) conditions.push(values.isText("owner", owner));
  if (state !== undefined) conditions.push(...stateConditions({ state, now, bannedKeys }, values));
  if (unusedSince !== undefined) {
    conditions.push(`coalesce(last_used_at, created_at) < ${values.add(unusedSince)}`);
  }
  if (deprecatedSince !== undefined) conditions.push(usesDeprecated(deprecatedSince, range, values));
  if (label !== undefined) conditions.push(hasLabel(label, values, values.isText("value", label)));
  if (search) conditions.push(contains(search, { ...range, now }, values));
  return conditions;
}

function isWithin(column: string, { first, last }: KeyRange, values: SqlValues): string {
  return `${column} BETWEEN ${values.add(first)} AND ${values.add(last)}`;
}

/** As `stateOf` in domain/api-keys.ts. */
function stateConditions(
  { state, now, bannedKeys }: { state: KeyState; now: number; bannedKeys: readonly number[] },
  values: SqlValues,
): string[] {
  if (state === "revoked") return ["revoked_at IS NOT NULL"];
  if (state === "expired") return ["revoked_at IS NULL", `expires_at <= ${values.add(now)}`];
  const isCurrent = ["revoked_at IS NULL", `coalesce(expires_at > ${values.add(now)}, TRUE)`];
  if (state === "disabled") return [...isCurrent, "disabled_at IS NOT NULL"];
  const isBanned = values.isOneOf(ID, bannedKeys);
  return [...isCurrent, "disabled_at IS NULL", state === "banned" ? isBanned : `NOT (${isBanned})`];
}

function usesDeprecated(since: number, range: KeyRange, values: SqlValues): string {
  const operations = DEPRECATED_OPERATIONS.map((operation) => values.add(operation)).join(", ");
  return `${ID} IN (SELECT deprecated_use.key_id FROM deprecated_use WHERE operation IN (${operations})
    AND ${isWithin("deprecated_use.key_id", range, values)}
    AND deprecated_use.last_used_at >= ${values.add(since)})`;
}

/** Looks into the few arrays whose JSON has the text: parsing all of them would take three times as long. */
function hasLabel(text: string, values: SqlValues, condition: string): string {
  const json = values.hasText("labels", JSON.stringify(text).slice(1, -1));
  return `(${json} AND EXISTS (SELECT 1 FROM ${values.dialect.labels} WHERE ${condition}))`;
}

function contains(text: string, range: KeyRange & { readonly now: number }, values: SqlValues): string {
  const found = [
    values.hasText("name", text),
    values.hasText("owner", text),
    hasLabel(text, values, values.hasText("value", text)),
  ];
  if (/^[1-9]\d{0,14}$/.test(text)) found.push(`${ID} = ${values.add(Number(text))}`);
  if (canBePartOfHint(text)) {
    found.push(`${ID} IN (SELECT key_secrets.key_id FROM key_secrets
      WHERE ${isWithin("key_secrets.key_id", range, values)}
      AND ${values.hasText("hint", text)} AND coalesce(valid_until > ${values.add(range.now)}, TRUE))`);
  }
  return `(${found.join(" OR ")})`;
}
