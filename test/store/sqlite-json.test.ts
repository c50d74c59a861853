import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { SQLITE_DIALECT } from "../../src/store/sqlite/dialect.ts";
import { jsonObjectCases, member } from "../conformance/json-object.ts";

const database = new Database(":memory:");
afterAll(() => database.close());
jsonObjectCases(SQLITE_DIALECT, async (sql) => database.prepare(sql).values()[0] ?? []);

test("the statement of SQLite grows linearly with the optional members", () => {
  const lengthWith = (count: number) => {
    const members = Array.from({ length: count }, (_, i) => member(`field${i}`, "integer", true));
    return SQLITE_DIALECT.jsonObject(members).length;
  };
  expect(lengthWith(10)).toBeLessThan(lengthWith(2) * 5.1);
});
