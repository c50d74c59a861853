import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArguments } from "../../src/cli/arguments.ts";
import { COMMAND_GROUPS, COMMANDS, OPTIONS } from "../../src/cli/commands.ts";
import { type Options, parseOptions } from "../../src/config/parse-options.ts";
import { UsageError } from "../../src/config/usage-error.ts";
import { cleanUp, InProcessCli, temporaryDirectory } from "./cli.ts";

import packageJson from "../../package.json" with { type: "json" };

afterAll(cleanUp);

const cli = new InProcessCli();
const run = (line: string, variables = {}) => cli.run(line === "" ? [] : line.split(" "), variables);

describe("help", () => {
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
    for (const line of ["help keys", "--help keys"])
      expect(await run(line)).toEqual({ code: 0, out, err: "" });
    for (const { name } of COMMANDS) expect(out.includes(`  ${name} `)).toBe(name.startsWith("keys "));
    for (const flag of ["--env ENV", "--json", "--server URL"])
      expect(out.split(`  ${flag} `)).toHaveLength(2);
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

  test("defaults and bounds are visible", async () => {
    const { out } = await run("serve --help");
    expect(out.replaceAll(/\s+/g, " ")).toContain("(0 to 65535; default: 8080, or 8081 in staging)");
    expect(out).toContain("(1s to 30d; default: 5m)");
  });

  test("--help comes before any error", async () => {
    for (const line of ["serve --port nonsense --nonsense --help", "serve --port --help"]) {
      expect((await run(line)).code).toBe(0);
    }
  });

  test("--version prints the version of the package and of the runtime", async () => {
    const out = `petstore ${packageJson.version} (from source, Bun ${Bun.version})\n`;
    for (const line of ["--version", "version"]) expect(await run(line)).toEqual({ code: 0, out, err: "" });
  });

  test("a command without options has no section for them", async () => {
    const { out } = await run("completion --help");
    expect(out).toContain("Usage\n  petstore completion SHELL\n");
    expect(out).not.toContain("Options\n");
  });
});

describe("wrong usage", () => {
  test.each([
    ["serv", 'unknown command "serv"; did you mean serve?'],
    ["frobnicate now", 'unknown command "frobnicate"; see petstore --help'],
    ["help frobnicate", 'unknown command "frobnicate"; see petstore --help'],
    [
      "keys",
      "keys needs a subcommand: create, list, show, find, update, set-plan, rotate, disable, enable, revoke or unban",
    ],
    ["keys craete --name x", 'unknown command "keys craete"; did you mean keys create?'],
    ["key list", 'unknown command "key list"; did you mean keys list?'],
    ["key delete", 'unknown command "key delete"; did you mean keys?'],
    ["pet delte 1", 'unknown command "pet delte"; did you mean pets delete?'],
    ["orders delete 1", 'unknown command "orders delete"; orders has list, show and update'],
    ["--port 1", "no command given; see petstore --help"],
    ["--prot 1 serve", 'unknown flag "--prot"; did you mean --port?'],
    ["serve now", 'unexpected argument "now"; see petstore serve --help'],
    ["serve --prot 1", 'unknown flag "--prot"; did you mean --port?'],
    ["keys list --nmae x", 'unknown flag "--nmae"; see --help'],
    ["keys list --port 1", "keys list has no flag --port; did you mean --sort?"],
    ["serve --port", "--port needs a value: an integer from 0 to 65535"],
    ["serve --port=99999", '--port is "99999"; it must be an integer from 0 to 65535'],
    ["serve --env test", '--env is "test"; it must be production or staging'],
    [
      "keys create --plan free",
      "keys create needs --name: a string of 1 to 100 characters on one line that is not blank",
    ],
    ["keys create --name x", "keys create needs --plan: free, pro, business or enterprise"],
    ["keys create --name x --plan gold", '--plan is "gold"; it must be free, pro, business or enterprise'],
    [
      "keys create --name x --plan pro --per-day 5",
      "--per-minute is required and must be an integer from 1 to 1,000,000,000",
    ],
    [
      "keys create --name x --plan pro --per-minute 5 --per-day 5",
      "--per-minute and --per-day must be given for the enterprise plan only; the plan is pro",
    ],
    [
      "keys create --name x --plan enterprise",
      "--per-minute and --per-day must be given for the enterprise plan: each key has its own limits",
    ],
    [
      "keys create --name x --plan enterprise --per-minute 5",
      "--per-day is required and must be an integer from 1 to 1,000,000,000",
    ],
    ["keys set-plan 1", "keys set-plan needs PLAN: free, pro, business or enterprise"],
    ["keys set-plan 1 gold", 'PLAN is "gold"; it must be free, pro, business or enterprise'],
    ["keys show", "keys show needs ID: the ID of a key, as petstore keys list shows it"],
    ["keys revoke x", 'ID is "x"; it must be the ID of a key, as petstore keys list shows it'],
    ["keys unban 1 2", 'unexpected argument "2"; see petstore keys unban --help'],
    [
      "keys create --name x --plan free --expires 3651d",
      '--expires is "3651d"; it must be never, or a duration from 1s to 3650d, such as 90s, 15m, 24h, 30d or 365d',
    ],
    [
      "keys rotate 1 --overlap 31d",
      '--overlap is "31d"; it must be a duration from 0 to 30d, such as 25ms, 500ms, 90s, 15m, 24h or 30d',
    ],
  ])("%s", async (line, err) => {
    expect(await run(line)).toEqual({ code: 2, out: "", err });
  });

  test("a wrong variable is reported by its name", async () => {
    expect((await run("keys list", { PETSTORE_ENV: "test" })).err).toBe(
      'PETSTORE_ENV is "test"; it must be production or staging',
    );
  });

  test.each(["json", "status", "replace", "csv", "yes", "to"])("--%s has no variable", async (flag) => {
    const name = `PETSTORE_${flag.toUpperCase()}`;
    const path = join(temporaryDirectory(), "production.env");
    writeFileSync(path, `${name}=true\n`);
    const problem = `is not a setting of a server; use --${flag}`;
    for (const command of ["pets update 1", "restore .", "keys list", "serve"]) {
      expect(await run(command, { [name]: "true" })).toMatchObject({ code: 2, err: `${name} ${problem}` });
      expect(await run(`${command} --env-file ${path}`)).toMatchObject({
        code: 2,
        err: `${name} in "${path}" ${problem}`,
      });
    }
  });

  test.each([
    ["PETSTORE_PROT", 'unknown variable "PETSTORE_PROT"; did you mean PETSTORE_PORT?'],
    ["PETSTORE_FREE_LIMIT", 'unknown variable "PETSTORE_FREE_LIMIT"; did you mean PETSTORE_FREE_LIMITS?'],
    ["PETSTORE_FROBNICATE", 'unknown variable "PETSTORE_FROBNICATE"; see petstore serve --help'],
  ])("an unknown variable is an error in every command: %s", async (name, err) => {
    for (const { name: command } of COMMANDS) {
      expect(await run(command, { [name]: "1" })).toMatchObject({ code: 2, err });
    }
    expect((await run("serve --help", { [name]: "1" })).code).toBe(0);
  });

  test("a variable of another command is ignored", async () => {
    expect((await run("keys list", { PETSTORE_PORT: "nonsense" })).code).toBe(0);
  });

  test.each([
    ["serve postgres://user:s3cret@db.example/pets", 'unexpected argument "postgres://…@db.example/pets"'],
    ["postgres://user:s3cret@db.example/pets", 'unknown command "postgres://…@db.example/pets"'],
    ["serve --limits-ulr=redis://:s3cret@h", 'unknown flag "--limits-ulr"; did you mean --limits-url?'],
    [
      "serve --data postgres://user:s3cret@h/d",
      '--data is "postgres://…@h/d"; it must be the path of a directory',
    ],
    [
      "serve --env-file redis://:s3cret@h",
      '--env-file is "redis://…@h"; it cannot be read: the file does not exist',
    ],
    ["serve --public-url https://user:s3cret@h", '--public-url is "https://…@h"; '],
    ["serve --port postgres://user:s3cret@with@at/d", '--port is "postgres://…@at/d"; '],
    ["serve postgres://h/d?user=u&password=s3cret", 'unexpected argument "postgres://h/d?user=u&password=…"'],
    ["keys list --database-url postgres://user:s3cret@h:port/d", "--database-url is not valid; "],
  ])("a password is not repeated: %s", async (line, start) => {
    const { code, out, err } = await run(line);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toStartWith(start);
    expect(err).not.toContain("s3cret");
  });

  test("a secret given instead of an ID is masked", async () => {
    const { code, err } = await run("keys show pet_live_0123456789abcdefghijklmnopqrstuvwxyz");
    expect({ code, err }).toEqual({
      code: 2,
      err: 'ID is "pet_live_…"; it must be the ID of a key, as petstore keys list shows it',
    });
  });
});

const urls = async (line: string, variables = {}) => {
  const document: { servers: { url: string }[] } = JSON.parse((await run(line, variables)).out);
  return document.servers.map(({ url }) => url);
};

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

describe("openapi", () => {
  test("prints the document with the URL of this environment, then of the other one if it is given", async () => {
    for (const line of ["openapi", "openapi --port 0"])
      expect(await urls(line)).toEqual(["http://127.0.0.1:8080/v1"]);
    expect((await run("openapi")).out).toMatch(/^\{\n {2}"openapi": "3\.1[^]*\}\n$/);
    expect(
      await urls("openapi --env staging --port 9000", {
        PETSTORE_OTHER_ENVIRONMENT_URL: "https://a.example",
      }),
    ).toEqual(["http://127.0.0.1:9000/v1", "https://a.example/v1"]);
  });

  test("takes the storage options like every other command, and ignores them", async () => {
    const storage = "--data elsewhere --database-url postgres://h/d --limits-url redis://h";
    expect(await run(`openapi ${storage}`)).toEqual(await run("openapi"));
  });

  test("has the plans and ban rules of a server with the same options", async () => {
    const { out } = await run("openapi --free-limits 7/70", { PETSTORE_BAN_LENGTH: "45s" });
    const { headers } = JSON.parse(out).components;
    expect(headers["X-RateLimit-Limit"].example).toBe(7);
    expect(out.includes("Retry after 45 seconds.")).toBe(true);
  });

  test("--postman says what to import instead", async () => {
    const { code, err } = await run("openapi --postman");
    expect([code, err]).toEqual([2, expect.stringContaining("import /openapi.json")]);
  });
});

/** A shell for the examples: words, single quotes, comments, redirections. */
function shellWords(line: string): string[] {
  const words = line.replace(/ (?:#|>).*$/, "").match(/'[^']*'|\S+/g) ?? [];
  return words.map((word) => word.replaceAll("'", ""));
}
