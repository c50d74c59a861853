import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cleanUpAfterAll, cliDirectory, InProcessCli, wrongUsage } from "./cli.ts";

cleanUpAfterAll();

const path = join(cliDirectory(), "petstore.yaml");

function apply(text: string, cli = new InProcessCli()) {
  writeFileSync(path, text);
  return cli.run(["apply", path]);
}

const INVALID: Readonly<Record<string, readonly [text: string, ...problems: string[]]>> = {
  "unknown names": [
    "plan: {}\nplans:\n  fre: { perMinute: 1 }\nkeys:\n  - { id: a, name: a, plan: free, limit: 1 }\n",
    "line 1: plan is unknown; did you mean plans?",
    "line 3: plans.fre is unknown; did you mean free?",
    "line 5: keys[0].limit is unknown; did you mean limits?",
  ],
  values: [
    "plans:\n  pro:\n    perMinute: 0\nkeys:\n  - id: Mobile\n    plan: gold\n    labels: [1]\n",
    "line 3: plans.pro.perMinute must be an integer from 1 to 1,000,000,000",
    "line 5: keys[0].id must be a name of your choice",
    "line 5: keys[0].name is required",
    'line 6: keys[0].plan must be one of "free"',
    "line 7: keys[0].labels[0] must be",
  ],
  "a name that is there twice": [
    "keys:\n  - { id: a, name: a, plan: free }\n  - { id: a, name: b, plan: free }\n",
    "line 3: keys[1].id is there twice: a",
  ],
  "a field that is there twice": ["plans: {}\nplans: {}\n", "line 2: Map keys must be unique"],
  "fields that are there twice, within": [
    "plans: {}\nkeys:\n  - { id: a, id: b, 1: x, '1': y }\n  - { id: a }\n  -\n    name: a\n    name: a\n",
    "line 3: Map keys must be unique",
    "line 3: Map keys must be unique",
    "line 7: Map keys must be unique",
  ],
  "no YAML": ["a: [1\nb: 2\n", "line 2: "],
  nothing: ["", "line 1: the file must have plans, banRules, operators or keys"],
  "only a line break": ["\n", "line 1: the file must have plans, banRules, operators or keys"],
  "numbers that identify no key": [
    "keys:\n  - { id: 0, name: a, plan: free }\n  - { id: 1.5, name: a, plan: free }\n",
    "line 2: keys[0].id must be a name of your choice",
    "line 3: keys[1].id must be a name of your choice",
  ],
  "sections in another order": [
    "keys: 5\nplans: 5\n",
    "line 1: keys must be a list",
    "line 2: plans must have free, pro, business or anonymous",
  ],
  "unknown names within": [
    "keys:\n  - id: a\n    name: a\n    plan: free\n    limits:\n      perMinut: 1\n",
    "line 5: keys[0].limits.perMinute is required",
    "line 5: keys[0].limits.perDay is required",
    "line 6: keys[0].limits.perMinut is unknown; did you mean perMinute?",
  ],
  "a list that another one repeats": [
    "keys:\n  - { id: a, name: a, plan: free, labels: &l [1] }\n  - { id: b, name: b, plan: free, labels: *l }\n",
    "line 2: keys[0].labels[0] must be a string",
    "line 3: keys[1].labels[0] must be a string",
  ],
  "as many aliases as there may be": [
    `a: &a 1\nb: [${"*a,".repeat(99)}]\n`,
    "line 1: a is unknown",
    "line 2: b is unknown",
  ],
  "one alias more": [`a: &a 1\nb: [${"*a,".repeat(100)}]\n`, "the file has too many aliases"],
  "a list that is none": ["keys: 5\n", "line 1: keys must be a list"],
  "rules of operations": [
    "banRules: { lengthMs: 600000, maxLengthMs: 400000 }\noperators:\n  - { name: bob, role: viewer, expiresAt: 2020-01-01T00:00:00Z }\nkeys:\n  - { id: 99, name: a, plan: free }\n  - { id: z, name: y, plan: enterprise }\n  - { id: y, name: y, plan: free, labels: ['a,b'] }\n",
    "line 1: banRules.maxLengthMs must be at least lengthMs, which is 600000",
    "line 3: operators[0].expiresAt must be in the future",
    "line 5: keys[0].id names no key",
    "line 6: keys[1].limits must be given for the enterprise plan",
    "line 7: keys[2].labels must be",
  ],
  "many aliases": [
    `a: &a [x]\n${["b", "c", "d", "e"].map((name, n) => `${name}: &${name} [${`*${"abcd"[n]},`.repeat(9)}]\n`).join("")}`,
    "the file has too many aliases",
  ],
};

test.each(Object.entries(INVALID))(
  "%s: every problem with its line, and nothing changes",
  async (_, [text, ...problems]) => {
    const cli = new InProcessCli();
    const { code, out, err } = await apply(text, cli);
    expect(code).toBe(1);
    const lines = out.trimEnd().split("\n");
    expect(lines).toHaveLength(problems.length);
    for (const [index, problem] of problems.entries())
      expect(lines[index]).toStartWith(`warning: ${problem}`);
    const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
    expect(err).toBe(`${count} in "${path}"; nothing was changed`);
    if (existsSync(cli.dataDir)) expect(await cli.json<unknown>("keys list")).toEqual([]);
  },
);

test("of many problems the first 50 are shown", async () => {
  const linesOf = async (count: number) => {
    const { out } = await apply(Array.from({ length: count }, (_, n) => `a${n}: 1\n`).join(""));
    return out.trimEnd().split("\n");
  };
  const fifty = await linesOf(50);
  expect(fifty).toHaveLength(50);
  expect(await linesOf(51)).toEqual([...fifty, "warning: and 1 more"]);
});

// When each name was compared with all others, this took two minutes.
test("a file of 60,000 unknown fields is read once", async () => {
  const { out, err } = await apply(Array.from({ length: 60_000 }, (_, n) => `a${n}: 1\n`).join(""));
  expect(err).toBe(`60,000 problems in "${path}"; nothing was changed`);
  expect(out).toEndWith("\nwarning: and 59950 more\n");
});

test("a problem of YAML is one line", async () => {
  expect(await apply("plans: {}\nplans: {}\n")).toEqual({
    code: 1,
    out: "warning: line 2: Map keys must be unique\n",
    err: `1 problem in "${path}"; nothing was changed`,
  });
});

test("what has more than 16 MB is no file for apply, and characters may come in parts", async () => {
  const cli = new InProcessCli();
  const most = "#".repeat(16 * 1_024 * 1_024);
  expect((await apply(most)).code).toBe(1);
  const tooLong = (name: string) => wrongUsage(`FILE is "${name}"; it has more than 16777216 characters`);
  expect(await apply(`${most}#`)).toEqual(tooLong(path));
  cli.input = `${most}#`;
  expect(await cli.run("apply -")).toEqual(tooLong("-"));
  const bytes = Buffer.from("keys: [{ id: a, name: Zoë, plan: free }]");
  async function* readInput() {
    for (const byte of bytes) yield Uint8Array.of(byte);
  }
  expect((await cli.run("apply -", {}, { readInput })).out).toContain("\n+name: Zoë\n");
});
