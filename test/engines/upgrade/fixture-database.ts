import { SQL } from "bun";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { FIXTURES } from "./previous-release.ts";

/** The URL of a PostgreSQL database with what the previous release stored. */
export async function fixtureDatabase(): Promise<string> {
  const url = await postgresUrl();
  const sql = new SQL(url, { max: 1 });
  await sql.unsafe(readFileSync(join(FIXTURES, "postgres.sql"), "utf8")).simple();
  await sql.end();
  return url;
}
