import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArguments } from "../../src/cli/arguments.ts";
import { COMMAND_GROUPS, COMMANDS, OPTIONS } from "../../src/cli/command-table.ts";
import { type Options, parseOptions } from "../../src/config/parse-options.ts";
import { alternatives } from "../../src/text/formatting.ts";
import { cleanUpAfterAll, InProcessCli, cliDirectory, wrongUsage } from "./cli.ts";

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
    // A list in a sentence has something in it.
    expect(out).not.toMatch(/:\s+\.\s/);
    expect(await run(`help ${name}`)).toEqual({ code: 0, out, err: "" });
  },
);

test.each(COMMANDS.flatMap(({ examples }) => [...examples]))("the example %s is valid", (example) => {
  // As a shell does, without comments and redirections.
  const words = example.replace(/ (?:#|>).*$/, "").match(/'[^']*'|\S+/g) ?? [];
  const argv = words.map((word) => word.replaceAll("'", ""));
  expect(argv.shift()).toBe("petstore");
  const command = COMMANDS.find(({ name }) => `${argv.join(" ")} `.startsWith(`${name} `));
  const { flags, error } = parseArguments(argv, command?.options ?? {});
  expect(error).toBeUndefined();
  expect(Object.keys(flags).filter((flag) => !(flag in (command?.options ?? {})))).toEqual([]);
  expect(() => parseOptions(command?.options ?? {}, flags, {})).not.toThrow();
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
  const text = out.replaceAll(/\s+/g, " ");
  expect(text).toContain("(0 to 65535; default: 8080, or 8081 in staging)");
  expect(text).toContain("(30d to 3650d, or forever; default: 400d)");
  for (const line of ["serve --port nonsense --nonsense --help", "serve --port --help"]) {
    expect((await run(line)).code).toBe(0);
  }
  const completion = await run("completion --help");
  expect(completion.out).toContain("Usage\n  petstore completion SHELL\n");
  expect(completion.out).not.toContain("Options\n");
});

test("help is as wide as the terminal, and has the settings of servers in their groups", async () => {
  const cli = new InProcessCli();
  Object.assign(cli, { isTerminal: true, columns: 60 });
  expect(await cli.out("health --help --color never")).toBe(`Ask the server on this machine whether it serves.

Usage
  petstore health [options]

Requests /healthz of a server: with --port, the one on that
port; without, the one that started last with the data
directory. The exit status is 0 if it serves, and 1 if it
does not respond, is about to stop, or has a certificate
that is not valid now. It is for health checks of
containers, which have no other program.

Data
  --env ENV        Environment; each has its own data, keys
                   and port (production or staging; default:
                   production)
  --env-file FILE  File of environment variables, NAME=value
                   on each line; the environment overrides
                   them; read at the start only
  --data DIR       Directory of the SQLite databases,
                   readable by its owner only; a server
                   makes it (default: ./data)

Address
  --host HOST      Address to listen on; 0.0.0.0 or :: for
                   all addresses of the machine (default:
                   127.0.0.1)
  --port N         Port to listen on; 0 for any free port (0
                   to 65535; default: 8080, or 8081 in
                   staging)
  --tls-cert FILE  Certificate (PEM, with its chain) to
                   serve HTTPS, with --tls-key; read again
                   when it changes (default: plain HTTP)

Every option has an environment variable: --tls-cert is
PETSTORE_TLS_CERT. A flag overrides its variable.

Examples
  petstore health
  petstore health --data /var/lib/petstore
  petstore health --port 9000
`);
  expect(await cli.out("whoami --help")).toContain(
    "\nEvery setting of the server has an environment variable:\n--database-url-file is",
  );
  cli.columns = 120;
  expect(await cli.out("operators --help --color never")).toStartWith(`Usage
  petstore operators COMMAND [options]

Commands
  operators create --name NAME --role ROLE  Create an operator
  operators list                            List the operators with their roles
  operators update NAME                     Change the role or the expiry of an operator
  operators rotate NAME                     Rotate the token of an operator
  operators revoke NAME                     Revoke an operator for good

Options of all of them
  --server URL  URL of the listener for operators of a running server, such as
                https://admin.example.com (default: that of petstore login, or the data here)
  --plain-http  Send the token to an http:// URL, which everybody on the way can read
  --json        Print JSON

Data
`);
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
])("in a new database, %s prints a sentence or an empty array", async (line, text) => {
  const out = `${text.replace("DATA", cli.dataDir)}\n`;
  expect(await run(line)).toEqual({ code: 0, out, err: "" });
  expect(await run(`${line} --json`)).toEqual({ code: 0, out: "[]\n", err: "" });
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

test("openapi ignores the options of storage", async () => {
  const storage = "--data elsewhere --database-url postgres://h/d";
  expect(await run(`openapi ${storage}`)).toEqual(await run("openapi"));
});

/** What is offered for the last word of a line. */
async function offered(line: string): Promise<string[]> {
  const { code, out } = await cli.run(["__complete", ...line.split(" ").slice(1)]);
  expect(code).toBe(0);
  return out.match(/^[^\t\n]+/gm) ?? [];
}

/** Every command and group. */
const FIRST_WORDS = new Set(COMMANDS.map(({ name }) => name.split(" ")[0] ?? ""));
const subcommandsOf = (group: string) =>
  COMMANDS.flatMap(({ name }) => (name.startsWith(`${group} `) ? name.slice(group.length + 1) : []));
const KEYS = subcommandsOf("keys");

test.each<[line: string, words: readonly string[]]>([
  ["petstore ", [...FIRST_WORDS, "help", "--version"]],
  ["petstore ser", ["serve", "servers"]],
  ["petstore keys ", KEYS],
  ["petstore help keys cr", ["create"]],
  ["petstore keys create --plan", ["--plan"]],
  ["petstore keys create --plan ", ["free", "pro", "business", "enterprise"]],
  ["petstore keys create --json --plan b", ["business"]],
  ["petstore --env staging keys li", ["list"]],
  ["petstore orders update 7 co", ["completed"]],
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

test("every flag of every command is offered, with its help", async () => {
  for (const { name, options } of COMMANDS) {
    const { out } = await cli.run(["__complete", ...name.split(" "), "--"]);
    const flags = Object.entries(options).filter(([, { isVariableOnly }]) => !isVariableOnly);
    const lines = flags.map(([flag, { help }]) => `--${flag}\t${help}\n`);
    expect(out).toBe(`${lines.join("")}--help\tShow how to use the command\n`);
  }
  expect(await cli.out("__complete ser")).toBe("serve\tServe the API\nservers\tCommands on servers\n");
  expect(await cli.out("__complete ban")).toBe("ban-rules\tCommands on ban rules\n");
});

/** What is typed, and the error. */
const POSTGRES_COUNTS =
  "is no longer a setting: PostgreSQL counts since 2.0, so remove it, in the order that docs/upgrading.md has";

const WRONG = {
  serv: 'unknown command "serv"; did you mean serve?',
  "frobnicate now": 'unknown command "frobnicate"; see petstore --help',
  "copy --to postgres://db/petstore":
    "copy is no longer a command; use petstore backup, and petstore restore with the settings of the other database",
  "help frobnicate": 'unknown command "frobnicate"; see petstore --help',
  keys: `keys needs a subcommand: ${alternatives(subcommandsOf("keys"))}`,
  "keys craete --name x": 'unknown command "keys craete"; did you mean keys create?',
  "key list": 'unknown command "key list"; did you mean keys list?',
  "key delete": 'unknown command "key delete"; did you mean keys?',
  "pet delte 1": 'unknown command "pet delte"; did you mean pets delete?',
  "orders delete 1": `unknown command "orders delete"; orders has ${subcommandsOf("orders")
    .join(", ")
    .replace(/, (?=\w+$)/, " and ")}`,
  "--port 1": "no command given; see petstore --help",
  "serve --limits-url x://:s3cret@h": `--limits-url ${POSTGRES_COUNTS}`,
  "keys list --limits-timeout=1s": `--limits-timeout ${POSTGRES_COUNTS}`,
  "--prot 1 serve": 'unknown flag "--prot"; did you mean --port?',
  "serve now": 'unexpected argument "now"; see petstore serve --help',
  "serve --prot 1": 'unknown flag "--prot"; did you mean --port?',
  "keys list --nmae x": 'unknown flag "--nmae"; see --help',
  "keys list --color red": '--color is "red"; it must be auto, always or never',
  "keys list --banned --state active": "--banned and --state active exclude each other; use one of them",
  "keys list --port 1": "keys list has no flag --port; did you mean --sort?",
  "serve --port": "--port needs a value: an integer from 0 to 65535",
  "serve --port=99999": '--port is "99999"; it must be an integer from 0 to 65535',
  "serve --port 1 --port 2": "--port is given more than once",
  "serve --database-url-file missing":
    '--database-url-file is "missing"; it cannot be read: the file does not exist',
  "serve --database-url-file a --database-url-file b": "--database-url-file is given more than once",
  "serve --env test": '--env is "test"; it must be production or staging',
  "keys create --plan free":
    "keys create needs --name: a string of 1 to 100 characters on one line that is not blank",
  "keys create --name x": "keys create needs --plan: free, pro, business or enterprise",
  "keys create --name x --plan gold": '--plan is "gold"; it must be free, pro, business or enterprise',
  "keys create --name x --plan pro --per-day 5":
    "--per-minute is required and must be an integer from 1 to 1,000,000,000",
  "keys create --name x --plan pro --per-minute 5 --per-day 5":
    "--per-minute and --per-day must be given for the enterprise plan only; the plan is pro",
  "keys create --name x --plan enterprise":
    "--per-minute and --per-day must be given for the enterprise plan: each key has its own limits",
  "keys create --name x --plan enterprise --per-minute 5":
    "--per-day is required and must be an integer from 1 to 1,000,000,000",
  "keys set-plan 1 pro":
    'unknown command "keys set-plan"; keys has create, list, show, find, update, rotate, disable, enable, revoke and unban',
  "keys update 1 --plan gold": '--plan is "gold"; it must be free, pro, business or enterprise',
  "servers show": 'unknown command "servers show"; servers has list',
  "keys show": "keys show needs ID: the ID of a key, as petstore keys list shows it",
  "keys revoke x": 'ID is "x"; it must be the ID of a key, as petstore keys list shows it',
  "keys show pet_live_0123456789abcdefghijklmnopqrstuvwxyz":
    'ID is "pet_live_…"; it must be the ID of a key, as petstore keys list shows it',
  "keys unban 1 2": 'unexpected argument "2"; see petstore keys unban --help',
  "keys create --name x --plan free --expires 3651d":
    '--expires is "3651d"; it must be a duration from 1s to 3650d such as 90d, a date such as 2027-03-31, or a time such as 2027-03-31T12:00:00Z',
  "keys rotate 1 --overlap 31d":
    '--overlap is "31d"; it must be a duration from 0 to 30d, such as 25ms, 500ms, 90s, 15m, 24h or 30d',
  "keys update 1":
    "keys update needs --name, --owner, --notes, --label, --plan, --per-minute, --per-day, --access, --expires or --clear",
  "keys update 1 --owner x --clear owner": "--owner and --clear owner exclude each other; use one of them",
  "pets update 1 --status sold --clear status":
    "--status and --clear status exclude each other; use one of them",
  "keys update 1 --label x --clear label": "--label and --clear label exclude each other; use one of them",
  "keys update 1 --clear plan":
    '--clear is "plan"; it must be owner, notes, label or expires, or several separated by commas',
  [`keys update 1 --label ${Array.from({ length: 21 }, (_, n) => n).join(",")}`]:
    "--label must be an array of at most 20 different items",
  [`keys update 1 --owner ${"x".repeat(201)}`]: `--owner is "${"x".repeat(60)}…"; it must be a string of 1 to 200 characters on one line that is not blank`,
  "openapi --twin-url x": 'unknown flag "--twin-url"; see --help',
  "audit --actor robot": '--actor is "robot"; it must be console, command line, admin API or server',
  "audit --since 2026-02-30":
    '--since is "2026-02-30"; it must be a date such as 2026-11-01, a time such as 2026-11-01T12:00:00Z, or a duration before now such as 30d',
  "audit --since 30":
    '--since is "30"; it must be a date such as 2026-11-01, a time such as 2026-11-01T12:00:00Z, or a duration before now such as 30d (did you mean 30s?)',
  "audit --limit 0": '--limit is "0"; it must be an integer from 1 to 10000',
  "audit --since 1h --until 2h": "--since is after --until; the period must have a length",
  "audit --pet 1 --order 2": "--pet and --order exclude each other; use one of them",
  "usage --since 1d --until 2d": "--since is after --until; the period must have a length",
  "usage --json --csv": "--json and --csv exclude each other; use one of them",
  "usage --by week": '--by is "week"; it must be hour, day or key',
  "pets update 1": "pets update needs --name, --category, --status or --clear",
  "pets update 1 --name=":
    '--name is ""; it must be a string of 1 to 1,024 characters that is not blank and has no NUL or lone surrogate',
  "pets update 1 --category 1.5": '--category is "1.5"; it must be an integer from -2^63 to 2^63 - 1',
  "pets update 1 --status gone": '--status is "gone"; it must be available, pending or sold',
  "pets list --status placed": '--status is "placed"; it must be available, pending or sold',
  "pets show rex": 'ID is "rex"; it must be the ID of a pet, as petstore pets list shows it',
  "pets list --limit 1001": '--limit is "1001"; it must be an integer from 1 to 1000',
  "orders list --status sold": '--status is "sold"; it must be placed, completed or cancelled',
  "orders show 01": 'ID is "01"; it must be the ID of an order, as petstore orders list shows it',
  "orders update 1 placed": 'STATUS is "placed"; it must be completed or cancelled',
};

test.each(Object.entries(WRONG))("%s", async (line, err) => {
  expect(await run(line)).toEqual(wrongUsage(err));
});

test("a wrong variable is reported by its name, and one of another command is ignored", async () => {
  expect((await run("keys list", { PETSTORE_PORT: "nonsense" })).code).toBe(0);
  expect((await run("keys list", { PETSTORE_ENV: "test" })).err).toBe(
    'PETSTORE_ENV is "test"; it must be production or staging',
  );
});

test.each(["json", "status", "replace", "csv", "yes"])("--%s has no variable", async (flag) => {
  const name = `PETSTORE_${flag.toUpperCase()}`;
  const path = join(cliDirectory(), "production.env");
  writeFileSync(path, `${name}=true\n`);
  const problem = `is not a setting of a server; use --${flag}`;
  for (const command of ["pets update 1", "restore .", "keys list", "serve"]) {
    expect(await run(command, { [name]: "true" })).toMatchObject({ code: 2, err: `${name} ${problem}` });
    expect(await run(`${command} --env-file ${path}`)).toEqual(wrongUsage(`${name} in "${path}" ${problem}`));
  }
});

test.each([
  ["PETSTORE_PROT", 'unknown variable "PETSTORE_PROT"; did you mean PETSTORE_PORT?'],
  ["PETSTORE_DRAIN_DELAYS", 'unknown variable "PETSTORE_DRAIN_DELAYS"; did you mean PETSTORE_DRAIN_DELAY?'],
  ["PETSTORE_LIMITS_URL", `PETSTORE_LIMITS_URL ${POSTGRES_COUNTS}`],
  ["PETSTORE_LIMITS_URL_FILE", `PETSTORE_LIMITS_URL_FILE ${POSTGRES_COUNTS}`],
  ["PETSTORE_FROBNICATE", 'unknown variable "PETSTORE_FROBNICATE"; see petstore serve --help'],
])("an unknown variable is an error in every command: %s", async (name, err) => {
  for (const { name: command } of COMMANDS) {
    expect(await run(command, { [name]: "1" })).toMatchObject({ code: 2, err });
  }
  expect((await run("serve --help", { [name]: "1" })).code).toBe(0);
});

test("a port that Kubernetes sets for a service is a warning of commands that have a port", async () => {
  const variables = { PETSTORE_PORT: "tcp://10.0.0.1:80" };
  expect((await run("health --port 1", variables)).out).toMatch(/^warning: .*PETSTORE_PORT/);
  expect((await run("keys list", variables)).out).toStartWith("There are no keys");
});

const WITH_PASSWORD = {
  "serve postgres://user:s3cret@db.example/pets": 'unexpected argument "postgres://…@db.example/pets"',
  "postgres://user:s3cret@db.example/pets": 'unknown command "postgres://…@db.example/pets"',
  "serve --database-ulr=postgres://:s3cret@h": 'unknown flag "--database-ulr"; did you mean --database-url?',
  "serve --data postgres://user:s3cret@h/d":
    '--data is "postgres://…@h/d"; it must be the path of a directory',
  "serve --env-file postgres://:s3cret@h":
    '--env-file is "postgres://…@h"; it cannot be read: the file does not exist',
  "serve --public-url https://user:s3cret@h": '--public-url is "https://…@h"; ',
  "serve --port postgres://user:s3cret@with@at/d": '--port is "postgres://…@at/d"; ',
  "serve postgres://h/d?user=u&password=s3cret": 'unexpected argument "postgres://h/d?user=u&password=…"',
  "keys list --database-url postgres://user:s3cret@h:port/d": "--database-url is not valid; ",
};

test("the example of a URL is shown as it is, with its user and password", async () => {
  expect(await cli.err("keys list --database-url nonsense")).toBe(
    "--database-url is not valid; it must be a URL such as postgres://user:password@host:5432/database?sslmode=verify-full",
  );
});

test.each(Object.entries(WITH_PASSWORD))("a password is not repeated: %s", async (line, start) => {
  const result = await run(line);
  expect(result).toEqual(wrongUsage(expect.stringContaining(start)));
  expect(result.err).not.toContain("s3cret");
});
