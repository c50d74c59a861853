import { beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMMANDS } from "../../src/cli/command-table.ts";
import { serviceFileOf } from "../../src/cli/service-file.ts";
import type { Variables } from "../../src/config/parse-options.ts";
import { cleanUpAfterAll, cliDirectory } from "./cli.ts";
import {
  ADD_ORDER,
  commandLineOf,
  expectDone,
  files,
  NO_DATABASE,
  runCommand,
  SETUP,
} from "./command-lines.ts";
import { Database } from "bun:sqlite";
// The commands of an installed package know their service.
cleanUpAfterAll();

/** The data of the service, and the file that says so. */
const data = join(cliDirectory(), "data");
const serviceFile = join(cliDirectory(), "production.env");
writeFileSync(serviceFile, `PETSTORE_DATA=${data}\n`);
const LINE = `the settings are those of ${serviceFile}`;

async function runPackaged(words: readonly string[], { variables = {}, file = serviceFile } = {}) {
  const warnings: string[] = [];
  const warn = (line: string) => void warnings.push(line);
  const result = await runCommand(words, variables, { warn, serviceFile: file });
  return { ...result, isOfService: warnings.includes(LINE), warnings };
}

beforeAll(async () => {
  for (const words of SETUP) expect(await runPackaged(words)).toMatchObject({ code: 0, isOfService: true });
  using database = new Database(join(data, "production.db"));
  database.run(ADD_ORDER);
  database.close();
  await runPackaged(["backup", join(files, "backups")]);
});

test("the executable of a package is at /usr/bin", () => {
  expect(serviceFileOf("/usr/bin/petstore")).toBe("/etc/petstore/production.env");
  expect(serviceFileOf("/usr/local/bin/petstore")).toBeUndefined();
});

test.each(COMMANDS.map((command) => [command.name, command] as const))(
  "petstore %s works on the data of the service, and says so, unless it is about other things",
  async (_name, command) => {
    const { isOfService, ...result } = await runPackaged(commandLineOf(command));
    expectDone(result);
    expect(isOfService).toBe(command.data !== "nothing");
    expect(result.err).not.toMatch(NO_DATABASE);
  },
);

const elsewhere = join(cliDirectory(), "data");
const otherFile = join(cliDirectory(), "other.env");
writeFileSync(otherFile, `PETSTORE_DATA=${elsewhere}\n`);
const OTHER: Readonly<Record<string, { line?: string; variables?: Variables }>> = {
  "--data": { line: ` --data ${elsewhere}` },
  PETSTORE_DATA: { variables: { PETSTORE_DATA: elsewhere } },
  "--env-file": { line: ` --env-file ${otherFile}` },
  PETSTORE_ENV_FILE: { variables: { PETSTORE_ENV_FILE: otherFile } },
};

test.each(Object.entries(OTHER))("what says where the data is comes first: %s", async (_name, given) => {
  const { line = "", variables = {} } = given;
  const result = await runPackaged(`keys list${line}`.split(" "), { variables });
  expect(result).toEqual({
    code: 1,
    err: expect.stringMatching(NO_DATABASE),
    isOfService: false,
    warnings: [],
  });
  expect(result.err).toContain(elsewhere);
});

test("a remote server comes first, and a variable before that of the file", async () => {
  const variables = { PETSTORE_SERVER: "http://127.0.0.1:1", PETSTORE_TOKEN: "x".repeat(20) };
  const remote = await runPackaged(["keys", "list"], { variables });
  expect(remote).toMatchObject({ err: expect.stringContaining("http://127.0.0.1:1"), isOfService: false });
  // A backup is never that of a remote server.
  const backup = await runPackaged(["backup", cliDirectory()], { variables });
  expect(backup).toMatchObject({ code: 0, isOfService: true });
  const staging = await runPackaged(["keys", "list"], { variables: { PETSTORE_ENV: "staging" } });
  expect(staging.err).toContain(`there is no database in staging (data: ${data})`);
});

test("a file that this user may not read is a failure that says what to do; a missing one is none", async () => {
  // Root may read everything.
  const unreadable = await runPackaged(["keys", "list"], { file: join(serviceFile, "production.env") });
  expect(unreadable).toMatchObject({
    code: 1,
    err: `${serviceFile}/production.env has the settings of the service, and cannot be read: a part of the path is a file, not a directory; run the command as root or as the user petstore, or name other data with --data or --database-url`,
  });
  const line = ["keys", "list", "--data", data];
  const named = await runPackaged(line, { file: join(serviceFile, "production.env") });
  expect(named).toMatchObject({ code: 0 });
  const missing = await runPackaged(["whoami"], { file: join(cliDirectory(), "production.env") });
  expect(missing).toMatchObject({ err: expect.stringContaining("(data: ./data)"), isOfService: false });
});
