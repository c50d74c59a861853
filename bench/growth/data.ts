import { Database } from "bun:sqlite";
import { SQL } from "bun";
import { closeSync, fsyncSync, mkdtempSync, openSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { UsageError } from "../../trials/harness/command-line.ts";
import { createKey } from "../../trials/harness/petstore.ts";
import { startPostgres } from "../../trials/harness/postgres.ts";
import { generateSecret, hashSecret } from "../../src/domain/secrets.ts";
import { newQuota, type Quota, type Subject } from "../../src/domain/rate-limit.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import { bytesOf, type DatabaseName, type GrowthRows, rowsOf, type Scale } from "./rows.ts";
import {
  fillKeyStatements,
  fillStatements,
  fillUnlimitedKeyStatements,
  fillUsageStatements,
  lastRevision,
  type Numbers,
  POSTGRES_NUMBERS,
  SQLITE_NUMBERS,
} from "../skewed-rows.ts";

/** Backups, exports and logs of the databases take as much again, and more. */
const DISK_FACTOR = 4;

/** Throws if the data of all scales would not leave room on the disk. */
export function requireDisk(scales: readonly Scale[], database: DatabaseName): void {
  const needed = DISK_FACTOR * Math.max(...scales.map((scale) => bytesOf(scale, database)));
  const { bavail, bsize } = statfsSync(tmpdir());
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  if (needed > bavail * bsize)
    throw new UsageError(
      `the data need ${gigabytes(needed)} in ${tmpdir()}, which has ${gigabytes(bavail * bsize)}`,
    );
}

export type GrowthData = Awaited<ReturnType<typeof buildData>>;

/**
 * Makes a database with the rows of a scale and keys without limits. The first has most of the orders; some send
 * requests in turn.
 */
export async function buildData(scale: Scale, database: DatabaseName, announce: (what: string) => void) {
  const rows = rowsOf(scale);
  const directory = temporaryDirectory("growth");
  const postgres =
    database === "postgres"
      ? await startPostgres({ settings: { shared_preload_libraries: "pg_stat_statements" } })
      : undefined;
  const storage = ["--data", directory, ...(postgres ? ["--database-url", postgres.url] : [])];
  const keys = [await createKey(storage), await createKey(storage)].map(({ key }) => key);
  const inTurn = Array.from({ length: rows.keysInTurn }, () => generateSecret("production"));
  if (postgres) {
    await using sql = new SQL(postgres.url, { max: 1 });
    await sql`CREATE EXTENSION pg_stat_statements`;
    const [table] = await sql`SELECT schemaname FROM pg_tables WHERE tablename = 'api_keys'`;
    await sql`SELECT set_config('search_path', ${table?.schemaname}, false)`;
    for (const statement of statementsOf(rows, inTurn, POSTGRES_NUMBERS)) {
      announce(tableIn(statement));
      await sql.unsafe(statement);
    }
    announce("vacuum");
    await sql`VACUUM ANALYZE`;
    await sql`CHECKPOINT`;
  } else {
    const path = join(directory, "production.db");
    using file = new Database(path);
    // Nothing else has opened the file, and an aborted run does not use it.
    for (const pragma of ["foreign_keys = OFF", "journal_mode = OFF", "synchronous = OFF"])
      file.run(`PRAGMA ${pragma}`);
    file.run("PRAGMA cache_size = -262144");
    for (const statement of statementsOf(rows, inTurn, SQLITE_NUMBERS)) {
      announce(tableIn(statement));
      file.run(statement);
      // Signals are handled between the tables.
      await Bun.sleep(0);
    }
    // The pets are in the index of categories, as after a migration.
    file.run("UPDATE pet_revision SET recent_after = (SELECT max(id) FROM pets)");
    file.run("PRAGMA journal_mode = WAL");
    // Otherwise the system would write the data to the disk while waits are measured.
    announce("the disk");
    syncFile(path);
    fillQuotas(join(directory, "production-limits.db"), rows.keys);
  }
  return {
    scale,
    rows,
    database,
    /** Makes a database without data, on the same server of PostgreSQL, and returns the flags that name it. */
    async newStorage(): Promise<readonly string[]> {
      const data = ["--data", mkdtempSync(join(directory, "new-"))];
      if (postgres === undefined) return data;
      await using sql = new SQL(postgres.url, { max: 1 });
      const name = `new_${crypto.randomUUID().replaceAll("-", "")}`;
      await sql.unsafe(`CREATE DATABASE ${name}`);
      return [...data, "--database-url", Object.assign(new URL(postgres.url), { pathname: name }).href];
    },
    directory,
    storage,
    keys: { usual: keys[0] ?? "", other: keys[1] ?? "", inTurn },
    postgres,
  };
}

function syncFile(path: string): void {
  const file = openSync(path, "r+");
  fsyncSync(file);
  closeSync(file);
}

const tableIn = (statement: string) => /(?:INTO|UPDATE) (\w+)/.exec(statement)?.[1] ?? "";

function statementsOf(
  { keys, usage, ...rows }: GrowthRows,
  inTurn: readonly string[],
  numbers: Numbers,
): readonly string[] {
  const now = Date.now();
  return [
    ...fillKeyStatements(keys, numbers, now),
    ...fillUnlimitedKeyStatements(inTurn.map(hashSecret), { after: lastRevision(keys), at: now }, numbers),
    ...fillUsageStatements(usage, numbers, now),
    ...fillStatements(rows, numbers),
  ];
}

/** Every key has used its windows. */
function fillQuotas(path: string, keys: number): void {
  const store = openQuotaStore(path);
  const now = Date.now();
  const quotas = Array.from({ length: keys }, (_, i): readonly [Subject, Quota] => {
    const quota = newQuota();
    Object.assign(quota.minute, { openedAt: now, used: 7 });
    Object.assign(quota.day, { openedAt: now, used: 700 });
    return [{ kind: "key", id: i + 3 }, quota];
  });
  store.save(quotas);
  store.close();
}
