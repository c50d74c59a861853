import type { Dialect, JsonMember } from "../sql/dialect.ts";

/**
 * Uses `json_object` where it can: a page takes 12 µs instead of the 14 µs of `concat`. It cannot omit a member, so
 * `concat` writes the rows that have some of the optional members. The first member is never optional.
 */
function jsonObject(members: readonly JsonMember[]): string {
  const required = members.filter(({ isOptional }) => !isOptional);
  const optional = members.filter(({ isOptional }) => isOptional);
  if (optional.length === 0) return requiredJson(members);
  const everyOptional = (condition: string) =>
    optional.map(({ column }) => `${column} ${condition}`).join(" AND ");
  const parts = members.map((member, i) => {
    const { name, column, kind } = member;
    // The JSON of a text is never null without quotes.
    const value = kind === "text" ? `nullif(json_quote(${column}), 'null')` : valueOf(member);
    const quote = kind === "choice" || kind === "time" ? '"' : "";
    return `'${i === 0 ? "{" : ","}"${name}":${quote}' || ${value}${quote && ` || '${quote}'`}`;
  });
  return `CASE WHEN ${everyOptional("IS NOT NULL")} THEN ${requiredJson(members)}
    WHEN ${everyOptional("IS NULL")} THEN ${requiredJson(required)}
    ELSE concat(${parts.join(", ")}, '}') END`;
}

function requiredJson(members: readonly JsonMember[]): string {
  return `json_object(${members.map((member) => `'${member.name}', ${valueOf(member)}`).join(", ")})`;
}

function valueOf({ column, kind }: JsonMember): string {
  return kind === "time" ? `strftime('%FT%H:%M:%fZ', ${column} / 1000.0, 'unixepoch')` : column;
}

export function insertInto(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
}

export const SQLITE_DIALECT: Dialect = {
  comparesRows: false,
  petIndexes: [
    { name: "pets_by_status", columns: { status: "status" } },
    {
      name: "pets_by_category_and_status",
      columns: { category_id: "category_id", status: "status" },
      partial: {
        isIndexed: "is_recent IS NULL",
        isOther: "is_recent IS NOT NULL",
        othersAfter: "(SELECT recent_after FROM pet_revision)",
        inOrder: " NOT INDEXED",
      },
    },
  ],
  timeline: "'0'",
  now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
  hasOwnClock: false,
  writeThenSelect: (write, select) => [write, select],
  isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
  tableOfJson(columns, parameter = "?") {
    const values = Object.keys(columns).map((column, i) => `value ->> ${i} AS ${column}`);
    return `(SELECT key AS place, ${values.join(", ")} FROM jsonb_each(${parameter})) AS json_rows`;
  },
  withoutCase: (column) => `${column} COLLATE NOCASE`,
  bytewise: (column) => column,
  like: (column, parameter) => `${column} LIKE ${parameter} ESCAPE '\\'`,
  matches: (column, parameter) => `${column} GLOB ${parameter}`,
  pattern(characters, isPart) {
    const classes = characters.map(globOf).join("");
    return isPart ? `*${classes}*` : classes;
  },
  labels: "json_each(labels)",
  insert: (table, columns) => `${insertInto(table, columns)} RETURNING id`,
  jsonObject,
  // A transaction already holds the lock of the whole database.
  lockIds: () => "",
  lockTable: () => "",
  lockRows: () => "",
  indexedBy: (index) => ` INDEXED BY ${index}`,
  explicitIds: "",
  deleteFirst: ({ table, where, order }) => `DELETE FROM ${table} WHERE (${order}) IN
    (SELECT ${order} FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT +?) RETURNING 1`,
  addedOperations: `json_patch(stored.operations, (SELECT json_group_object(key, json_array(
    (value ->> 0) + coalesce(stored.operations ->> ('$.' || key || '[0]'), 0),
    (value ->> 1) + coalesce(stored.operations ->> ('$.' || key || '[1]'), 0)
  )) FROM jsonb_each(excluded.operations)))`,
};

function globOf(cases: readonly string[]): string {
  const text = cases.join("");
  return cases.length > 1 || /[*?[]/.test(text) ? `[${text}]` : text;
}
