import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { DataUse } from "../../../src/cli/command.ts";
import { COMMANDS } from "../../../src/cli/command-table.ts";
import { POSTGRES_MIGRATIONS } from "../../../src/store/sql/migration-steps.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import {
  ADD_COLUMN,
  ADD_ORDER,
  commandLineOf,
  EARLIER,
  expectDone,
  laterStep,
  MAKE_EARLIER,
  NEWER,
  NO_DATABASE,
  olderThan,
  OTHER_REASONS,
  runCommand,
  SETUP,
} from "../../cli/command-lines.ts";
import { fixtureSql } from "./previous-release.ts";

setDefaultTimeout(60_000);

const OLDER = olderThan(POSTGRES_MIGRATIONS.at(-1)?.version ?? 0);
const data = temporaryDirectory("data");
const run = (words: readonly string[], url: string) =>
  runCommand(words, { PETSTORE_DATA: data, PETSTORE_DATABASE_URL: url });

async function inDatabase(url: string, sql: string): Promise<void> {
  await using connection = new SQL(url, { max: 1 });
  await connection.unsafe(`SET search_path = production; ${sql}`).simple();
}

async function present(url: string): Promise<void> {
  for (const words of SETUP) expect((await run(words, url)).err).toBe("");
  await inDatabase(url, ADD_ORDER);
}

interface State {
  readonly make: (url: string) => Promise<void>;
  /** The commands, by what they do to data, that cannot be used on it. */
  readonly uses: readonly DataUse[];
  /** The sentence that ends them; undefined if they work and change nothing. */
  readonly sentence?: RegExp;
}

const TABLE_USES = ["reads", "changes", "creates"] as const;

const STATES: Readonly<Record<string, State>> = {
  "a database without tables": {
    make: async () => {},
    uses: ["inspects", "reads", "changes"],
    sentence: NO_DATABASE,
  },
  "tables of a release before 1.3.0": {
    make: async (url) => {
      await present(url);
      await inDatabase(url, MAKE_EARLIER);
    },
    uses: [...TABLE_USES, "migrates"],
    sentence: EARLIER,
  },
  "tables of 1.3.0": {
    make: (url) => inDatabase(url, fixtureSql("1.3.0")),
    uses: TABLE_USES,
    sentence: OLDER,
  },
  "tables of a later release that this one can use": {
    make: async (url) => {
      await present(url);
      await inDatabase(url, `${ADD_COLUMN}; ${laterStep("1.3.0")}`);
    },
    uses: ["reads"],
  },
  "tables of a later release that this one cannot use": {
    make: async (url) => {
      await present(url);
      await inDatabase(url, laterStep("999.1.0"));
    },
    uses: [...TABLE_USES, "migrates"],
    sentence: NEWER,
  },
};

describe.each(Object.entries(STATES))("on %s", (_name, { make, uses, sentence }) => {
  let url: string;
  let sql: SQL;

  beforeAll(async () => {
    url = await postgresUrl();
    await make(url);
    sql = new SQL(url, { max: 1 });
  });
  afterAll(() => sql.close());

  /** The columns of all tables, and every row. */
  const contents = async () => {
    const columns: { table: string }[] = await sql`
      SELECT table_name AS table, string_agg(column_name, ',' ORDER BY ordinal_position) AS columns
      FROM information_schema.columns WHERE table_schema = 'production' GROUP BY 1 ORDER BY 1`;
    const rows = columns.map(({ table }) =>
      sql.unsafe(`SELECT t::text FROM production."${table}" AS t ORDER BY 1`),
    );
    return { columns, rows: await Promise.all(rows) };
  };

  test("petstore migrate --dry-run", async () => {
    const before = await contents();
    const result = await run(["migrate", "--dry-run"], url);
    if (sentence && uses.includes("migrates"))
      expect(result).toEqual({ code: 1, err: expect.stringMatching(sentence) });
    else expect(result).toEqual({ code: 0, err: "" });
    expect(await contents()).toEqual(before);
  });

  // Before the first start, doctor reports it as a finding.
  const tried = COMMANDS.filter(
    ({ name, data: use }) => uses.includes(use) && !(name === "doctor" && uses.includes("inspects")),
  );
  test.each(tried.map((command) => [command.name, command] as const))("petstore %s", async (_, command) => {
    const before = await contents();
    const result = await run(commandLineOf(command), url);
    expectDone(result);
    if (sentence) expect(result).toEqual({ code: 1, err: expect.stringMatching(sentence) });
    else if (result.code === 1 && before.columns.length > 0) expect(result.err).toMatch(OTHER_REASONS);
    expect(await contents()).toEqual(before);
  });
});
