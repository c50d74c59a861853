import { describe, expect, jest, test } from "bun:test";
import { unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { OPTIONS } from "../../src/cli/command-table.ts";
import { SETTINGS } from "../../src/config/options.ts";
import { checkVariables } from "../../src/config/variables.ts";
import { type Flags, variableOf, type Variables } from "../../src/config/parse-options.ts";
import { quoted } from "../../src/config/quoted.ts";
import { formatValue } from "../../src/config/value-types.ts";
import { followDatabaseUrl } from "../../src/config/database-url.ts";
import { parseConfig, usageError } from "./parsing.ts";

test("a flag overrides a variable, also a wrong one, and a variable overrides the default", () => {
  expect(parseConfig({}, { PETSTORE_PORT: "9001" }).port).toBe(9001);
  expect(parseConfig({ port: ["9000"] }, { PETSTORE_PORT: "9001" }).port).toBe(9000);
  expect(parseConfig({ port: ["9000"] }, { PETSTORE_PORT: "many" }).port).toBe(9000);
});

test("an empty variable counts as not set, an empty flag is a value", () => {
  expect(parseConfig({}, { PETSTORE_PORT: "", PETSTORE_DATA: "" })).toEqual(parseConfig());
  expect(usageError({ port: [""] })).toBe('--port is ""; it must be an integer from 0 to 65535');
});

test("every setting has its own variable", () => {
  const variables = Object.keys(SETTINGS).map(variableOf);
  expect(new Set(variables).size).toBe(variables.length);
  expect(variables).toContain("PETSTORE_TRUST_PROXY");
});

test.each(Object.entries(OPTIONS).filter(([, option]) => option.default !== undefined))(
  "the default of --%s is a valid value",
  (_flag, { type, default: value }) => {
    const typed = formatValue(type, value);
    if (typed !== "") expect(type.parse(typed)).toEqual(value);
  },
);

test.each(Object.entries(OPTIONS).filter(([, { type }]) => type.placeholder === "TIME"))(
  "the examples for --%s are valid",
  (_flag, { type }) => {
    const [, examples = ""] = /such as (.+)$/.exec(type.expected) ?? [];
    const durations = examples.split(/, | or /);
    expect(durations.length).toBeGreaterThan(1);
    expect(durations.filter((text) => type.parse(text) === undefined)).toEqual([]);
  },
);

test("any text in a message becomes one short line of printable characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
      const line = quoted(text);
      expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      expect(line.length).toBeLessThan(1_000);
    }),
  );
  expect([60, 61].map((length) => quoted("x".repeat(length)))).toEqual([
    `"${"x".repeat(60)}"`,
    `"${"x".repeat(60)}…"`,
  ]);
});

const directory = temporaryDirectory("options");
const PATH = join(directory, "file");
function file(text: string): string {
  writeFileSync(PATH, text);
  return PATH;
}

const POSTGRES_COUNTS =
  "is no longer a setting: PostgreSQL counts since 2.0, so remove it, in the order that docs/upgrading.md has";
const POSTGRES = "postgres://u:s3cret@h/d";

describe("--database-url-file", () => {
  test.each([POSTGRES, `${POSTGRES}\n`, `\n  ${POSTGRES}\r\n\n`])(
    "the file has the URL, and a variable names it too: %p",
    (text) => {
      expect(parseConfig({ "database-url-file": [file(text)] }).data.postgres?.url).toBe(POSTGRES);
      expect(parseConfig({}, { PETSTORE_DATABASE_URL_FILE: PATH }).data.postgres?.url).toBe(POSTGRES);
    },
  );

  test("a flag comes before a variable, whichever of the two options it is", () => {
    const [path, other] = [file(POSTGRES), "postgres://other/d"];
    const ofFile = parseConfig({ "database-url-file": [path] }, { PETSTORE_DATABASE_URL: other });
    const ofFlag = parseConfig({ "database-url": [other] }, { PETSTORE_DATABASE_URL_FILE: path });
    expect([ofFile.data.postgres?.url, ofFlag.data.postgres?.url]).toEqual([POSTGRES, other]);
  });

  test("a server reads changed files again; what is unusable is reported, and the last usable contents stay", () => {
    jest.useFakeTimers();
    const reports: string[] = [];
    const database = join(temporaryDirectory("followed"), "database");
    const write = (text: string) => writeFileSync(database, text);
    write(POSTGRES);
    const url = followDatabaseUrl(
      { url: POSTGRES, urlFile: database },
      {
        onChange: ({ setting }) => reports.push(setting),
        onInvalid: ({ setting, error }) => reports.push(`${setting}: ${String(error)}`),
      },
    );
    try {
      const used = () => {
        jest.advanceTimersByTime(3_000);
        return [url.current, reports.splice(0)];
      };
      expect(used()).toEqual([POSTGRES, []]);
      const changed = "postgres://other/d";
      write(changed);
      expect(used()).toEqual([changed, ["database-url-file"]]);
      write("nonsense://user:s3cret@host");
      expect(used()).toEqual([changed, [expect.stringMatching(/^database-url-file: .* is not valid/)]]);
      write("");
      expect(used()).toEqual([changed, [expect.stringMatching(/^database-url-file: .*; the file is empty/)]]);
      unlinkSync(database);
      expect(used()).toEqual([
        changed,
        [expect.stringMatching(/^database-url-file: .*; it cannot be read: the file does not exist/)],
      ]);
    } finally {
      url.close();
      jest.useRealTimers();
    }
  });

  test("a file that is a pipe is read once", () => {
    const onInvalid = () => expect.unreachable();
    const reports = { onChange: onInvalid, onInvalid };
    const url = followDatabaseUrl({ url: POSTGRES, urlFile: "/dev/null" }, reports);
    expect(url.current).toBe(POSTGRES);
    url.close();
  });

  test("the URL and the file at once are an error", () => {
    const path = file(POSTGRES);
    expect(usageError({ "database-url": [POSTGRES], "database-url-file": [path] })).toBe(
      "--database-url and --database-url-file exclude each other; use one of them",
    );
    expect(usageError({}, { PETSTORE_DATABASE_URL: POSTGRES, PETSTORE_DATABASE_URL_FILE: path })).toBe(
      "PETSTORE_DATABASE_URL and PETSTORE_DATABASE_URL_FILE exclude each other; use one of them",
    );
  });

  test.each([
    ["a wrong URL", "postgres://u:s3cret@", "is not valid; it must be a URL such as "],
    ["an empty file", " \n", `is "${PATH}"; the file is empty`],
    ["two lines", `${POSTGRES}\n${POSTGRES}`, `is "${PATH}"; the file must have one line`],
  ])("%s is an error that names the option and repeats nothing of the file", (_name, text, problem) => {
    const message = usageError({ "database-url-file": [file(text)] });
    expect(message).toStartWith(`--database-url-file ${problem}`);
    expect(message).not.toContain("s3cret");
  });
});

const check = (flags: Flags, variables: Variables = {}) =>
  checkVariables(Object.keys(SETTINGS), flags, variables);

const readFile = (text: string, variables: Variables = {}) =>
  check({ "env-file": [file(text)] }, variables).variables;

const rejected = (flags: Flags, variables?: Variables) => expect(() => check(flags, variables));

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
    // Comments and continued lines are read as systemd reads them.
    ["; PETSTORE_PORT=1\n  ;\nPETSTORE_PORT=2", { PETSTORE_PORT: "2" }],
    ["PETSTORE_DATA=/srv/\\\r\npets/\\\n1", { PETSTORE_DATA: "/srv/pets/1" }],
    ["# one \\\nPETSTORE_PORT=2", { PETSTORE_PORT: "2" }],
    ["OTHER=a\\\\\nPETSTORE_PORT=2", { OTHER: "a\\\\", PETSTORE_PORT: "2" }],
    ["OTHER='a\\'\nPETSTORE_PORT=2\\", { OTHER: "a\\", PETSTORE_PORT: "2\\" }],
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
    const path = file("PETSTORE_PORT=9000");
    expect(check({}, { PETSTORE_ENV_FILE: path }).variables).toMatchObject({ PETSTORE_PORT: "9000" });
    rejected({ "env-file": ["missing"] }, { PETSTORE_ENV_FILE: path }).toThrow(
      '--env-file is "missing"; it cannot be read: the file does not exist',
    );
  });

  const NO_ASSIGNMENT = `line 2 of "${PATH}" is not NAME=value`;
  test.each([
    ["PETSTORE_LIMITS_URL=x", `PETSTORE_LIMITS_URL in "${PATH}" ${POSTGRES_COUNTS}`],
    ["PETSTORE_PROT=1", `unknown variable "PETSTORE_PROT" in "${PATH}"; did you mean PETSTORE_PORT?`],
    // They are not repeated.
    ["PETSTORE_PORT 9000", NO_ASSIGNMENT],
    ["=9000", NO_ASSIGNMENT],
    ["PETSTORE-PORT=9000", NO_ASSIGNMENT],
    ["9PORT=1", NO_ASSIGNMENT],
    ["PETSTORE_PORT =9000", NO_ASSIGNMENT],
  ])("a wrong line is an error that names the file: %p", (line, error) => {
    rejected({ "env-file": [file(`# settings\n${line}\n`)] }).toThrow(error);
  });

  test("the API key of a client is no setting, also in the shell that starts a server", () => {
    expect(() => check({}, { PETSTORE_KEY: "pet_live_1" })).not.toThrow();
  });

  test.each([
    ["a missing file", ["missing"], 'is "missing"; it cannot be read: the file does not exist'],
    ["a directory", [directory], `is "${directory}"; it cannot be read: it is a directory`],
  ])("%s", (_name, paths, problem) => {
    rejected({ "env-file": paths }).toThrow(`--env-file ${problem}`);
  });

  test("two files", () => {
    expect(usageError({ "env-file": ["a", "b"] })).toBe("--env-file is given more than once");
  });
});

describe("variables that are not settings", () => {
  test("those of other programs and of the tests are ignored, and an empty one counts as not set", () => {
    expect(check({}, { PETSTORE_PROT: "" }).variables).toEqual({});
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
