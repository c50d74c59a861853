import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { checkVariables, SETTINGS } from "../../src/config/options.ts";
import type { Flags, Variables } from "../../src/config/parse-options.ts";
import { UsageError } from "../../src/config/usage-error.ts";

const directory = temporaryFolder("variables");

function envFile(text: string): string {
  const path = join(directory, "settings.env");
  writeFileSync(path, text);
  return path;
}

function check(flags: Flags, variables: Variables = {}) {
  const checked = checkVariables(Object.keys(SETTINGS), flags, variables);
  if (checked instanceof UsageError) throw new Error(checked.message);
  return checked;
}

const readFile = (text: string, variables: Variables = {}) =>
  check({ "env-file": [envFile(text)] }, variables).variables;

function message(flags: Flags, variables: Variables = {}): string | undefined {
  const checked = checkVariables(Object.keys(SETTINGS), flags, variables);
  return checked instanceof UsageError ? checked.message : undefined;
}

describe("--env-file", () => {
  test.each([
    ["PETSTORE_PORT=9000", { PETSTORE_PORT: "9000" }],
    ["\uFEFFPETSTORE_PORT=9000\r\n", { PETSTORE_PORT: "9000" }],
    ["  export PETSTORE_PORT=9000  ", { PETSTORE_PORT: "9000" }],
    ["# PETSTORE_PORT=1\n\nPETSTORE_DATA=/srv/my pets", { PETSTORE_DATA: "/srv/my pets" }],
    ["PETSTORE_DATA='/srv/my pets'", { PETSTORE_DATA: "/srv/my pets" }],
    ['PETSTORE_DATA="/srv/my pets"', { PETSTORE_DATA: "/srv/my pets" }],
    ["PETSTORE_DATABASE_URL=postgres://u:a#b$c'@h/d", { PETSTORE_DATABASE_URL: "postgres://u:a#b$c'@h/d" }],
    ["PETSTORE_DATABASE_URL='postgres://u:a\"b@h/d'", { PETSTORE_DATABASE_URL: 'postgres://u:a"b@h/d' }],
    ["PETSTORE_PORT=1\nPETSTORE_PORT=2", { PETSTORE_PORT: "2" }],
    ["OTHER=1", { OTHER: "1" }],
  ])("%p", (text, variables) => {
    expect<Variables>(readFile(text)).toEqual(variables);
  });

  test("a variable of the environment comes first, unless it is empty", () => {
    const text = "PETSTORE_PORT=9000\nPETSTORE_ENV=staging";
    expect(readFile(text, { PETSTORE_PORT: "9001", PETSTORE_ENV: "" })).toEqual({
      PETSTORE_PORT: "9001",
      PETSTORE_ENV: "staging",
    });
  });

  test("PETSTORE_ENV_FILE names it too, and the flag comes first", () => {
    const path = envFile("PETSTORE_PORT=9000");
    expect(check({}, { PETSTORE_ENV_FILE: path }).variables).toMatchObject({ PETSTORE_PORT: "9000" });
    expect(message({ "env-file": ["missing"] }, { PETSTORE_ENV_FILE: path })).toBe(
      '--env-file is "missing"; it cannot be read: the file does not exist',
    );
  });

  test("an unknown PETSTORE_ variable in it is an error that names the file", () => {
    const path = envFile("PETSTORE_PROT=1");
    expect(message({ "env-file": [path] })).toBe(
      `unknown variable "PETSTORE_PROT" in "${path}"; did you mean PETSTORE_PORT?`,
    );
  });

  test.each(["PETSTORE_PORT 9000", "=9000", "PETSTORE-PORT=9000", "9PORT=1", "PETSTORE_PORT =9000"])(
    "a line that is not NAME=value is an error with its number, and is not repeated: %p",
    (line) => {
      const path = envFile(`# settings\n${line}\n`);
      expect(message({ "env-file": [path] })).toBe(`line 2 of "${path}" is not NAME=value`);
    },
  );

  test.each([
    ["a missing file", ["missing"], 'is "missing"; it cannot be read: the file does not exist'],
    ["a directory", [directory], `is "${directory}"; it cannot be read: it is a directory`],
    ["two files", ["a", "b"], "is given more than once"],
  ])("%s", (_name, paths, problem) => {
    expect(message({ "env-file": paths })).toBe(`--env-file ${problem}`);
  });
});

describe("variables that are not settings", () => {
  test("those of other programs and of the tests are ignored, and an empty one counts as not set", () => {
    expect(message({}, { PETSTORE_PROT: "" })).toBeUndefined();
    const variables = {
      PATH: "/bin",
      PETSTORE: "x",
      PETSTORE_TEST_POSTGRES_URL: "postgres://h",
      PETSTORES_X: "1",
    };
    expect(check({}, variables)).toEqual({ variables, envFileVariables: new Set(), warnings: [] });
  });

  test("what Kubernetes sets for services named petstore and petstore-db is ignored", () => {
    const links = {
      PETSTORE_SERVICE_HOST: "10.0.0.1",
      PETSTORE_SERVICE_PORT: "80",
      PETSTORE_SERVICE_PORT_HTTP: "80",
      PETSTORE_PORT_80_TCP: "tcp://10.0.0.1:80",
      PETSTORE_PORT_80_TCP_PROTO: "tcp",
      PETSTORE_PORT_80_TCP_PORT: "80",
      PETSTORE_PORT_80_TCP_ADDR: "10.0.0.1",
      PETSTORE_DB_PORT: "tcp://10.0.0.2:5432",
      PETSTORE_DB_SERVICE_HOST: "10.0.0.2",
      PETSTORE_DB_PORT_5432_TCP: "tcp://10.0.0.2:5432",
    };
    expect(check({}, links)).toEqual({ variables: {}, envFileVariables: new Set(), warnings: [] });
  });

  test("a PETSTORE_PORT that Kubernetes set is ignored with a warning; one without a number is still a wrong port", () => {
    expect(check({}, { PETSTORE_PORT: "tcp://10.0.0.1:80" })).toEqual({
      variables: {},
      envFileVariables: new Set(),
      warnings: [
        "PETSTORE_PORT is ignored: Kubernetes sets it for a service named petstore; set enableServiceLinks: false, or use --port",
      ],
    });
    expect(check({}, { PETSTORE_PORT: "many" }).variables).toEqual({ PETSTORE_PORT: "many" });
  });
});
