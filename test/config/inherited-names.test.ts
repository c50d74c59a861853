import { expect, test } from "bun:test";
import { readQuery } from "../../src/api/dispatch.ts";
import { Invalid } from "../../src/api/schema.ts";
import { COMMANDS } from "../../src/cli/command-table.ts";
import { complete } from "../../src/cli/completion.ts";
import type { Option } from "../../src/config/parse-options.ts";
import { formatValue, trueOrFalse } from "../../src/config/value-types.ts";
import { changedFields } from "../../src/domain/audit.ts";
import { ADMIN_OPERATIONS } from "../../src/operator/operations.ts";
import { OPERATIONS } from "../../src/petstore/operations.ts";
import { InProcessCli } from "../cli/cli.ts";

/** What every object inherits: text from outside may be such a name, and must not find it. */
const NAMES = Object.getOwnPropertyNames(Object.prototype);

test.each(NAMES)("a switch is not turned on by %s", (name) => {
  expect(trueOrFalse.parse(name)).toBeUndefined();
});

test.each(NAMES)("the value %s of any option or argument is rejected, or means itself", (name) => {
  for (const { options, positionals } of COMMANDS) {
    const types = [...Object.values<Option>(options).map(({ type }) => type), ...Object.values(positionals)];
    for (const type of types) {
      const value = type.parse(name);
      if (value !== undefined) expect(formatValue(type, value).toLowerCase()).toContain(name.toLowerCase());
    }
  }
});

test.each(NAMES)("%s is no command, no subcommand and no flag, and completes to nothing", async (name) => {
  const cli = new InProcessCli();
  for (const line of [name, `keys ${name}`, `help ${name}`, `serve --${name}`, `keys list --${name}=true`])
    expect(await cli.run(line)).toMatchObject({ code: 2, err: expect.stringMatching(/^unknown |^keys has/) });
  for (const words of [
    [`--${name}`, ""],
    ["keys", "list", `--${name}`, ""],
    [name, ""],
    ["keys", name, ""],
  ])
    expect(complete(words, COMMANDS)).not.toContain(name);
});

test.each(NAMES)("%s is no query parameter, and no value of one that has choices", (name) => {
  const rows = [...Object.values(ADMIN_OPERATIONS), ...Object.values(OPERATIONS)];
  for (const query of rows.flatMap((row) => ("query" in row ? row.query : []))) {
    expect(readQuery(`${name}=1`, query)).toEqual({});
    for (const schema of Object.values(query))
      if (schema.json["enum"]) expect(schema.read(name)).toBeInstanceOf(Invalid);
  }
});

test.each(NAMES)("a field %s of the audit trail has the values that it was given", (name) => {
  const values = Object.fromEntries([[name, "new"]]);
  expect(changedFields(null, values)).toEqual([{ name, before: undefined, after: "new" }]);
  expect(changedFields(values, {})).toEqual([{ name, before: "new", after: undefined }]);
});
