import { expect, test } from "bun:test";
import type { Dialect, JsonMember } from "../../src/store/sql/dialect.ts";
import { formatTime } from "../../src/text/formatting.ts";

const MEMBERS = [
  member("id", "integer"),
  member("count", "integer", true),
  member("name", "text"),
  member("note", "text", true),
  member("kind", "choice", true),
  member("at", "time", true),
];
const TIMES = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "2026-02-28T23:59:59.001Z"].map(
  Date.parse,
);
const LAST_TIME = Date.parse("9999-12-31T23:59:59.999Z");

export function member(name: string, kind: JsonMember["kind"], isOptional = false): JsonMember {
  return { name, column: name, kind, isOptional };
}

/** `read` returns the columns of the row that a statement selects. */
export function jsonObjectCases(
  { jsonObject }: Dialect,
  read: (sql: string) => Promise<readonly unknown[]>,
): void {
  const jsonOf = (values: Readonly<Record<string, string | number | undefined>>) => {
    const columns = MEMBERS.map(({ column, kind }) => {
      const value = values[column];
      const literal = value === undefined ? "NULL" : `'${String(value).replaceAll("'", "''")}'`;
      return `CAST(${literal} AS ${kind === "integer" || kind === "time" ? "bigint" : "text"}) AS ${column}`;
    });
    return read(`SELECT ${jsonObject(MEMBERS)} AS json FROM (SELECT ${columns.join(", ")}) AS things`);
  };

  test("the database writes the JSON of an object with any of four optional members, also between others", async () => {
    for (let id = 0; id < 16; id++) {
      const values = {
        id,
        count: id & 1 ? 0 : undefined,
        name: "'Rex\"}",
        note: id & 2 ? '"\\\n{é},' : undefined,
        kind: id & 4 ? "b" : undefined,
        at: id & 8 ? LAST_TIME : undefined,
      };
      const at = values.at === undefined ? undefined : formatTime(values.at);
      expect(await jsonOf(values)).toEqual([JSON.stringify({ ...values, at })]);
    }
  });

  test.each(TIMES)("the database writes the time %d as the service does", async (at) => {
    const json = JSON.stringify({ id: 1, name: "Rex", at: formatTime(at) });
    expect(await jsonOf({ id: 1, name: "Rex", at })).toEqual([json]);
  });
}
