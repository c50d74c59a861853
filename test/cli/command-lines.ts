import { expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json";
import type { Command, ProcessContext } from "../../src/cli/command.ts";
import { describeFailure, runProgram } from "../../src/cli/program.ts";
import type { Variables } from "../../src/config/parse-options.ts";
import { generateSecret } from "../../src/domain/secrets.ts";
import { silentLog } from "../../src/observe/log.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { TestClock } from "../service.ts";

export const files = temporaryDirectory("files");
const config = temporaryDirectory("config");
const declaredFile = join(files, "petstore.yaml");
writeFileSync(declaredFile, "keys:\n  - { id: declared, name: Declared, plan: free }\n");
const petsFile = join(files, "pets.ndjson");
writeFileSync(petsFile, '{"name":"Rex","categoryId":7}\n');

/** The values of arguments and flags that a command needs, by their names. A command that needs another one fails. */
const VALUES: Readonly<Record<string, string | (() => string)>> = {
  ID: "1",
  PLAN: "pro",
  STATUS: "cancelled",
  NAME: "ann",
  URL: "http://127.0.0.1:1",
  FILE: petsFile,
  "apply FILE": declaredFile,
  KIND: "pets",
  DIR: () => temporaryDirectory("made"),
  BACKUP: join(files, "backups"),
  SHELL: "bash",
  name: "new",
  plan: "pro",
  category: "7",
  role: "viewer",
};

/** What commands need besides, which their definitions do not say: one of several flags, or no port in use. */
const NO_PORTS = ["--port", "0", "--admin-address", "off"];
const MORE: Readonly<Record<string, readonly string[]>> = {
  serve: NO_PORTS,
  demo: NO_PORTS,
  doctor: NO_PORTS,
  health: ["--port", "1"],
  "keys update": ["--name", "other"],
  "plans update": ["--per-minute", "7"],
  "ban-rules update": ["--strikes", "7"],
  "pets update": ["--name", "Max"],
  "operators update": ["--role", "support"],
};

/** The command line of a command, from its definition. */
export function commandLineOf({ name, positionals, options }: Command): string[] {
  const value = (label: string) => {
    const found = VALUES[`${name} ${label}`] ?? VALUES[label];
    if (found === undefined) throw new Error(`VALUES has no ${label}, which ${name} needs`);
    return typeof found === "string" ? found : found();
  };
  const labels = Object.keys(positionals).filter((label) => !positionals[label]?.optional);
  const flags = Object.keys(options).filter((flag) => options[flag]?.isRequired);
  return [
    ...name.split(" "),
    ...labels.map(value),
    ...flags.flatMap((flag) => [`--${flag}`, value(flag)]),
    ...(MORE[name] ?? []),
  ];
}

/** Runs a command on the storage that variables name. Returns its exit status and the sentence that ended it. */
export async function runCommand(
  words: readonly string[],
  storage: Variables,
  context: Partial<ProcessContext> = {},
) {
  const running = runProgram(words, {
    variables: { ...storage, XDG_CONFIG_HOME: config },
    clock: new TestClock(),
    print: async () => {},
    columns: () => undefined,
    errorStream: { isTerminal: false, columns: 80, write: () => {} },
    readInput: () => new Blob([]).stream(),
    user: "ann",
    readSecret: async () => generateSecret("production"),
    confirm: async () => true,
    warn: () => {},
    openLog: () => silentLog,
    // Others are not interrupted.
    stopSignal: async () => (["serve", "demo"].includes(words[0] ?? "") ? "SIGTERM" : new Promise(() => {})),
    ...context,
  });
  return running.then(() => ({ code: 0, err: "" }), describeFailure);
}

/** Why tables cannot be used, for commands that do not migrate. */
export const olderThan = (supported: number) =>
  new RegExp(
    `its tables have version \\d+, and petstore ${version} needs version ${supported}; .*petstore migrate`,
  );
export const EARLIER = /the tables are of a release before 1\.3\.0; petstore 1\.3\.0 migrates them/;
export const MAKE_EARLIER = "UPDATE schema_migrations SET version = version - 20";
export const NEWER = /the tables need petstore 999.1.0 or newer/;

/** What a later release does to the tables, which has the oldest release that can run on them. */
export const laterStep = (oldestRelease: string) =>
  `INSERT INTO schema_migrations (version, name, oldest_release) VALUES (900, 'later', '${oldestRelease}')`;
export const ADD_COLUMN = "ALTER TABLE pets ADD COLUMN of_a_later_release TEXT";

/** Why a command fails where it may not make a database: it says where it looked, and what to do. */
export const NO_DATABASE =
  /^there is no database in production \(data: .+\): (?:\S+ does not exist|it has no tables of \w+); name it/;

/** Why a command fails although it can use the data: no server runs, doctor finds an error, the secret is unknown. */
export const OTHER_REASONS = /no server runs|errors? found$|has this secret/;

/** Commands that make what the arguments name, and leave out whatever keeps commands from changing it. */
export const SETUP = [
  "migrate",
  "keys create --name shop --plan pro",
  "pets add --name Rex --category 7",
  "pets add --name Ordered --category 7",
  "operators create --name ann --role admin",
  "operators create --name root --role admin",
].map((line) => line.split(" "));
export const ADD_ORDER = "INSERT INTO orders (pet_id, key_id, status, created_at) VALUES (2, 1, 'placed', 1)";

/** Fails if the command line is wrong, which VALUES or MORE has to be corrected for, or after an unexpected error. */
export function expectDone({ code, err }: Awaited<ReturnType<typeof runCommand>>): void {
  const isKnown = code === 0 || (code === 1 && err !== "" && !err.includes("this is a bug in petstore"));
  expect({ code, err, isKnown }).toMatchObject({ isKnown: true });
}
