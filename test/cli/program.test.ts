import { afterAll, describe, expect, test } from "bun:test";
import { parseArguments } from "../../src/cli/arguments.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { OPTIONS } from "../../src/config.ts";
import { readOptions } from "../../src/config/option.ts";
import { Problem } from "../../src/config/problem.ts";
import packageJson from "../../package.json" with { type: "json" };
import { cleanUp, Workbench } from "./workbench.ts";

afterAll(cleanUp);

const bench = new Workbench();
const run = (line: string, variables = {}) => bench.run(line === "" ? [] : line.split(" "), variables);

describe("help", () => {
  test("the overview is shown for nothing, --help, help and a group", async () => {
    const { out, code } = await run("");
    expect(code).toBe(0);
    for (const line of ["--help", "-h", "help", "keys --help", "help keys", "--help keys"]) {
      expect(await run(line)).toEqual({ code: 0, out, err: "" });
    }
    for (const { name, summary } of COMMANDS) {
      expect(out).toMatch(new RegExp(`^  ${name}.*  ${summary}$`, "m"));
    }
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

  test.each(COMMANDS.flatMap(({ examples }) => [...examples]))("the example %s is understood", (example) => {
    const argv = shellWords(example);
    expect(argv.shift()).toBe("petstore");
    const { words, given, problem } = parseArguments(argv, OPTIONS);
    expect(problem).toBeUndefined();
    const command = COMMANDS.find(({ name }) => words.join(" ").startsWith(name));
    expect(Object.keys(given).filter((flag) => !(flag in (command?.options ?? {})))).toEqual([]);
    expect(readOptions(OPTIONS, given, {})).not.toBeInstanceOf(Problem);
  });

  test("defaults and bounds are visible", async () => {
    const { out } = await run("serve --help");
    expect(out.replaceAll(/\s+/g, " ")).toContain("(0 to 65535; default 8080, or 8081 in staging)");
    expect(out).toContain("(1s to 30d; default 5m)");
  });

  test("--help wins over anything that is wrong", async () => {
    expect((await run("serve --port nonsense --nonsense --help")).code).toBe(0);
  });

  test("--version tells the package's version", async () => {
    expect(await run("--version")).toEqual({ code: 0, out: `petstore ${packageJson.version}\n`, err: "" });
  });
});

describe("wrongly asked", () => {
  test.each([
    ["serv", 'unknown command "serv"; did you mean serve?'],
    ["frobnicate now", 'unknown command "frobnicate"; see petstore --help'],
    ["help frobnicate", 'unknown command "frobnicate"; see petstore --help'],
    ["keys", "keys needs one of create, list, show, revoke, roll, set-plan or unban"],
    ["keys craete --name x", 'unknown command "keys craete"; did you mean keys create?'],
    ["key list", 'unknown command "key list"; did you mean keys list?'],
    ["--port 1", "no command is given; see petstore --help"],
    ["--prot 1 serve", 'unknown flag "--prot"; did you mean --port?'],
    ["serve now", 'serve does not know what to do with "now"; see petstore serve --help'],
    ["serve --prot 1", 'unknown flag "--prot"; did you mean --port?'],
    ["keys list --nmae x", 'unknown flag "--nmae"; see --help'],
    ["keys list --port 1", "keys list takes no --port; see petstore keys list --help"],
    ["serve --port", "--port needs a value: a whole number from 0 to 65535"],
    ["serve --port=99999", '--port is "99999"; it should be a whole number from 0 to 65535'],
    ["serve --env test", '--env is "test"; it should be production or staging'],
    [
      "keys create --plan free",
      "keys create needs --name (or PETSTORE_NAME): 1 to 100 characters on one line, not all of them blank",
    ],
    [
      "keys create --name x",
      "keys create needs --plan (or PETSTORE_PLAN): free, pro, business or enterprise",
    ],
    ["keys create --name x --plan gold", '--plan is "gold"; it should be free, pro, business or enterprise'],
    [
      "keys create --name x --plan pro --per-day 5",
      "--per-day is for the enterprise plan only, and the plan is pro",
    ],
    [
      "keys create --name x --plan enterprise",
      "the enterprise plan needs --per-minute: its numbers are each key's own",
    ],
    [
      "keys create --name x --plan enterprise --per-minute 5",
      "the enterprise plan needs --per-day: its numbers are each key's own",
    ],
    ["keys set-plan 1", "keys set-plan needs PLAN: free, pro, business or enterprise"],
    ["keys set-plan 1 gold", 'PLAN is "gold"; it should be free, pro, business or enterprise'],
    ["keys set-plan 1 pro --per-day 5", "--per-day is for the enterprise plan only, and the plan is pro"],
    ["keys show", "keys show needs ID: the number of a key, as petstore keys list shows it"],
    ["keys revoke 0", 'ID is "0"; it should be the number of a key, as petstore keys list shows it'],
    ["keys unban 1 2", 'keys unban does not know what to do with "2"; see petstore keys unban --help'],
    [
      "keys roll 1 --overlap 31d",
      '--overlap is "31d"; it should be a time from 0 to 30d, such as 25ms, 500ms, 90s, 15m, 24h or 30d',
    ],
  ])("%s", async (line, err) => {
    expect(await run(line)).toEqual({ code: 2, out: "", err });
  });

  test("a wrong variable is named as such", async () => {
    expect((await run("keys list", { PETSTORE_JSON: "maybe" })).err).toBe(
      'PETSTORE_JSON is "maybe"; it should be true or false',
    );
    expect((await run("keys create --name x --plan free", { PETSTORE_PER_DAY: "5" })).err).toBe(
      "PETSTORE_PER_DAY is for the enterprise plan only, and the plan is free",
    );
  });

  test("a variable of another command is not looked at", async () => {
    expect((await run("keys list", { PETSTORE_PORT: "nonsense" })).code).toBe(0);
  });

  test("a secret given in place of a number is not repeated", async () => {
    const { code, err } = await run("keys show pet_live_0123456789abcdefghijklmnopqrstuvwxyz");
    expect({ code, err }).toEqual({
      code: 2,
      err: 'ID is "pet_live_…"; it should be the number of a key, as petstore keys list shows it',
    });
  });
});

const urls = async (line: string, variables = {}) => {
  const document: { servers: { url: string }[] } = JSON.parse((await run(line, variables)).out);
  return document.servers.map(({ url }) => url);
};

describe("openapi", () => {
  test("prints the document with both addresses, this environment's first", async () => {
    expect(await urls("openapi")).toEqual(["http://127.0.0.1:8080/v1", "http://127.0.0.1:8081/v1"]);
    expect(
      await urls("openapi --env staging --port 9000", { PETSTORE_TWIN_URL: "https://a.example" }),
    ).toEqual(["http://127.0.0.1:9000/v1", "https://a.example/v1"]);
  });

  test("takes the flags that say where everything is, as every other command does", async () => {
    const engines = "--data elsewhere --database-url postgres://h/d --limits-url redis://h";
    expect(await run(`openapi ${engines}`)).toEqual(await run("openapi"));
  });

  test("a port that is found at the start is not in the document", async () => {
    expect(await urls("openapi --port 0")).toEqual(await urls("openapi"));
  });

  test("is indented and ends its last line", async () => {
    const { out } = await run("openapi");
    expect(out).toStartWith('{\n  "openapi": "3.1');
    expect(out).toEndWith("}\n");
  });
});

/** Enough of a shell for our own examples: words, single quotes, comments. */
function shellWords(line: string): string[] {
  const words = line.replace(/ (?:#|>).*$/, "").match(/'[^']*'|\S+/g) ?? [];
  return words.map((word) => word.replaceAll("'", ""));
}
