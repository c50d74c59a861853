import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { CREATE_VERSION_TABLE } from "../../src/store/sqlite/migrate.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sql/migration-steps.ts";
import { functionsIn, onlyCompares, schemaProblems } from "../../src/store/sqlite/schema-check.ts";

const connection = () => new Connection(new Database(":memory:"));
const functions = functionsIn(connection());
const compares = (sql: string) => onlyCompares(sql, functions);

test.each([
  "CREATE TABLE a (b TEXT NOT NULL DEFAULT '[]', PRIMARY KEY (b)) STRICT, WITHOUT ROWID",
  "CREATE TABLE a (b INTEGER REFERENCES c (d), CHECK ((b IS NULL) = (b IN (1, 2)) AND length(b) BETWEEN 1 AND 9))",
  "CREATE INDEX a ON b (c COLLATE NOCASE, d DESC, e >> 11) WHERE f IS NOT NULL OR (g = 'abs(1)')",
  'CREATE UNIQUE INDEX a ON "b" ("like", count) -- hex(b)\n WHERE [as] > 1',
])("%s only compares", (sql) => expect(compares(sql)).toBeTrue());

test.each([
  "CREATE TABLE a (b CHECK (hex(b)))",
  "CREATE TABLE a (b DEFAULT (HEX (1)))",
  "CREATE TABLE a (b CHECK (hex/**/ -- c\n (b)))",
  'CREATE TABLE a (b CHECK ("hex"(b)))',
  "CREATE TABLE a (b CHECK ([hex](b)))",
  "CREATE TABLE a (b CHECK (`hex`(b)))",
  "CREATE TABLE a (b DEFAULT '--', c CHECK (hex(b)))",
  "CREATE TABLE a (b DEFAULT '/*', c CHECK (hex(b)))",
  "CREATE TABLE a (b DEFAULT '''', c CHECK (hex(b)))",
  "CREATE TABLE a (b CHECK (b LIKE 'c'))",
  "CREATE TABLE a (b CHECK (like('c', b)))",
  "CREATE TABLE a (b CHECK (b GLOB 'c'))",
  "CREATE TABLE a (b CHECK (b || b))",
  "CREATE TABLE a (b CHECK (b -> 'c'))",
  "CREATE TABLE a (b AS (c))",
  "CREATE TABLE a (b GENERATED ALWAYS AS (c))",
  "CREATE INDEX a ON b (hex(c))",
  "CREATE TRIGGER a AFTER INSERT ON b BEGIN SELECT 1; END",
  "CREATE VIEW a AS SELECT 1",
  "CREATE VIRTUAL TABLE a USING b",
])("%s does more", (sql) => expect(compares(sql)).toBeFalse());

test("the tables of this release only compare, so that an earlier release restores them", () => {
  const database = connection();
  for (const { sql } of SQLITE_MIGRATIONS) database.exec(sql);
  const made = database.all<{ sql: string }>("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL");
  expect(made.map(({ sql }) => sql).filter((sql) => !compares(sql))).toEqual([]);
});

test("what ALTER TABLE, and another indentation, have written differently is the same", () => {
  const database = connection();
  database.exec(CREATE_VERSION_TABLE);
  const [first] = SQLITE_MIGRATIONS;
  const inSteps = (first?.sql ?? "")
    .replace(/key_id INTEGER,\s+-- NULL: the order.*\n\s+closed_at INTEGER/, "key_id INTEGER")
    .replace(
      "CREATE INDEX orders_by_status",
      "ALTER TABLE orders ADD COLUMN closed_at INTEGER; CREATE INDEX orders_by_status",
    )
    .replaceAll("\n  ", "\n");
  database.exec(inSteps);
  const sqlOfOrders = database.value("SELECT sql FROM sqlite_schema WHERE name = 'orders'");
  expect(sqlOfOrders).toEndWith(", closed_at INTEGER) STRICT");
  database.exec("INSERT INTO schema_migrations (version, name) VALUES (25, '')");
  expect(schemaProblems(database, SQLITE_MIGRATIONS)).toEqual([]);
});
