import { describe, expect, test } from "bun:test";
import { columns, json, Screen } from "../../src/cli/output.ts";
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
