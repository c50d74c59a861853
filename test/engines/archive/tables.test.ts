import { SQL } from "bun";
import { expect, test } from "bun:test";
import { TABLES } from "../../../src/store/sql/tables.ts";
import { postgresIn } from "../../../trials/harness/contents.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { createDatabase } from "../store/postgres-database.ts";
import { temporaryDatabase } from "../../store/sqlite-database.ts";

/** What only one of the databases has, and what is copied in another way. */
const NOT_COPIED = new Set([
  "schema_migrations",
  "key_revision", // a counter
  "operator_sessions", // operators sign in again
  "sign_in_codes",
  "quotas", // SQLite has them in a file of their own
  "servers", // they are those of this database
  "server_questions",
  "pet_revision", // which pets are recent; release 1.3.0 counts changes in it
]);
const NOT_COPIED_COLUMNS = new Set([
  "pets.is_recent", // how SQLite finds the pet
  "attempts.id", // the order of the insertions
  "webhook.server", // another one delivers
  "webhook.beat",
  "webhook.deliveries",
]);

const copied = TABLES.flatMap(({ name, columns }) =>
  Object.keys(columns).map((column) => `${name}.${column}`),
);

const relevant = (names: readonly string[]) =>
  names
    .filter((name) => !NOT_COPIED.has(name.split(".")[0] ?? "") && !NOT_COPIED_COLUMNS.has(name))
    .toSorted();

test("every column of SQLite is copied", () => {
  using database = temporaryDatabase();
  const columns = database.connection.all<{ name: string }>(`
    SELECT t.name || '.' || c.name AS name FROM sqlite_schema AS t, pragma_table_xinfo(t.name) AS c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%'`);
  expect(relevant(columns.map(({ name }) => name))).toEqual(copied.toSorted());
});

test("every column of PostgreSQL is copied", async () => {
  await using database = await createDatabase();
  await database.open();
  const rows: { name: string }[] = await database.sql`
    SELECT table_name || '.' || column_name AS name FROM information_schema.columns
    WHERE table_schema = 'public'`;
  expect(relevant(rows.map(({ name }) => name))).toEqual(copied.toSorted());
});

test("the commit that publishes a restore in PostgreSQL waits for the disk", async () => {
  const url = await postgresUrl();
  await using sql = new SQL(url, { max: 1 });
  const note = `CREATE TABLE public.renamed (waits text);
    CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS
      $$BEGIN INSERT INTO public.renamed VALUES (current_setting('synchronous_commit')); END$$;
    CREATE EVENT TRIGGER note ON ddl_command_end WHEN TAG IN ('ALTER SCHEMA') EXECUTE FUNCTION public.note()`;
  await sql.unsafe(note).simple();
  await using tables = await postgresIn(url).create();
  await tables.complete({});
  await tables.publish({});
  expect([...(await sql`SELECT waits FROM public.renamed`)]).toEqual([{ waits: "on" }]);
});
