import { Database } from "bun:sqlite";
import { SQL } from "bun";
import { join } from "node:path";

const EVERY_MS = 1_000;

/** Stores questions to servers once a second, as whoever can write to the database may. `storage` names it by flags. */
export function storeQuestions(storage: readonly string[], count: number): AsyncDisposable {
  const valueOf = (flag: string) => storage[storage.indexOf(flag) + 1] ?? "";
  const isShared = storage.includes("--database-url");
  const write = isShared ? toPostgres(valueOf("--database-url"), count) : toSqlite(valueOf("--data"), count);
  let writing = write.store();
  const timer = setInterval(() => (writing = writing.then(write.store)), EVERY_MS);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await writing;
      await write.close();
    },
  };
}

const COLUMNS = "server_questions (id, operation, query, asked_at)";

function toSqlite(data: string, count: number) {
  const database = new Database(join(data, "production.db"));
  database.run("PRAGMA busy_timeout = 5000");
  let stored = 0;
  return {
    async store() {
      database.run(
        `INSERT INTO ${COLUMNS} WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
           SELECT ? || '-' || i, 'getSettings', '', unixepoch() * 1000 FROM n`,
        [count, stored++],
      );
    },
    close: async () => database.close(),
  };
}

function toPostgres(url: string, count: number) {
  const sql = new SQL(url, { max: 1 });
  let stored = 0;
  return {
    async store() {
      await sql.unsafe(
        `INSERT INTO production.${COLUMNS}
           SELECT $1 || '-' || i, 'getSettings', '', extract(epoch FROM clock_timestamp())::bigint * 1000
           FROM generate_series(1, $2::int) AS i`,
        [`${stored++}`, count],
      );
    },
    close: () => sql.close({ timeout: 0 }),
  };
}
