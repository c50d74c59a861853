import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { hash } from "node:crypto";
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, DataUse } from "../../src/cli/command.ts";
import { COMMANDS } from "../../src/cli/command-table.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sql/migration-steps.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { fixtureData } from "../engines/upgrade/previous-release.ts";
import { cleanUpAfterAll } from "./cli.ts";
import {
  ADD_COLUMN,
  ADD_ORDER,
  commandLineOf,
  EARLIER,
  expectDone,
  files,
  laterStep,
  MAKE_EARLIER,
  NEWER,
  NO_DATABASE,
  olderThan,
  OTHER_REASONS,
  runCommand,
  SETUP,
} from "./command-lines.ts";

cleanUpAfterAll();

const run = (words: readonly string[], data: string) => runCommand(words, { PETSTORE_DATA: data });

const SUPPORTED = SQLITE_MIGRATIONS.at(-1)?.version ?? 0;
/** The files that SQLite and the lock of a server leave, which have no data. */
const isWithoutData = (name: string, bytes: Buffer) =>
  /\.lock$|-shm$/.test(name) || (name.endsWith("-wal") && bytes.length === 0);

/** The hash of each file with data, by its name. */
function contentsOf(directory: string): Record<string, string> {
  if (!existsSync(directory)) return {};
  const paths = readdirSync(directory, { recursive: true, withFileTypes: true });
  const contents = paths
    .filter((each) => each.isFile())
    .map(({ parentPath, name }) => [name, readFileSync(join(parentPath, name))] as const)
    .filter(([name, bytes]) => !isWithoutData(name, bytes));
  return Object.fromEntries(contents.map(([name, bytes]) => [name, hash("sha256", bytes)]));
}

/** The version of the tables and the number of audit entries; undefined without a database. */
function factsOf(directory: string): { version: number; entries: number } | undefined {
  const path = join(directory, "production.db");
  if (!existsSync(path)) return undefined;
  using database = new Database(path);
  const sql =
    "SELECT (SELECT max(version) FROM schema_migrations) AS version, count(*) AS entries FROM audit";
  return database.query<{ version: number; entries: number }, []>(sql).get() ?? undefined;
}

/** A directory with what the arguments name. */
const present = temporaryDirectory("present");
for (const words of SETUP) expect((await run(words, present)).err).toBe("");
using made = new Database(join(present, "production.db"));
made.run(ADD_ORDER);
made.close();
expect((await run(["backup", join(files, "backups")], present)).err).toBe("");

function copyOf(directory: string, ...statements: readonly string[]): string {
  const copy = temporaryDirectory("copy");
  cpSync(directory, copy, { recursive: true });
  using database = new Database(join(copy, "production.db"));
  for (const sql of statements) database.run(sql);
  return copy;
}

/** Makes the directory, anew for each command. */
const STATES = {
  "no directory": () => join(temporaryDirectory("parent"), "data"),
  "an empty directory": () => temporaryDirectory("empty"),
  "a database of a release before 1.3.0": () => copyOf(present, MAKE_EARLIER),
  "a database of 1.3.0": () => fixtureData("1.3.0"),
  "a database of this release": () => copyOf(present),
  "a database of a later release that this one can use": () =>
    copyOf(present, ADD_COLUMN, laterStep("1.3.0")),
  "a database of a later release that this one cannot use": () => copyOf(present, laterStep("999.1.0")),
  "the database of another program": () => {
    const directory = temporaryDirectory("foreign");
    using database = new Database(join(directory, "production.db"));
    database.run("CREATE TABLE recipes (id INTEGER PRIMARY KEY)");
    return directory;
  },
} as const;
type State = keyof typeof STATES;

type Expected =
  | "nothing changes"
  | "makes the database"
  | "works"
  | "migrates"
  /** The sentence that ends the command, which changes nothing. */
  | RegExp;

const OLDER = olderThan(SUPPORTED);
const FOREIGN = /it is the database of another program/;

const REJECTED = {
  "a database of a release before 1.3.0": EARLIER,
  "a database of 1.3.0": OLDER,
  "a database of a later release that this one cannot use": NEWER,
  "the database of another program": FOREIGN,
} as const;
const WORKS = {
  "a database of this release": "works",
  "a database of a later release that this one can use": "works",
} as const;
const USABLE = { ...REJECTED, ...WORKS };
const SAME = "nothing changes";
const NOWHERE = { "no directory": NO_DATABASE, "an empty directory": NO_DATABASE } as const;
const MADE = { "no directory": "makes the database", "an empty directory": "makes the database" } as const;

const UNTOUCHED = Object.fromEntries(Object.keys(STATES).map((state) => [state, SAME])) as Record<
  State,
  Expected
>;

/** What a command does in each state follows from what it does to data. */
const EXPECTED: Readonly<Record<DataUse, Readonly<Record<State, Expected>>>> = {
  nothing: UNTOUCHED,
  locates: UNTOUCHED,
  inspects: {
    ...NOWHERE,
    ...WORKS,
    "a database of a release before 1.3.0": SAME,
    "a database of 1.3.0": "works",
    "a database of a later release that this one cannot use": "works",
    "the database of another program": SAME,
  },
  reads: { ...NOWHERE, ...USABLE },
  changes: { ...NOWHERE, ...USABLE },
  creates: { ...MADE, ...USABLE },
  replaces: UNTOUCHED,
  migrates: {
    ...MADE,
    ...USABLE,
    "a database of 1.3.0": "migrates",
  },
};

/** What differs from the table. */
const EXCEPTIONS: Readonly<Record<string, Partial<Record<State, Expected>>>> = {
  // It says so as a finding: before the first start, that is no error.
  doctor: { "no directory": SAME, "an empty directory": SAME },
  restore: MADE,
};

const expectedOf = ({ name, data }: Command, state: State) =>
  EXCEPTIONS[name]?.[state] ?? EXPECTED[data][state];

test("four commands make a database where there is none", () => {
  const makers = COMMANDS.filter((command) => expectedOf(command, "no directory") === "makes the database");
  expect(makers.map(({ name }) => name)).toEqual(["serve", "import", "restore", "migrate"]);
});

/** What a command with --dry-run does in each state: it changes nothing, and stops where the command itself would. */
const EXPECTED_DRY: Readonly<Record<string, Partial<Record<State, Expected>>>> = {
  apply: { ...NOWHERE, ...REJECTED },
  migrate: {
    "a database of a release before 1.3.0": EARLIER,
    "a database of a later release that this one cannot use": NEWER,
    "the database of another program": FOREIGN,
  },
  import: REJECTED,
  restore: {},
};

/** What these change is so already: the key is neither disabled nor banned. */
const WITHOUT_EFFECT = new Set(["keys enable", "keys unban"]);

describe.each(COMMANDS.map((command) => [command.name, command] as const))("petstore %s", (name, command) => {
  test.each(Object.keys(STATES) as State[])("on %s", async (state) => {
    const expected = expectedOf(command, state);
    const directory = STATES[state]();
    const before = contentsOf(directory);
    const isThere = existsSync(directory);
    const facts = expected === "works" || expected === "migrates" ? factsOf(directory) : undefined;
    const { code, err } = await run(commandLineOf(command), directory);
    expectDone({ code, err });
    if (expected instanceof RegExp) {
      expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(expected) });
      expect(contentsOf(directory)).toEqual(before);
      expect(existsSync(directory)).toBe(isThere);
    } else if (expected === SAME) {
      expect(contentsOf(directory)).toEqual(before);
    } else if (expected === "makes the database") {
      expect(err).toBe("");
      expect(factsOf(directory)?.version).toBe(SUPPORTED);
      // New tables alone are no entry.
      if (name !== "migrate") expect(factsOf(directory)?.entries).toBeGreaterThan(0);
    } else {
      if (code === 1) expect(err).toMatch(OTHER_REASONS);
      const after = factsOf(directory);
      const isChange =
        code === 0 && ["changes", "creates"].includes(command.data) && !WITHOUT_EFFECT.has(name);
      expect(after?.version).toBe(expected === "migrates" ? SUPPORTED : facts?.version);
      if (isChange || expected === "migrates") expect(after?.entries).toBeGreaterThan(facts?.entries ?? 0);
    }
  });
});

describe.each(
  COMMANDS.flatMap((command) =>
    command.options["dry-run"] ? [[command.name, EXPECTED_DRY[command.name], command] as const] : [],
  ),
)("petstore %s --dry-run", (_name, expected, command) => {
  test.each(Object.keys(STATES) as State[])("on %s", async (state) => {
    const sentence = expected?.[state];
    const directory = STATES[state]();
    const before = contentsOf(directory);
    const result = await run([...commandLineOf(command), "--dry-run"], directory);
    expectDone(result);
    expect(expected).toBeDefined();
    if (sentence instanceof RegExp) expect(result).toEqual({ code: 1, err: expect.stringMatching(sentence) });
    else expect(result.err).not.toMatch(/its tables have version|the tables need/);
    expect(contentsOf(directory)).toEqual(before);
  });
});
