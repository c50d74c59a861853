import { describe, expect, test } from "bun:test";
import {
  columns,
  definitions,
  formatLimits,
  json,
  JsonItems,
  Screen,
  shortened,
  TableRows,
} from "../../src/cli/output.ts";
import { cleanUpAfterAll, failure, InProcessCli, wrongUsage } from "./cli.ts";
import { createKey, withStores } from "./keys.ts";
import { spawnOnTerminal } from "./terminal.ts";

cleanUpAfterAll();

/** A command line on a terminal, with one key. */
async function cliOnTerminal(width: number): Promise<InProcessCli> {
  const cli = new InProcessCli();
  await createKey(cli, "--name", "x".repeat(60), "--plan", "free");
  cli.isTerminal = true;
  cli.columns = width;
  return cli;
}

const ESCAPE = "\u001b";

test.each([
  ["keys list", true, {}, true],
  ["keys list", false, {}, false],
  ["keys list", true, { NO_COLOR: "1" }, false],
  ["keys list", true, { NO_COLOR: "" }, true],
  ["keys list", true, { TERM: "dumb" }, false],
  ["keys list --color never", true, {}, false],
  ["--color=always keys list", false, { NO_COLOR: "1" }, true],
  ["keys list --color auto", false, {}, false],
  ["--help", true, {}, true],
  ["keys list --json", true, {}, false],
])("%s: terminal %p, variables %p, color %p", async (line, isTerminal, variables, hasColor) => {
  const cli = await cliOnTerminal(200);
  cli.isTerminal = isTerminal;
  expect((await cli.run(line, variables)).out.includes(ESCAPE)).toBe(hasColor);
});

test.each([40, 60, 80, 120, 200])("a table fits a terminal of %d columns", async (width) => {
  const cli = await cliOnTerminal(width);
  for (const line of ["keys list", "audit"]) {
    const { out } = await cli.run(line);
    const [header = "", row = ""] = Bun.stripANSI(out).split("\n");
    expect(Math.max(header.length, row.length)).toBeLessThanOrEqual(width);
  }
});

test("what does not fit is named, and a pipe gets everything", async () => {
  const cli = await cliOnTerminal(60);
  expect(await cli.out("keys list")).toContain(
    "The terminal is too narrow for STRIKES, CREATED; --json shows everything.\n",
  );
  cli.isTerminal = false;
  expect(await cli.out("keys list")).toMatch(/^ID +NAME .* CREATED\n1 +x{39}… /);
});

test("wide characters count twice, and a cell is shortened between them", () => {
  const screen = new Screen({ columns: 20, hasColor: false, now: () => 0 });
  const rows = [
    ["ID", "NAME"],
    ["1", "日本".repeat(10)],
  ];
  expect(columns(rows, { screen })).toBe(`ID  NAME\n1   ${"日本".repeat(3)}日…\n`);
});

/** A screen at 60 s after the epoch. */
const screenOf = (columns: number | undefined) => new Screen({ columns, hasColor: false, now: () => 60_000 });

test.each([
  [
    59,
    `ID  NAME                   OWNER  COUNT  LABELS OF IT
1   a name of some length  -          5  eu, web
12  b                      -      1,000  another text, long
`,
  ],
  [
    58,
    `ID  NAME                   COUNT  LABELS OF IT
1   a name of some length      5  eu, web
12  b                      1,000  another text, long
`,
  ],
  [
    51,
    `ID  NAME                  COUNT  LABELS OF IT
1   a name of some leng…      5  eu, web
12  b                     1,000  another text, long
`,
  ],
  [
    37,
    `ID  NAME          COUNT  LABELS OF IT
1   a name of s…      5  eu, web
12  b             1,000  another tex…
`,
  ],
  [
    36,
    `ID  NAME                   COUNT
1   a name of some length      5
12  b                      1,000
The terminal is too narrow for LABELS OF IT; --json shows everything.
`,
  ],
  [
    3,
    `ID
1
12
The terminal is too narrow for NAME, COUNT, LABELS OF IT; --json shows everything.
`,
  ],
])(
  "on %d columns, a table loses columns without a value, then length, then its last columns",
  (width, text) => {
    const rows = [
      ["ID", "NAME", "OWNER", "COUNT", "LABELS OF IT"],
      ["1", "a name of some length", "-", "5", "eu, web"],
      ["12", "b", "-", "1,000", "another text, long"],
    ];
    expect(columns(rows, { screen: screenOf(width), numbers: [3] })).toBe(text);
  },
);

test("long lists are printed a thousand lines at a time, and pages of JSON are one array", () => {
  const table = new TableRows<number>([["N", String]], screenOf(undefined));
  expect(table.isEmpty).toBeTrue();
  table.add(Array.from({ length: 2_500 }, (_, n) => n));
  const texts = [...table.texts()];
  expect(texts.map((text) => text.split("\n").length - 1)).toEqual([1_000, 1_000, 501]);
  expect(texts.join("")).toBe(["N", ...Array.from({ length: 2_500 }, (_, n) => n), ""].join("\n"));
  const textOf = (...pages: readonly (readonly number[])[]) => {
    const array = new JsonItems();
    return pages.map((page) => array.textOf(page)).join("") + array.end();
  };
  expect(textOf([], [1], [], [2, 3])).toBe("[\n  1,\n  2,\n  3\n]\n");
  expect(textOf([])).toBe("[]\n");
});

test("a name of the greatest length is whole, and one request is no plural", () => {
  expect(shortened("x".repeat(40), 40)).toBe("x".repeat(40));
  expect(shortened("x".repeat(41), 40)).toBe(`${"x".repeat(39)}…`);
  expect([1, 2].map((perMinute) => formatLimits({ perMinute, perDay: 1_000 }))).toEqual([
    "1 request per minute, 1,000 per day",
    "2 requests per minute, 1,000 per day",
  ]);
});

test("a description is wrapped next to its term", () => {
  expect(
    definitions(
      [
        ["a", "one two three four five six seven"],
        ["long term", "x"],
      ],
      24,
    ),
  ).toBe("a          one two three\n           four five six\n           seven\nlong term  x\n");
  expect(definitions([["a long term", "one two three"]], 5)).toBe(
    "a long term  one two\n             three\n",
  );
});

test.each([
  ["1970-01-01T00:01:00.000Z", ["0 s ago", "0 s ago", "for another 0 s", "0 s ago"]],
  ["1970-01-01T00:01:00.001Z", ["in 0 s", "in 0 s", "for another 0 s", "in 0 s"]],
  ["1970-01-01T00:02:00.000Z", ["in 1 min", "in 1 min", "for another 1 min", "in 1 min"]],
  ["1970-01-01T00:00:00.000Z", ["1 min ago", "1 min ago", "for another 0 s", "1 min ago"]],
])("at 00:01:00 on a terminal, %s is %p", (time, texts) => {
  const screen = screenOf(80);
  expect([screen.time(time), screen.at(time), screen.until(time), screen.shortTime(time)]).toEqual(texts);
  const pipe = screenOf(undefined);
  expect([
    pipe.time(time),
    pipe.at(time),
    pipe.until(time),
    pipe.shortTime(time),
    pipe.shortTime(null),
  ]).toEqual([time, `at ${time}`, `until ${time}`, time.replace(/\.\d+/, ""), "-"]);
});

test("times are relative on a terminal and RFC 3339 elsewhere", async () => {
  const cli = await cliOnTerminal(200);
  cli.clock.advance(5 * 60_000);
  const created = async () => /Created +(.*)/.exec(await cli.out("keys show 1"))?.[1];
  expect(await created()).toBe("5 min ago");
  expect(await cli.out("audit")).toContain("\n5 min ago  key.created");
  expect(await cli.out("keys rotate 1 --overlap 3h")).toContain("stay valid for another 3 h.");
  cli.isTerminal = false;
  expect(await created()).toBe("2026-11-15T12:00:00.000Z");
});

describe("questions", () => {
  async function cliWithPet(): Promise<InProcessCli> {
    const cli = await cliOnTerminal(200);
    await withStores(cli, async ({ clientStore }) => {
      for (const name of ["Rex", "Tom"])
        await clientStore.createPet({ name, categoryId: 1n }, cli.clock.now());
      await clientStore.placeOrder({ keyId: 1, petId: 2n }, cli.clock.now());
    });
    return cli;
  }

  test.each([
    ["keys revoke 1", /^Revoke key 1 "x+" permanently\?$/],
    ["pets delete 1", /^Delete pet 1 "Rex" permanently\?$/],
    ["orders update 1 cancelled", /^Change order 1 for pet 2 from placed to cancelled\?$/],
  ])("%s", async (line, question) => {
    const cli = await cliWithPet();
    cli.answer = false;
    expect(await cli.run(line)).toEqual(failure("not confirmed; nothing was changed"));
    expect(cli.questions).toEqual([expect.stringMatching(question)]);
    expect(await cli.json("audit")).toHaveLength(1);
    expect((await cli.run(`${line} --yes`)).code).toBe(0);
    expect(cli.questions).toHaveLength(1);
  });

  test("a terminal is asked, and everything but y and yes means no", async () => {
    for (const [answer, code] of [
      ["\r", 1],
      ["Yes\r", 0],
    ] as const) {
      const cli = new InProcessCli();
      await createKey(cli);
      const { child, until } = spawnOnTerminal(["keys", "revoke", "1", "--data", cli.dataDir]);
      await until('Revoke key 1 "app" permanently? [y/N] ');
      child.terminal?.write(answer);
      expect(await child.exited).toBe(code);
    }
  });
});

const NAME = "red \u001b[31m, \u009b31m, \u007f, \u202eright to left, \u{e0001}";

test("JSON and an export to a terminal have control characters escaped, and a pipe gets them as they are", async () => {
  const text = json({ name: NAME });
  expect(text).toMatch(/^[\n\x20-\x7e]*$/);
  expect(JSON.parse(text)).toEqual({ name: NAME });

  const cli = await cliOnTerminal(200);
  await withStores(cli, ({ clientStore }) =>
    clientStore.createPet({ name: NAME, categoryId: 1n }, cli.clock.now()),
  );
  for (const line of ["export pets", "export pets --format csv", "pets list --json", "pets show 1"]) {
    const { out, code } = await cli.run(line);
    expect({ line, code, out }).toEqual({ line, code: 0, out: expect.stringMatching(/^[\n\x20-\x7e]*$/) });
  }
  expect(await cli.run("export pets --gzip")).toEqual(
    wrongUsage("--gzip needs FILE or a pipe: a terminal shows no compressed data"),
  );
  cli.isTerminal = false;
  expect(await cli.out("export pets --format csv")).toContain(NAME);
});
