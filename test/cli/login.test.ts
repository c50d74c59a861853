import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Variables } from "../../src/config/parse-options.ts";
import { INVALID_TOKEN } from "../../src/operator/errors.ts";
import { providerFlags, startIdentityProvider } from "../../trials/harness/identity-provider.ts";
import { sessionOf } from "../admin/admin-service.ts";
import { cleanUpAfterAll, failure, InProcessCli, cliDirectory, wrongUsage } from "./cli.ts";

cleanUpAfterAll();

const TOKEN = "pet_admin_0123456789abcdefghijklmnopqrstuvwxyz";
const TERMINAL = { errorStream: { isTerminal: true, columns: 80, write: () => {} } };

/** A server with a listener for operators, and the command line of a user elsewhere. */
async function elsewhere(argv: readonly string[] = []) {
  const machine = new InProcessCli();
  const server = await machine.serve(argv, { PETSTORE_ADMIN_TOKEN: TOKEN });
  const { origin } = new URL(server.adminUrl);
  const home = cliDirectory();
  const cli = new InProcessCli();
  cli.secret = `${TOKEN}\n`;
  const run = (line: string, variables: Variables = {}, context = {}) =>
    cli.run(line, { PETSTORE_DATA: "", HOME: home, ...variables }, context);
  return { machine, server, origin, home, cli, run, file: join(home, ".config/petstore/login.json") };
}

test("login checks the token, keeps it for its owner only, and commands work there until logout", async () => {
  const { origin, cli, run, file } = await elsewhere();
  // What stands in ./data, the checkout decides.
  const loggedOut = failure(
    expect.stringMatching(/^you are not logged in; .* production \(data: \.\/data\)/),
  );
  expect(await run("whoami")).toEqual(loggedOut);
  for (const [secret, err] of [
    ["x".repeat(40), `${origin} does not accept the token: ${INVALID_TOKEN.message}`],
    ["short", "that is not a token: it has 16 to 200 visible ASCII characters"],
  ] as const) {
    cli.secret = secret;
    expect(await run(`login ${origin}`)).toEqual(failure(err));
    expect(() => statSync(file)).toThrow();
  }
  cli.secret = `${TOKEN}\n`;
  const { code, out } = await run(`login ${origin}`);
  expect(code).toBe(0);
  expect(out).toStartWith(`You are logged in to ${origin} (production)`);
  expect(out).not.toContain(TOKEN);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(file)).mode & 0o777).toBe(0o700);
  expect(readdirSync(dirname(file))).toEqual(["login.json"]);

  expect((await run("keys create --name far --plan free")).out).toContain(`in ${origin}: free plan`);
  expect((await run("keys list")).out).toContain("far");
  const shown = await run("whoami");
  expect(shown.out).toMatch(new RegExp(`^Server +${origin}\nEnvironment +production\nOperator +`));
  expect(JSON.parse((await run("whoami --json")).out)).toMatchObject({
    server: origin,
    environment: "production",
  });

  expect((await run("logout")).out).toStartWith(`The token of ${origin} is removed`);
  expect(readFileSync(file, "utf8")).not.toContain(TOKEN);
  expect(await run("whoami")).toEqual(loggedOut);
  expect((await run("logout")).err).toBe("you are not logged in");
  expect((await run(`logout ${origin}`)).err).toBe(`you are not logged in to ${origin}`);
});

test("login with the token of an operator who has expired says since when, and what an admin can do", async () => {
  const { machine, origin, cli, run } = await elsewhere();
  const { out } = await machine.run("operators create --name ann --role viewer --expires 1h");
  cli.secret = /pet_admin_\w+/.exec(out)?.[0] ?? "";
  expect((await run(`login ${origin}`)).err).toMatch(
    /does not accept the token: The token of ann expired at 2026-.* petstore operators update ann --expires 90d$/,
  );
});

test("--server, then PETSTORE_SERVER, then the data that is named, then the last login", async () => {
  const [first, second, third] = [await elsewhere(), await elsewhere(), await elsewhere()];
  const { run } = first;
  await run(`login ${first.origin}`);
  await run(`login ${second.origin}`);
  const data = { PETSTORE_DATA: first.cli.dataDir };
  const where = async (flags: string, variables?: Variables) => {
    const { out, err } = await run(`pets list${flags}`, variables);
    return /(?:in |^)(\S+?)(?:\.\n| \(data| needs a token)/.exec(out || err)?.[1];
  };
  expect(await where("")).toBe(second.origin);
  expect(await where("", data)).toBe("production");
  expect(await where(` --data ${data.PETSTORE_DATA}`)).toBe("production");
  expect(await where("", { ...data, PETSTORE_SERVER: third.origin, PETSTORE_TOKEN: TOKEN })).toBe(
    third.origin,
  );
  expect(await where(` --server ${first.origin}`, { PETSTORE_SERVER: third.origin })).toBe(first.origin);
  // A token goes to its own server only.
  expect(await where(` --server ${third.origin}`)).toBe(third.origin);
  expect((await run(`pets list --server ${third.origin}`)).err).toBe(
    `${third.origin} needs a token: run petstore login ${third.origin}, or set PETSTORE_TOKEN or --admin-token-file`,
  );
  await run("logout");
  expect((await run("whoami", data)).err).toBe(
    `you are not logged in; commands work on production (data: ${data.PETSTORE_DATA})`,
  );
  const missing = join(cliDirectory(), "data");
  expect((await run(`whoami --data ${missing}`)).err).toStartWith(
    `you are not logged in; there is no database in production (data: ${missing}): ${missing}/production.db does not exist; `,
  );
  expect(await where(` --server ${first.origin}`)).toBe(first.origin);
});

test("the token: flags, then PETSTORE_TOKEN, then that of the login, then PETSTORE_ADMIN_TOKEN", async () => {
  const { origin, run, home } = await elsewhere();
  const wrong = "w".repeat(30);
  const [rightFile, wrongFile] = [join(home, "right"), join(home, "wrong")];
  writeFileSync(rightFile, `${TOKEN}\n`);
  writeFileSync(wrongFile, wrong);
  const code = async (line: string, variables?: Variables) => (await run(line, variables)).code;
  const list = `pets list --server ${origin}`;
  expect(await code(list, { PETSTORE_ADMIN_TOKEN: TOKEN })).toBe(0);
  expect((await run(`login ${origin} --token-file ${wrongFile}`)).code).toBe(1);
  expect((await run(`login ${origin} --token-file ${rightFile}`)).code).toBe(0);
  for (const line of ["pets list", list]) {
    expect(await code(line, { PETSTORE_ADMIN_TOKEN: wrong })).toBe(0);
    expect(await code(line, { PETSTORE_ADMIN_TOKEN_FILE: wrongFile })).toBe(0);
    expect(await code(line, { PETSTORE_TOKEN: wrong })).toBe(1);
    expect(await code(`${line} --admin-token-file ${rightFile}`, { PETSTORE_TOKEN: wrong })).toBe(0);
  }
  expect((await run("pets list", { PETSTORE_TOKEN: wrong })).err).toEndWith(
    ` Run petstore login ${origin} again.`,
  );
  expect(await run("pets list", { PETSTORE_TOKEN: "secret" })).toEqual(
    wrongUsage("PETSTORE_TOKEN is not valid; it must be 16 to 200 visible ASCII characters"),
  );
});

test("a terminal is told where a change is made because of the login", async () => {
  const { origin, run } = await elsewhere();
  await run(`login ${origin}`);
  const told = async (line: string, context = TERMINAL) =>
    (await run(line, {}, context)).out.includes("warning: this is on");
  expect((await run("pets add --name Rex --category 7", {}, TERMINAL)).out).toStartWith(
    `warning: this is on ${origin}, where you are logged in\n`,
  );
  expect(await told("pets add --name Rex --category 7", {} as never)).toBeFalse();
  expect(await told("pets list")).toBeFalse();
  expect(await told(`pets delete 1 --yes --server ${origin}`)).toBeFalse();
  expect(await told("pets delete 2 --yes")).toBeTrue();
});

test("--env must be the environment of the server", async () => {
  const { origin, run } = await elsewhere(["--env", "staging"]);
  await run(`login ${origin}`);
  expect((await run("pets add --name Rex --category 7 --env production")).err).toBe(
    `--env is production, and ${origin} is staging; nothing was changed`,
  );
  expect((await run("pets list", { PETSTORE_ENV: "production" })).err).toStartWith(
    "PETSTORE_ENV is production,",
  );
  expect((await run("pets list --env staging")).out).toStartWith("There are no pets");
  expect((await run("keys create --name a --plan free")).out).toMatch(/^ {2}pet_test_\w+$/m);
});

test("a file with something else in it is no login, and is replaced", async () => {
  const { origin, run, file } = await elsewhere();
  mkdirSync(dirname(file), { recursive: true });
  for (const text of ["", "{", "[]", "null", `{"current":"${origin}","tokens":{"${origin}":5}}`]) {
    writeFileSync(file, text);
    expect((await run("whoami")).err).toStartWith("you are not logged in");
  }
  expect((await run(`login ${origin}`)).code).toBe(0);
  expect((await run("whoami")).code).toBe(0);
  expect((await run("whoami", { XDG_CONFIG_HOME: dirname(dirname(file)), HOME: "" })).code).toBe(0);
  expect((await run("whoami", { XDG_CONFIG_HOME: "relative" })).code).toBe(0);
  expect(await run(`login ${origin}`, { HOME: "" })).toEqual(wrongUsage(expect.stringContaining("set HOME")));
});

test("a URL without TLS needs --plain-http, unless it is on this machine or was logged in to so", async () => {
  const { run, file } = await elsewhere();
  const url = "http://192.0.2.7:8090";
  const err = `${url} has no TLS, and everybody on the way could read the token; use https://, or --plain-http in a network that you trust`;
  for (const line of [`login ${url}`, `pets list --server ${url}`, `whoami --server ${url}`])
    expect(await run(line, { PETSTORE_TOKEN: TOKEN })).toEqual(wrongUsage(err));
  expect((await run(`login http://localhost:1`)).err).toContain("does not respond");
  expect(() => statSync(file)).toThrow();
  for (const [typed, hint] of [
    ["admin.example.com", "https://admin.example.com"],
    ["https://admin.example.com/?code=abc", "https://admin.example.com"],
  ] as const)
    expect((await run(`login ${typed}`)).err).toContain(`(did you mean ${hint}?)`);
  expect((await run("login https://admin.example.com/?code=abc")).err).not.toContain("abc");
});

test("commands about a machine say so, and ignore the login", async () => {
  const { origin, run } = await elsewhere();
  await run(`login ${origin}`);
  for (const line of ["serve", "backup dir", "restore dir", "doctor", "admin-url"]) {
    expect(await run(`${line} --server ${origin}`)).toEqual(
      wrongUsage(`${line.split(" ")[0]} works on this machine only; run it on the machine of the server`),
    );
  }
  const data = join(cliDirectory(), "data");
  expect((await run(`export pets --data ${data}`, { PETSTORE_SERVER: origin })).err).toContain(
    "there is no database",
  );
});

test("servers list: a server elsewhere lists itself", async () => {
  const { origin, run } = await elsewhere();
  const { out } = await run(`servers list --server ${origin}`, { PETSTORE_TOKEN: TOKEN });
  expect(out).toMatch(
    /^NAME +STATE +ADMIN URL +VERSION .*\n\S+ +up +http:\S+ +\d+\.\d+\.\d+ +\S+ +\d+\.\d +0 +0 /,
  );
});

test("what is not Petstore is told so: a page, a redirect, the API; what it says reaches the terminal without control characters", async () => {
  const { server, origin, run } = await elsewhere();
  for (const status of [200, 302, 502]) {
    const other = Bun.serve({
      port: 0,
      fetch: () =>
        new Response("<h1>Welcome</h1>", { status, headers: { Location: "https://elsewhere.example" } }),
    });
    const { code, err } = await run(`login ${other.url.origin}`);
    expect(code).toBe(1);
    expect(err).toMatch(/ it is no listener for operators/);
    expect(err).not.toContain(TOKEN);
    await other.stop(true);
  }
  expect((await run(`login ${new URL(server.url).origin}`)).err).toMatch(/ it is no listener for operators/);
  expect((await run(`login ${origin}`)).code).toBe(0);
  using other = Bun.serve({
    port: 0,
    fetch: () =>
      Response.json(
        { code: "x", message: "No\u001b]0;title\u0007\u009b2J\u202e.", status: 403 },
        { status: 403 },
      ),
  });
  expect((await run(`login ${other.url.origin}`)).err).toBe("No\\u{1b}]0;title\\u{7}\\u{9b}2J\\u{202e}.");
});

const COMMANDS = [
  "keys create --name a --plan pro --owner ann@example.com --label eu",
  "keys create --name b --plan enterprise --per-minute 5 --per-day 50 --json",
  "keys create --name c --plan enterprise",
  "keys create --name d --plan gold",
  "keys list",
  "keys list --json",
  "keys list --search nobody",
  "keys show 2",
  "keys show 99",
  "keys update 2 --name renamed --expires 30d",
  "keys update 2",
  "keys update 2 --plan business",
  "keys rotate 2 --overlap 1h",
  "keys disable 2",
  "keys enable 2",
  "keys unban 2",
  "keys revoke 3",
  "keys revoke 3 --json",
  "keys update 3 --plan free",
  "keys find",
  "pets list",
  "pets add --name Rex --category 7 --status available",
  "pets add --name Rex --category 7 --json",
  "pets show 1",
  "pets show x",
  "pets update 1 --status sold",
  "pets update 1 --name",
  "pets delete 2 --yes",
  "pets delete 2 --yes",
  "orders list",
  "orders show 1",
  "orders update 1 completed",
  "audit --action key.created --limit 1 --json",
  "usage",
  "usage 2 --csv",
  "usage 99",
];

test("every command prints the same on the machine and elsewhere, and has the same exit status", async () => {
  const results = await Promise.all(
    [false, true].map(async (isElsewhere) => {
      const { machine, server, origin } = await elsewhere();
      machine.secret = server.secret ?? "";
      const variables = isElsewhere
        ? { PETSTORE_DATA: "", PETSTORE_SERVER: origin, PETSTORE_TOKEN: TOKEN }
        : {};
      const printed: unknown[] = [];
      for (const line of COMMANDS) {
        const { code, out, err } = await machine.run(line, variables);
        const text = (out + err)
          .replaceAll(isElsewhere ? origin : `production (data: ${machine.dataDir})`, "LOCATION")
          .replaceAll(new URL(server.url).origin, "URL")
          .replaceAll(/pet_live_\w+(?:…\w+)?/g, "SECRET")
          .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
          // The audit trail says where a change was made.
          .replace(/"actor": \{[^}]*\}/, "ACTOR");
        printed.push({ line, code, text });
      }
      return printed;
    }),
  );
  expect(results[1]).toEqual(results[0]);
  const codes = results.flat().map((each) => (each as { code: number }).code);
  expect(new Set(codes)).toEqual(new Set([0, 1, 2]));
});

test("what a server elsewhere rejects is named by its flags, and an earlier release by its own words", async () => {
  const { origin, run } = await elsewhere();
  const create = "keys create --name x --plan pro --per-minute 5 --per-day 5 --server";
  const rejected = "must be given for the enterprise plan only; the plan is pro";
  const token = { PETSTORE_TOKEN: TOKEN };
  expect(await run(`${create} ${origin}`, token)).toEqual(
    wrongUsage(`--per-minute and --per-day ${rejected}`),
  );
  const message = `limits ${rejected}.`;
  const error = { code: "invalid_body", message, status: 400 };
  const responses = [
    error,
    { ...error, problems: [{ path: ["a\u001b", 2, "b"], message: "is\u009b2J wrong" }] },
  ];
  using other = Bun.serve({ port: 0, fetch: () => Response.json(responses.shift(), { status: 400 }) });
  const { err: earlier } = await run(`${create} ${other.url.origin}`, token);
  expect(earlier).toStartWith(message);
  const { err: hostile } = await run(`${create} ${other.url.origin}`, token);
  expect(hostile).toStartWith("a\\u{1b}[2].b is\\u{9b}2J wrong");
});

test("login with a code of the console works until logout, which ends it on the server", async () => {
  await using provider = await startIdentityProvider();
  const { origin, cli, run, file } = await elsewhere(providerFlags(provider));
  const send = async (path: string, body?: object, headers: Record<string, string> = {}) => {
    const response = await fetch(origin + path, {
      method: "POST",
      headers: { "Content-Type": "application/json", Origin: origin, ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { headers: response.headers, json: Object(await response.json()) };
  };
  const { url, ...secrets } = (await send("/api/session/provider")).json;
  const response = await provider.logIn(url, "ann");
  const session = sessionOf(await send("/api/session", { provider: { response, ...secrets } }));
  const { code } = (await send("/api/session/code", undefined, session)).json;
  cli.secret = `${code}\n`;
  expect((await run(`login ${origin}`)).out).toStartWith(
    `You are logged in to ${origin} (production) as ann@example.com, admin.`,
  );
  expect(readFileSync(file, "utf8")).not.toContain(code);
  expect((await run("keys create --name far --plan free")).code).toBe(0);
  expect((await run("audit --limit 1")).out).toContain("ann@example.com");
  const { token } = /(?<token>pet_session_[\w.-]+)/.exec(readFileSync(file, "utf8"))?.groups ?? {};
  expect(await run("logout")).toMatchObject({ code: 0, out: `The login to ${origin} has ended.\n` });
  const stale = await run("keys list", { PETSTORE_SERVER: origin, PETSTORE_TOKEN: token });
  expect(stale).toMatchObject({ code: 1 });
  expect(stale.err).not.toContain(token);
  cli.secret = code;
  expect((await run(`login ${origin}`)).err).toContain(
    "The code was used, is older than five minutes, or its session has ended. The console makes a new one on its page of settings.",
  );
});
