import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { REQUIREMENTS } from "../../src/store/postgres/requirements.ts";

const ROOT = `${import.meta.dir}/../../`;
/** What other databases may lack: functions and views of PostgreSQL, and statements beyond plain SQL. */
const BEYOND_PLAIN_SQL = new RegExp(
  [
    String.raw`\bpg_\w+`,
    String.raw`\b(?:SKIP LOCKED|NOWAIT|UNLOGGED|CONCURRENTLY|MATERIALIZED|LATERAL|ON CONFLICT|WITH ORDINALITY)\b`,
    String.raw`\b(?:IDENTITY|REPEATABLE READ|SCROLL CURSOR|jsonb|regclass|unnest|string_agg|string_to_array)\b`,
    String.raw`\b(?:json_array_elements|clock_timestamp|statement_timestamp|starts_with)\b`,
    String.raw`\b(?:enable_\w+|plan_cache_mode|synchronous_commit|\w+_timeout)\b`,
  ].join("|"),
  "g",
);

test("everything that the SQL uses beyond plain SQL is a requirement, which the doctor tries", () => {
  const tried = REQUIREMENTS.map(({ tries }) => String(tries)).join("\n");
  const replication = readFileSync(`${ROOT}src/store/postgres/replication.ts`, "utf8");
  const missing = [...new Glob("src/store/**/*.ts").scanSync(ROOT)]
    .filter((path) => !path.includes("/sqlite/") && !path.endsWith("/requirements.ts"))
    .flatMap((path) => readFileSync(ROOT + path, "utf8").match(BEYOND_PLAIN_SQL) ?? [])
    .filter((used) => !`${tried}${replication}`.includes(used));
  expect([...new Set(missing)]).toEqual([]);
});
