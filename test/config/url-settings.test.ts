import { expect, test } from "bun:test";
import { COMMANDS } from "../../src/cli/command-table.ts";
import { parseValue } from "../../src/config/parse-options.ts";
import { UsageError } from "../../src/config/usage-error.ts";
import type { ValueType } from "../../src/config/value-types.ts";

/** Every flag and positional of every command, by name. */
const types = new Map(
  COMMANDS.flatMap(({ options, positionals }) => {
    const flags = Object.entries(options).map(([flag, { type }]) => ({ name: `--${flag}`, type }));
    const labels = Object.entries(positionals).map(([name, type]) => ({ name, type }));
    return flags.concat(labels).map(({ name, type }): [string, ValueType<unknown>] => [name, type]);
  }),
);
const urlTypes = [...types].filter(([, { expected }]) => /\bURL\b|https?:/.test(expected));

const HOSTILE = [
  "https://user:s3cret@host/path?token=s3cret#s3cret",
  "https://host/path?s3cret",
  "http://host/path#s3cret",
  "http://host/?a=s3cret,http://other/?b=s3cret",
  "ftp://host/?key=s3cret",
  "ht tp://host/?key=s3cret",
  "host:4318/v1/traces?auth=s3cret",
  "user:s3cret@host",
  "//user:s3?cret@host/ ?s3cret",
  "https:/host/?x=s3cret",
];

test("there are settings that are URLs", () => {
  expect(urlTypes.map(([name]) => name)).toContain("--otlp-url");
  expect(urlTypes.length).toBeGreaterThan(8);
});

test.each(urlTypes)("a message about %s repeats no user, query or fragment", (name, type) => {
  const messages = HOSTILE.flatMap((text) => {
    try {
      parseValue(name, text, type);
      return [];
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      return error.message;
    }
  });
  expect(messages.length).toBeGreaterThan(0);
  for (const message of messages) expect(message).not.toMatch(/s3cret|s3|cret@/);
});
