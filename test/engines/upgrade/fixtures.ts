import { SQL } from "bun";
import { chmodSync, copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../../harness/cleanup.ts";
import { postgresUrl } from "../../../harness/postgres.ts";
import { FIXTURES } from "./previous-release.ts";

/** A data directory with the SQLite databases that the previous release made. */
export function fixtureData(): string {
  const folder = temporaryFolder("previous-data");
  for (const name of ["production.db", "production-limits.db"]) {
    copyFileSync(join(FIXTURES, name), join(folder, name));
    chmodSync(join(folder, name), 0o600);
  }
  return folder;
}

/** The URL of a PostgreSQL database with what the previous release stored. */
export async function fixtureDatabase(): Promise<string> {
  const url = await postgresUrl();
  const sql = new SQL(url, { max: 1 });
  await sql.unsafe(readFileSync(join(FIXTURES, "postgres.sql"), "utf8")).simple();
  await sql.end();
  return url;
}
