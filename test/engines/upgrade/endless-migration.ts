/* Takes the steps of this release on the SQLite database in a file, in one transaction, which never ends. */

import { openDatabase } from "../../../src/store/sqlite/database.ts";
import { SQLITE_MIGRATIONS } from "../../../src/store/sql/migration-steps.ts";

const endless = {
  version: 900,
  name: "endless",
  worksWith: "1.3.0",
  sql: "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
};
openDatabase(Bun.argv[2] ?? "", {
  migrations: [...SQLITE_MIGRATIONS, endless],
  use: { actor: { kind: "command line" }, at: Date.now() },
  synchronous: "FULL",
  cacheKiB: 1024,
  busyTimeoutMs: 10_000,
});
