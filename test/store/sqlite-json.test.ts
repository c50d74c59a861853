import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { SQLITE_DIALECT } from "../../src/store/sqlite/statements.ts";
import type { JsonMember } from "../../src/store/sql/statements.ts";

const member = (name: string, kind: JsonMember["kind"], isOptional: boolean): JsonMember => {
  return { name, column: name, kind, isOptional };
};

test("SQLite writes the JSON of an object with any of three optional members, also between others", () => {
  const members = [
    member("id", "integer", false),
    member("count", "integer", true),
    member("name", "text", false),
    member("note", "text", true),
    member("kind", "choice", true),
  ];
  using database = new Database(":memory:");
  database.run("CREATE TABLE things (id INTEGER, count INTEGER, name TEXT, note TEXT, kind TEXT)");
  const insert = database.prepare("INSERT INTO things VALUES (?, ?, ?, ?, ?)");
  const select = database.prepare(`SELECT ${SQLITE_DIALECT.jsonObject(members)} FROM things WHERE id = ?`);
  for (let id = 0; id < 8; id++) {
    const count = id & 1 ? 0 : undefined;
    const note = id & 2 ? '"\\\n{é},' : undefined;
    const kind = id & 4 ? "b" : undefined;
    insert.run(id, count ?? null, "'Rex\"}", note ?? null, kind ?? null);
    expect(select.values(id)).toEqual([[JSON.stringify({ id, count, name: "'Rex\"}", note, kind })]]);
  }
});

test("the statement of SQLite grows linearly with the optional members", () => {
  const lengthWith = (count: number) => {
    const members = Array.from({ length: count }, (_, i) => member(`field${i}`, "integer", true));
    return SQLITE_DIALECT.jsonObject(members).length;
  };
  expect(lengthWith(10)).toBeLessThan(lengthWith(2) * 5.1);
});
