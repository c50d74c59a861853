import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { join } from "node:path";
import { bearer } from "../bearer.ts";
import { certificateOf } from "../http1/certificate.ts";
import packageJson from "../../package.json" with { type: "json" };
import { createPet } from "../../trials/harness/api-client.ts";
import { storePolicy } from "../../trials/harness/policy.ts";
import {
  cleanUpAfterAll,
  failure,
  InProcessCli,
  type InProcessServer,
  resultOf,
  spawnPetstore,
  cliDirectory,
  EXECUTABLE,
  spawnTracked,
} from "./cli.ts";
import { until } from "../timing.ts";

cleanUpAfterAll();

let cli: InProcessCli;
beforeEach(() => void (cli = new InProcessCli()));

const get = (url: string, secret: string | undefined) => fetch(url, { headers: bearer(secret) });

const status = async (url: string, secret: string | undefined) => (await get(`${url}/pets`, secret)).status;

test("the first start creates a key that works; later starts create none", async () => {
  const data = cli.dataDir;
  const first = await cli.serve();
  const origin = first.url.slice(0, -"/v1".length);
  expect(first.startMessage).toBe(`Petstore is serving production. Stop it with Ctrl-C.

  API          ${origin}/v1
  Docs         ${origin}/docs
  OpenAPI      ${origin}/openapi.json
  Admin        ${first.adminUrl} (token in ${data}/production-admin-token)
  Data         ${data}
  Rate limits  in the server process

Created the first API key (free plan, 60 requests per minute, 1,000 per day) in a file:

  ${data}/production-first-key

Only the owner of this file can read it. Delete it when you have stored the key elsewhere. Try it in a browser or with curl:

  ${origin}/docs#try-it
  curl -i ${origin}/v1/pets -H "Authorization: Bearer $(cat ${data}/production-first-key)"

`);
  expect(await status(first.url, first.secret)).toBe(200);
  expect((await fetch(`${origin}/docs`)).status).toBe(200);
  expect((await fetch(`${origin}/openapi.json`)).status).toBe(200);
  expect((await first.stop()).code).toBe(0);

  const second = await cli.serve();
  expect(second.secret).toBeUndefined();
  expect(await status(second.url, first.secret)).toBe(200);
  expect((await second.stop()).code).toBe(0);
  cli.clock.time = Date.now();
  expect(await cli.json("keys list")).toMatchObject([
    { id: 1, name: "first key", plan: "free", usage: { day: { used: 2 } } },
  ]);
});

test("staging and production share a data directory, and neither accepts the other's key", async () => {
  await using production = await cli.serve();
  await using staging = await cli.serve(["--env", "staging"]);
  expect(staging.secret).toStartWith("pet_test_");
  expect(existsSync(join(cli.dataDir, "staging-first-key"))).toBeTrue();
  expect(await status(staging.url, staging.secret)).toBe(200);
  expect(await status(staging.url, production.secret)).toBe(401);
  expect(await status(production.url, staging.secret)).toBe(401);
});

test("the log has the start and the stop", async () => {
  const data = cli.dataDir;
  const server = await cli.serve();
  await server.stop("SIGHUP");
  // The server may also see the new key before it stops.
  const all = server.lines.map((line) => JSON.parse(line)).filter(({ event }) => event !== "key.changed");
  expect(all.slice(0, 2).map(({ event }) => event)).toEqual(["audit.operator.created", "audit.key.created"]);
  const events = all.slice(2);
  expect(events.map(({ time: _time, message: _message, ...rest }) => rest)).toEqual([
    { level: "info", event: "key.first-created", file: join(data, "production-first-key") },
    {
      level: "info",
      event: "admin.started",
      url: server.adminUrl,
      tokenFile: join(data, "production-admin-token"),
    },
    {
      level: "info",
      event: "server.started",
      version: packageJson.version,
      environment: "production",
      url: server.url,
      data: `SQLite in ${data}`,
      rateLimits: "in the server process",
      pid: process.pid,
    },
    { level: "info", event: "server.stopping", signal: "SIGHUP" },
    { level: "info", event: "server.stopped", afterMs: expect.any(Number) },
  ]);
});

test("--log-format text is for people, and --log-level leaves out what is less important", async () => {
  const flags = ["--log-format", "text", "--log-level", "warn", "--host", "0.0.0.0"];
  const server = await cli.serve([...flags, "--admin-address", "0.0.0.0:0"]);
  await server.stop();
  expect(server.lines).toEqual([
    expect.stringMatching(/^\S+Z warn .*\[connections\.plain-text\] host=0\.0\.0\.0$/),
    expect.stringMatching(/^\S+Z warn .*\[admin\.plain-text\] host=0\.0\.0\.0$/),
  ]);
});

test("--access-log writes a line for each request, without the fields of --access-log-omit", async () => {
  const file = join(cliDirectory(), "access.log");
  const flags = ["--access-log", file, "--access-log-omit", "address,userAgent"];
  const server = await cli.serve(flags);
  expect(await status(server.url, "unknown")).toBe(401);
  await server.stop();
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
    time: expect.any(String),
    requestId: expect.any(String),
    keyId: null,
    method: "GET",
    path: "/v1/pets",
    operation: null,
    status: 401,
    errorCode: "invalid_api_key",
    durationMs: expect.any(Number),
    bytes: expect.any(Number),
  });
});

test("--env-file is read for serve and for commands", async () => {
  const file = join(cliDirectory(), "petstore.env");
  writeFileSync(file, "PETSTORE_PUBLIC_URL=https://api.example.com/pets\n");
  const { startMessage, stop } = await cli.serve(["--env-file", file]);
  expect(startMessage).toContain("  API          https://api.example.com/pets/v1\n");
  expect(startMessage).toContain("  OpenAPI      https://api.example.com/pets/openapi.json\n");
  expect(startMessage).toContain("curl -i https://api.example.com/pets/v1/pets -H");
  expect(startMessage).toContain("(free plan, 60 requests per minute, 1,000 per day)");
  expect(await cli.json("keys", "list", "--env-file", file)).toMatchObject([{ id: 1 }]);
  await stop();
});

test("a start fails because the port is in use: the server on it keeps working", async () => {
  await using first = await new InProcessCli().serve();
  const { port } = new URL(first.url);
  expect(await cli.run(`serve --port ${port}`)).toEqual(
    failure(
      `cannot listen on 127.0.0.1 port ${port}: the port is in use; stop the other program or choose another --port`,
    ),
  );
  expect(await status(first.url, first.secret)).toBe(200);
});

test.each([
  ["nosuch.invalid", "there is no such host"],
  ["203.0.113.1", "this machine does not have that address"],
])("a start fails because --host is %s", async (host, reason) => {
  expect(await cli.run(`serve --host ${host}`)).toEqual(
    failure(`cannot listen on ${host} port 8080: ${reason}; see --host`),
  );
});

test("a start fails because the usage store is damaged, or the access log cannot be opened", async () => {
  await expect(cli.run("serve --port 0 --access-log missing/a.log")).rejects.toThrow(
    "cannot open the access log",
  );
  const path = join(cli.dataDir, "production-limits.db");
  writeFileSync(path, "no database, ".repeat(100), { mode: 0o600 });
  await expect(cli.run("serve --port 0")).rejects.toThrow(
    `cannot open the database ${path}: file is not a database; `,
  );
});

test("on a terminal the first key is printed, and no file is written", async () => {
  cli.isTerminal = true;
  const { startMessage, url, stop } = await cli.serve();
  const [secret] = /pet_live_\w+/.exec(startMessage) ?? [];
  const created = "Created the first API key (free plan, 60 requests per minute, 1,000 per day):";
  expect(startMessage).toContain(`${created}\n\n  ${secret}\n\nThis is the only time it is shown: `);
  expect(startMessage).toEndWith(`\n  curl -i ${url}/pets -H "Authorization: Bearer ${secret}"\n\n`);
  expect(existsSync(join(cli.dataDir, "production-first-key"))).toBeFalse();
  await stop();
});

/** Functions in place of the programs: `cat` with what a shell has, and a `curl` that prints its arguments. */
const PROGRAMS = `cat() { read -r line < "$1"; printf '%s\\n' "$line"; }; curl() { printf '%s\\n' "$@"; };`;

test("elsewhere only a file has the first key, and the printed command reads it", async () => {
  const data = join(cli.dataDir, "it's data");
  const { startMessage, secret, url, stop, lines } = await cli.serve(["--data", data]);
  const path = join(data, "production-first-key");
  expect(readFileSync(path, "utf8")).toMatch(/^pet_live_\w{36}\n$/);
  const [command = ""] = /^ {2}curl .*$/m.exec(startMessage) ?? [];
  const { stdout } = Bun.spawnSync(["sh", "-c", PROGRAMS + command]);
  expect(stdout.toString()).toBe(`-i\n${url}/pets\n-H\nAuthorization: Bearer ${secret}\n`);
  await stop();
  const created = lines.find((line) => line.includes("key.first-created"));
  expect(JSON.parse(created ?? "")).toMatchObject({ level: "info", file: path });
  expect(startMessage + lines.join()).not.toMatch(/pet_live_\w{5}/);
});

test("a file or link of that name is replaced, and its target is left alone", async () => {
  const target = join(cliDirectory(), "target");
  writeFileSync(target, "precious", { mode: 0o644 });
  symlinkSync(target, join(cli.dataDir, "production-first-key"));
  const { secret, stop } = await cli.serve();
  expect(secret).toStartWith("pet_live_");
  expect(readFileSync(target, "utf8")).toBe("precious");
  await stop();
});

const NOBODY = "; nobody received the first key, so it is revoked; create another with petstore keys create";

test("a first key that cannot be written is revoked", async () => {
  mkdirSync(join(cli.dataDir, "production-first-key"), { recursive: true });
  const { code, err } = await cli.run("serve --port 0");
  expect(code).toBe(1);
  expect(err).toEndWith(NOBODY);
  expect(await cli.json("keys list --state revoked")).toMatchObject([{ name: "first key" }]);
});

test("a first key whose message cannot be printed is revoked, and its file removed", async () => {
  const full = Object.assign(new Error("ENOSPC: raw"), { code: "ENOSPC" });
  const { code, err } = await cli.run("serve --port 0", {}, { print: () => Promise.reject(full) });
  expect({ code, err }).toEqual({ code: 1, err: `no space is left on the device${NOBODY}` });
  expect(existsSync(join(cli.dataDir, "production-first-key"))).toBeFalse();
  expect(await cli.json("keys list --state revoked")).toMatchObject([{ name: "first key" }]);
});

describe("commands beside a running server", () => {
  const cli = new InProcessCli();
  let server: InProcessServer;
  beforeAll(async () => {
    cli.clock.now = () => Date.now();
    const ban = { strikes: 1, graceMs: 0, lengthMs: 3_600_000 };
    await storePolicy(["--data", cli.dataDir], { ban });
    server = await cli.serve();
  });
  afterAll(() => server.stop());

  const created = (limits: string) =>
    cli.json<{ id: number; key: string }>(`keys create --name app --plan enterprise ${limits}`);
  const createdWithoutLimits = () => created("--per-minute 1000000 --per-day 1000000");

  /** Repeats a request until its response is as expected. */
  async function repeat(path: string, secret: string, isExpected: (body: string) => boolean): Promise<void> {
    await until(async () => isExpected(await (await get(server.url + path, secret)).text()), 1_000);
  }

  test("the server follows keys create, rotate and revoke, and logs them", async () => {
    const { id, key } = await createdWithoutLimits();
    expect(await status(server.url, key)).toBe(200);

    const rotated = await cli.json<{ key: string }>(`keys rotate ${id} --overlap 0`);
    expect(await status(server.url, rotated.key)).toBe(200);
    await repeat("/pets", key, (body) => body.includes("invalid_api_key"));

    await cli.json(`keys revoke ${id}`);
    await repeat("/pets", rotated.key, (body) => body.includes("invalid_api_key"));
    const isRevoked = (line: string) => line.includes(`"keyId":${id},`) && line.includes('"state":"revoked"');
    await until(() => server.lines.some(isRevoked), 10_000);
    expect(JSON.parse(server.lines.find(isRevoked) ?? "")).toMatchObject({
      level: "info",
      event: "key.changed",
      plan: "enterprise",
      expiresAt: null,
    });
  });

  test("keys unban ends the ban of a key", async () => {
    const { id, key } = await created("--per-minute 1 --per-day 10");
    await repeat("/pets", key, (body) => body.startsWith("["));
    // With a grace period of 0, a rejected request is a strike from the next millisecond on.
    await repeat("/pets", key, (body) => body.includes("key_banned"));
    await until(async () => (await cli.out(`audit --key ${id}`)).includes("key.banned"), 10_000);
    expect(await cli.out(`keys unban ${id}`)).toMatch(/is unbanned; its ban would have ended at \S+Z\.\n$/);
    // The next request would be a strike.
    expect(await cli.out(`keys unban ${id}`)).toMatch(
      /^Key \d+ was not banned and had no strikes; it was last unbanned at \S+Z\.\n$/,
    );
    await repeat("/pets", key, (body) => body.includes("rate_limited"));
  });

  test("keys unban after the end of a ban says when it ended", async () => {
    const { id, key } = await created("--per-minute 1 --per-day 10");
    const changes = () => server.lines.filter((line) => line.includes('"limits.changed"')).length;
    const changesBefore = changes();
    await cli.run("ban-rules update --length 1s");
    await until(() => changes() > changesBefore, 10_000);
    await repeat("/pets", key, (body) => body.includes("key_banned"));
    await until(async () => (await cli.out(`audit --key ${id}`)).includes("key.banned"), 10_000);
    await until(async () => (await cli.json(`keys show ${id}`))["state"] === "active", 10_000);
    expect(await cli.out(`keys unban ${id}`)).toMatch(
      /^Key \d+ was not banned.*; its last ban ended at \S+Z\.\n$/,
    );
    await cli.run("ban-rules update --length 1h");
  });

  test("cached pages and pets show the changes of pets", async () => {
    const { key } = await createdWithoutLimits();
    for (let i = 0; i < 12; i++) await createPet(server.url, key);
    const page = "/pets?limit=10";
    const available = "/pets?status=available&limit=10";
    for (const path of [page, "/pets/7", available]) {
      for (let i = 0; i < 5; i++) expect((await get(server.url + path, key)).status).toBe(200);
    }
    await cli.run("pets update 7 --name Rover");
    await repeat("/pets/7", key, (body) => body.includes("Rover"));
    await repeat(page, key, (body) => body.includes("Rover"));
    await cli.run("pets update 7 --status sold");
    await repeat(available, key, (body) => !body.includes("Rover"));
    await cli.run("pets delete 7");
    await repeat("/pets/7", key, (body) => body.includes("pet_not_found"));
    await repeat(page, key, (body) => !body.includes('"id":7,'));
  });

  test("imported pets appear, also on cached pages", async () => {
    const { key } = await createdWithoutLimits();
    const page = "/pets?limit=100&status=sold";
    for (let i = 0; i < 4; i++) expect((await get(server.url + page, key)).status).toBe(200);
    cli.input = '{"name":"imported","categoryId":1,"status":"sold"}\n';
    expect(await cli.run("import -")).toMatchObject({ code: 0 });
    await repeat(page, key, (body) => body.includes('"imported"'));
    for (let i = 0; i < 4; i++) await get(`${server.url}/pets?limit=2`, key);
    cli.input = "id,name,categoryId\n1,Rex,7\n";
    expect((await cli.run("import - --keep-ids --on-conflict replace")).code).toBe(0);
    await repeat("/pets?limit=2", key, (body) => body.includes('{"id":1,"name":"Rex","categoryId":7}'));
  });
});

const health = (port: number) => cli.run(["health", "--port", `${port}`]);

test("health succeeds while the server serves, and fails while it drains and when it has stopped", async () => {
  let status = 200;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => new Response(null, { status: url.endsWith("/healthz") ? status : 404 }),
  });
  const port = Number(server.port);
  const url = `http://127.0.0.1:${port}/healthz`;
  expect(await health(port)).toEqual({ code: 0, out: `The server at ${url} serves.\n`, err: "" });

  // It asks the server itself, whatever proxy the environment names.
  const proxy = "http://127.0.0.1:1";
  const variables = { HTTP_PROXY: proxy, http_proxy: proxy };
  const child = spawnPetstore(["health", "--port", `${port}`], { variables });
  expect(await resultOf(child)).toMatchObject({ code: 0, err: "" });

  status = 503;
  expect(await health(port)).toEqual(failure(`the server at ${url} responds with 503; it is about to stop`));
  await server.stop(true);
  expect(await health(port)).toEqual(failure(`the server at ${url} does not respond (ECONNREFUSED)`));
});

test("--no-first-key creates no key, and a later start without it does", async () => {
  const first = await cli.serve(["--no-first-key"]);
  expect(first.startMessage).not.toContain("API key");
  await first.stop();
  expect(await cli.json<unknown[]>("keys", "list")).toEqual([]);
  const second = await cli.serve();
  expect(second.startMessage).toContain("Created the first API key (free plan");
  await second.stop();
});

test.each(["http", "https"])(
  "health without a port asks the server of the data directory over %s",
  async (scheme) => {
    // Nobody else has signed the certificate.
    const directory = cliDirectory();
    const files = { cert: join(directory, "a.crt"), key: join(directory, "a.key") };
    const certificate = certificateOf("petstore.test");
    for (const part of ["cert", "key"] as const) writeFileSync(files[part], certificate[part]);
    const tls = scheme === "https" ? ["--tls-cert", files.cert, "--tls-key", files.key] : [];
    const server = await cli.serve(["--port", "0", ...tls]);
    expect(server.url).toStartWith(`${scheme}://`);
    const { origin } = new URL(server.url);
    expect(await cli.run("health")).toMatchObject({
      code: 0,
      out: `The server at ${origin}/healthz serves.\n`,
    });
    await server.stop();
    expect(existsSync(join(cli.dataDir, "production-url"))).toBeFalse();
  },
);

test("health fails while the certificate is not valid, and warns from 14 days before its end", async () => {
  const directory = cliDirectory();
  const files = { cert: join(directory, "a.crt"), key: join(directory, "a.key") };
  const day = (offset: number) => new Date(cli.clock.now() + offset * 86_400_000);
  const healthOf = async (validity: Parameters<typeof certificateOf>[1]) => {
    const certificate = certificateOf("petstore.test", validity);
    for (const part of ["cert", "key"] as const) writeFileSync(files[part], certificate[part]);
    await using _ = await cli.serve(["--tls-cert", files.cert, "--tls-key", files.key]);
    const { code, out, err } = await cli.run("health");
    return { code, text: (out + err).replaceAll(/https:\S+/g, "URL") };
  };
  const text = (date: Date) => new X509Certificate(certificateOf("x", { validTo: date }).cert).validTo;
  const renew = "renew the certificate; a running server takes the new files within seconds";
  expect(await healthOf({ validTo: day(-1) })).toEqual({
    code: 1,
    text: `the server at URL the certificate expired on ${text(day(-1))}; ${renew}`,
  });
  expect(await healthOf({ validFrom: day(1) })).toEqual({
    code: 1,
    text: `the server at URL the certificate is valid from ${text(day(1))} on; check the clock, or wait until then`,
  });
  expect(await healthOf({ validTo: day(13) })).toEqual({
    code: 0,
    text: `warning: the certificate expires on ${text(day(13))}; ${renew}\nThe server at URL serves.\n`,
  });
});

test("a server that accepts and never responds is a failure after two seconds", async () => {
  const { setTimeout } = scheduler;
  const soon = spyOn(scheduler, "setTimeout").mockImplementation((work, ms) => setTimeout(work, ms / 100));
  using silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  expect((await health(silent.port)).err).toEndWith(" does not respond (timeout)");
  expect(soon).toHaveBeenCalledWith(expect.any(Function), 2_000);
  soon.mockRestore();
});

test("a first start whose output and log are one file writes JSON on every line", async () => {
  const dataDir = cliDirectory();
  const file = join(dataDir, "journal");
  const flags = `--port 0 --admin-address 127.0.0.1:0 --data ${dataDir}`;
  const server = spawnTracked(["sh", "-c", `exec "${EXECUTABLE}" serve ${flags} > "${file}" 2>&1`], {
    cwd: dataDir,
  });
  await until(() => existsSync(file) && readFileSync(file, "utf8").includes('"server.started"'), 10_000);
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  const events = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line): string => JSON.parse(line).event);
  expect(events).toContain("key.first-created");
});
