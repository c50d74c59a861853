import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { parseArguments } from "../../src/cli/arguments.ts";
import { COMMAND_GROUPS, COMMANDS, OPTIONS } from "../../src/cli/commands.ts";
import { type Options, parseOptions } from "../../src/config/parse-options.ts";
import { UsageError } from "../../src/config/usage-error.ts";
import { cleanUpAfterAll, InProcessCli } from "./cli.ts";

import packageJson from "../../package.json" with { type: "json" };

cleanUpAfterAll();

const cli = new InProcessCli();
const run = (line: string, variables = {}) => cli.run(line === "" ? [] : line.split(" "), variables);

test("the overview is shown for no arguments, --help and help, and has every command in its group", async () => {
  const { out, code } = await run("");
  expect(code).toBe(0);
  for (const line of ["--help", "-h", "help"]) expect(await run(line)).toEqual({ code: 0, out, err: "" });
  for (const { name } of COMMANDS) expect(out).toMatch(new RegExp(`^  ${name}\\b`, "m"));
  for (const group of Object.keys(COMMAND_GROUPS)) expect(out).toMatch(new RegExp(`^${group}$`, "m"));
});

test("the help of a group has its commands, and each option that they share once", async () => {
  const { out, code } = await run("keys --help");
  expect(code).toBe(0);
  for (const line of ["help keys", "--help keys"]) expect(await run(line)).toEqual({ code: 0, out, err: "" });
  for (const { name } of COMMANDS) expect(out.includes(`  ${name} `)).toBe(name.startsWith("keys "));
  for (const flag of ["--env ENV", "--json", "--server URL"]) expect(out.split(`  ${flag} `)).toHaveLength(2);
  expect(out).not.toContain("--overlap");
});

test.each(COMMANDS.map((command) => [command.name, command] as const))(
  "%s --help names every option and fits a terminal",
  async (name, { options }) => {
    const { out, code } = await run(`${name} --help`);
    expect(code).toBe(0);
    for (const flag of Object.keys(options)) expect(out).toContain(`--${flag}`);
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
    expect(await run(`help ${name}`)).toEqual({ code: 0, out, err: "" });
  },
);

test.each(COMMANDS.flatMap(({ examples }) => [...examples]))("the example %s is valid", (example) => {
  const argv = shellWords(example);
  expect(argv.shift()).toBe("petstore");
  const command = COMMANDS.find(({ name }) => `${argv.join(" ")} `.startsWith(`${name} `));
  const { flags, error } = parseArguments(argv, command?.options ?? {});
  expect(error).toBeUndefined();
  expect(Object.keys(flags).filter((flag) => !(flag in (command?.options ?? {})))).toEqual([]);
  expect(parseOptions(command?.options ?? {}, flags, {})).not.toBeInstanceOf(UsageError);
});

test("a flag takes a value in every command that has it, or in none", () => {
  const takesValue = (options: Options, flag: string) => options[flag]?.type.placeholder !== undefined;
  const different = COMMANDS.flatMap(({ name, options }) =>
    Object.keys(options)
      .filter((flag) => takesValue(options, flag) !== takesValue(OPTIONS, flag))
      .map((flag) => `${name} --${flag}`),
  );
  expect(different).toEqual([]);
});

test("help has defaults and bounds, comes before any error, and has no section for options if there are none", async () => {
  const { out } = await run("serve --help");
  expect(out.replaceAll(/\s+/g, " ")).toContain("(0 to 65535; default: 8080, or 8081 in staging)");
  expect(out).toContain("(1s to 30d; default: 5m)");
  for (const line of ["serve --port nonsense --nonsense --help", "serve --port --help"]) {
    expect((await run(line)).code).toBe(0);
  }
  const completion = await run("completion --help");
  expect(completion.out).toContain("Usage\n  petstore completion SHELL\n");
  expect(completion.out).not.toContain("Options\n");
});

test("--version prints the version of the package and of the runtime", async () => {
  const out = `petstore ${packageJson.version} (from source, Bun ${Bun.version})\n`;
  for (const line of ["--version", "version"]) expect(await run(line)).toEqual({ code: 0, out, err: "" });
});

const WHERE = "production (data: DATA)";

test.each([
  ["keys list", `There are no keys in ${WHERE}. Create one: petstore keys create --name NAME --plan free`],
  ["pets list", `There are no pets in ${WHERE}.`],
  ["orders list", `There are no orders in ${WHERE}.`],
  ["audit", `There are no audit entries in ${WHERE}.`],
  ["usage", "There were no requests from 2026-10-17 to 2026-11-15, both included."],
  ["usage --by day", "There were no requests from 2026-10-17 to 2026-11-15, both included."],
])("without a database, %s prints a sentence or an empty array, and makes no files", async (line, text) => {
  const out = `${text.replace("DATA", cli.dataDir)}\n`;
  expect(await run(line)).toEqual({ code: 0, out, err: "" });
  expect(await run(`${line} --json`)).toEqual({ code: 0, out: "[]\n", err: "" });
  expect(existsSync(cli.dataDir)).toBeFalse();
});

test("the earlier name of a setting works, as flag and as variable, and is reported", async () => {
  const url = "https://staging.example.com/v1";
  const current = await run(`openapi --other-environment-url ${url}`);
  const warning = (earlier: string, now: string) =>
    `warning: ${earlier} is now ${now}; ${earlier} works until release 1.2\n`;
  expect((await run(`openapi --twin-url=${url}`)).out).toBe(
    warning("--twin-url", "--other-environment-url") + current.out,
  );
  expect((await run("openapi", { PETSTORE_TWIN_URL: url })).out).toBe(
    warning("PETSTORE_TWIN_URL", "PETSTORE_OTHER_ENVIRONMENT_URL") + current.out,
  );
});

test("openapi prints the document with the URL of this environment, then of the other one if it is given", async () => {
  const other = { PETSTORE_OTHER_ENVIRONMENT_URL: "https://a.example" };
  for (const [line, variables, ...urls] of [
    ["openapi", {}, "http://127.0.0.1:8080/v1"],
    ["openapi --port 0", {}, "http://127.0.0.1:8080/v1"],
    ["openapi --env staging --port 9000", other, "http://127.0.0.1:9000/v1", "https://a.example/v1"],
  ] as const) {
    const { out } = await run(line, variables);
    expect(out).toMatch(/^\{\n {2}"openapi": "3\.1[^]*\}\n$/);
    expect(JSON.parse(out).servers.map(({ url }: { url: string }) => url)).toEqual(urls);
  }
});

test("openapi has the plans and ban rules of a server with the same options, and ignores those of storage", async () => {
  const storage = "--data elsewhere --database-url postgres://h/d --limits-url redis://h";
  expect(await run(`openapi ${storage}`)).toEqual(await run("openapi"));
  const { out } = await run("openapi --free-limits 7/70", { PETSTORE_BAN_LENGTH: "45s" });
  const { headers } = JSON.parse(out).components;
  expect(headers["X-RateLimit-Limit"].example).toBe(7);
  expect(out.includes("Retry after 45 seconds.")).toBe(true);
});

/** A shell for the examples: words, single quotes, comments, redirections. */
function shellWords(line: string): string[] {
  const words = line.replace(/ (?:#|>).*$/, "").match(/'[^']*'|\S+/g) ?? [];
  return words.map((word) => word.replaceAll("'", ""));
}

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
