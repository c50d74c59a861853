import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { OPTIONS } from "../../src/cli/commands.ts";
import { SETTINGS } from "../../src/config/options.ts";
import { variableOf } from "../../src/config/parse-options.ts";
import { quoted } from "../../src/config/usage-error.ts";
import { formatValue } from "../../src/config/value-types.ts";
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
});

const PATH = join(temporaryFolder("files"), "url");
function file(text: string): string {
  writeFileSync(PATH, text);
  return PATH;
}

const POSTGRES = "postgres://u:s3cret@h/d";

describe("--database-url-file and --limits-url-file", () => {
  test.each([POSTGRES, `${POSTGRES}\n`, `\n  ${POSTGRES}\r\n\n`])(
    "the file has the URL, and a variable names it too: %p",
    (text) => {
      expect(parseConfig({ "database-url-file": [file(text)] }).databaseUrl).toBe(POSTGRES);
      expect(parseConfig({}, { PETSTORE_DATABASE_URL_FILE: PATH }).databaseUrl).toBe(POSTGRES);
    },
  );

  test("several URLs of a cluster have lines of their own, or commas between them", () => {
    const urls = ["redis://a", "redis://:s3cret@b", "redis://c"];
    const limitsUrls = (text: string) => parseConfig({ "limits-url-file": [file(text)] }).limitsUrls;
    expect(limitsUrls(urls.join("\n"))).toEqual(urls);
    expect(limitsUrls(urls.join(","))).toEqual(urls);
  });

  test("a flag comes before a variable, whichever of the two options it is", () => {
    const [path, other] = [file(POSTGRES), "postgres://other/d"];
    const ofFile = parseConfig({ "database-url-file": [path] }, { PETSTORE_DATABASE_URL: other });
    const ofFlag = parseConfig({ "database-url": [other] }, { PETSTORE_DATABASE_URL_FILE: path });
    expect([ofFile.databaseUrl, ofFlag.databaseUrl]).toEqual([POSTGRES, other]);
  });

  test("the URL and the file at once are an error", () => {
    const path = file(POSTGRES);
    expect(usageError({ "database-url": [POSTGRES], "database-url-file": [path] })).toBe(
      "--database-url and --database-url-file exclude each other; use one of them",
    );
    expect(usageError({}, { PETSTORE_LIMITS_URL: "redis://a", PETSTORE_LIMITS_URL_FILE: path })).toBe(
      "PETSTORE_LIMITS_URL and PETSTORE_LIMITS_URL_FILE exclude each other; use one of them",
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

  test("a missing file is an error, and so are two", () => {
    expect(usageError({ "limits-url-file": ["missing"] })).toBe(
      '--limits-url-file is "missing"; it cannot be read: the file does not exist',
    );
    expect(usageError({ "limits-url-file": ["a", "b"] })).toBe("--limits-url-file is given more than once");
  });
});
