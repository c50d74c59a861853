import { expect, test } from "bun:test";
import { COMMANDS } from "../../src/cli/commands.ts";
import { cleanUpAfterAll, InProcessCli } from "./cli.ts";

cleanUpAfterAll();

const cli = new InProcessCli();

/** What is offered for the last word of a line. */
async function offered(line: string): Promise<string[]> {
  const { code, out } = await cli.run(["__complete", ...line.split(" ").slice(1)]);
  expect(code).toBe(0);
  return out
    .split("\n")
    .filter((each) => each !== "")
    .map((each) => each.split("\t")[0] ?? "");
}

const KEYS = COMMANDS.flatMap(({ name }) => (name.startsWith("keys ") ? name.slice(5) : []));

test.each<[line: string, words: readonly string[]]>([
  ["petstore ser", ["serve", "servers"]],
  ["petstore keys ", KEYS],
  ["petstore help keys cr", ["create"]],
  ["petstore keys create --plan", ["--plan"]],
  ["petstore keys create --plan ", ["free", "pro", "business", "enterprise"]],
  ["petstore keys create --json --plan b", ["business"]],
  ["petstore --env staging keys li", ["list"]],
  ["petstore keys set-plan 7 p", ["pro"]],
  ["petstore completion ", ["bash", "zsh", "fish"]],
  ["petstore orders list --status pl", ["placed"]],
  ["petstore pets list --status a", ["available"]],
  ["petstore serve --tls-cert ce", [":files"]],
  ["petstore serve --data ce", [":directories"]],
  ["petstore serve --port ", []],
  ["petstore frobnicate ", []],
])("%p", async (line, words) => {
  expect(await offered(line)).toEqual([...words]);
});

test("the first word is every command and group", async () => {
  const firstWords = new Set(COMMANDS.map(({ name }) => name.split(" ")[0] ?? ""));
  expect(await offered("petstore ")).toEqual([...firstWords, "help", "--version"]);
});

test("every option of every command is offered, with its help", async () => {
  for (const { name, options } of COMMANDS) {
    const { out } = await cli.run(["__complete", ...name.split(" "), "--"]);
    const lines = Object.entries(options).map(([flag, { help }]) => `--${flag}\t${help}\n`);
    expect(out).toBe(`${lines.join("")}--help\tShow how to use the command\n`);
  }
});
