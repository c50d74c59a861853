import { afterAll, describe, expect, test, setDefaultTimeout } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { freePort } from "../../harness/ports.ts";
import { serve, started } from "./server-process.ts";
import { cleanUp, EXECUTABLE, petstore, spawnNpm, spawnPetstore, temporaryDirectory } from "./cli.ts";

// Processes take long to start on a busy machine.
setDefaultTimeout(30_000);
afterAll(cleanUp);

const status = async (url: string, secret: string | undefined) =>
  (await fetch(`${url}/pets`, { headers: { Authorization: `Bearer ${secret}` } })).status;

/** Repeats a request until the response has this status, and returns the milliseconds that took. */
async function untilStatus(url: string, secret: string, expected: number): Promise<number> {
  const since = performance.now();
  while ((await status(url, secret)) !== expected);
  return performance.now() - since;
}

/** The server may also see the new key before it stops. */
const isOfProcess = ({ event }: { event: string }) => event !== "key.changed";

const NO_LIMITS = ["--plan", "enterprise", "--per-minute", "1000000", "--per-day", "1000000"];

describe("serve", () => {
  test("the first start creates a key that works; later starts create none", async () => {
    const data = join(temporaryDirectory(), "new", "data");
    const first = await serve(data);
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
  curl -i -H "Authorization: Bearer $(cat ${data}/production-first-key)" ${origin}/v1/pets

`);
    expect(await status(first.url, first.secret)).toBe(200);
    expect((await fetch(`${origin}/docs`)).status).toBe(200);
    expect((await fetch(`${origin}/openapi.json`)).status).toBe(200);
    expect(await first.stop("SIGTERM")).toBe(0);

    const second = await serve(data);
    expect(second.secret).toBeUndefined();
    expect(await status(second.url, first.secret)).toBe(200);
    expect(await second.stop("SIGINT")).toBe(0);
    expect(JSON.parse((await petstore("keys", "list", "--data", data, "--json")).out)).toMatchObject([
      { id: 1, name: "first key", plan: "free", usage: { day: { used: 2 } } },
    ]);
  });

  test("npm start takes flags, and a signal to npm stops the server", async () => {
    const data = temporaryDirectory();
    const { url, secret, stop } = await started(spawnNpm("start", "-s", "--", "--port", "0", "--data", data));
    expect(await status(url, secret)).toBe(200);
    expect(await stop("SIGTERM")).toBe(0);
    await expect(fetch(url)).rejects.toThrow();
  });

  test("staging and production share a data directory, and neither accepts the other's key", async () => {
    const data = temporaryDirectory();
    const [production, staging] = await Promise.all([serve(data), serve(data, "--env", "staging")]);
    expect(staging.secret).toStartWith("pet_test_");
    expect(await status(staging.url, staging.secret)).toBe(200);
    expect(await status(staging.url, production.secret)).toBe(401);
    expect(await status(production.url, staging.secret)).toBe(401);
    expect(await Promise.all([production.stop("SIGTERM"), staging.stop("SIGTERM")])).toEqual([0, 0]);
  });

  test("a running server follows keys create, roll and revoke within a second", async () => {
    const data = temporaryDirectory();
    const { url, stop } = await serve(data);
    const keys = async (...argv: string[]) => {
      const { code, out, err } = await petstore("keys", ...argv, "--data", data, "--json");
      expect({ code, err }).toEqual({ code: 0, err: "" });
      return JSON.parse(out);
    };
    const created = await keys("create", "--name", "app", ...NO_LIMITS);
    expect(await status(url, created.key)).toBe(200);

    const rolled = await keys("roll", String(created.id), "--overlap", "0");
    expect(await status(url, rolled.key)).toBe(200);
    expect(await untilStatus(url, created.key, 401)).toBeLessThan(1_000);

    await keys("revoke", String(created.id));
    expect(await untilStatus(url, rolled.key, 401)).toBeLessThan(1_000);
    expect(await stop("SIGTERM")).toBe(0);
  });

  test("rate limits and bans are settings, and keys unban works on a running server", async () => {
    const data = temporaryDirectory();
    const bans = ["--ban-strikes", "1", "--ban-grace", "0", "--ban-length", "1h"];
    const { url, secret = "", stop } = await serve(data, "--free-limits", "1/10", ...bans);
    const code = async () => {
      const response = await fetch(`${url}/pets`, { headers: { Authorization: `Bearer ${secret}` } });
      return response.ok ? "ok" : String(Object(await response.json())["code"]);
    };
    expect(await code()).toBe("ok");
    let last = await code();
    expect(last).toBe("rate_limited");
    // With a grace period of 0, a rejected request is a strike from the next millisecond on.
    while (last === "rate_limited") last = await code();
    expect(last).toBe("key_banned");

    expect((await petstore("keys", "unban", "1", "--data", data)).code).toBe(0);
    while (last === "key_banned") last = await code();
    expect(last).toBe("rate_limited");
    expect(await stop("SIGTERM")).toBe(0);
  });

  test("a second server on the same data directory fails", async () => {
    const data = temporaryDirectory();
    const { stop } = await serve(data);
    const { code, out, err } = await petstore("serve", "--port", "0", "--data", data);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(`petstore: another server is already running on ${data} (production)\n`);
    expect(await stop("SIGTERM")).toBe(0);
  });

  test("a port in use is an error, and the server on it keeps working", async () => {
    const data = temporaryDirectory();
    const first = await serve(data, "--port", String(freePort()));
    const { port } = new URL(first.url);
    const { code, out, err } = await petstore("serve", "--port", port, "--data", temporaryDirectory());
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(
      `petstore: cannot listen on 127.0.0.1 port ${port}: the port is in use; stop the other program or choose another --port\n`,
    );
    expect(await status(first.url, first.secret)).toBe(200);
    expect(await first.stop("SIGTERM")).toBe(0);
  });

  test.each([
    ["nosuch.invalid", "there is no such host"],
    ["203.0.113.1", "this machine does not have that address"],
  ])("--host %s cannot be listened on", async (host, reason) => {
    const { code, out, err } = await petstore("serve", "--host", host, "--data", temporaryDirectory());
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(`petstore: cannot listen on ${host} port 8080: ${reason}; see --host\n`);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "the log has the start and the stop: %s",
    async (signal) => {
      const data = join(temporaryDirectory(), "data");
      const { url, adminUrl, child, stop, log } = await serve(data);
      expect(await stop(signal)).toBe(0);
      const lines = (await log()).map((line) => JSON.parse(line));
      expect(lines.map(({ time: _time, message: _message, ...rest }) => rest).filter(isOfProcess)).toEqual([
        { level: "info", event: "key.first-created", file: join(data, "production-first-key") },
        {
          level: "info",
          event: "admin.started",
          url: adminUrl,
          tokenFile: join(data, "production-admin-token"),
        },
        {
          level: "info",
          event: "server.started",
          version: packageJson.version,
          environment: "production",
          url,
          data: `SQLite in ${data}`,
          rateLimits: "in the server process",
          pid: child.pid,
        },
        { level: "info", event: "server.stopping", signal },
        { level: "info", event: "server.stopped", afterMs: expect.any(Number) },
      ]);
    },
  );

  test("a first key whose message cannot be printed is revoked, and its file removed", async () => {
    const data = join(temporaryDirectory(), "data");
    const line = '"$0" serve --port 0 --data "$1" > /dev/full';
    const child = Bun.spawn(["bash", "-c", line, EXECUTABLE, data], { stderr: "pipe" });
    expect(await child.stderr.text()).toBe(
      "petstore: no space is left on the device; nobody received the first key, so it is revoked; create another with petstore keys create\n",
    );
    expect(await child.exited).toBe(1);
    expect(existsSync(join(data, "production-first-key"))).toBeFalse();
    expect(JSON.parse((await petstore("keys", "list", "--data", data, "--json")).out)).toMatchObject([
      { name: "first key", state: "revoked" },
    ]);
  });

  test("warnings about plain text come before the line that says it is serving", async () => {
    const { stop, log } = await serve(temporaryDirectory(), "--host", "0.0.0.0");
    expect(await stop("SIGTERM")).toBe(0);
    const lines = (await log()).map((line) => JSON.parse(line)).filter(isOfProcess);
    expect(lines.map(({ event }) => event)).toEqual([
      "key.first-created",
      "connections.plain-text",
      "admin.started",
      "server.started",
      "server.stopping",
      "server.stopped",
    ]);
  });

  test("--env-file is read for serve and for commands", async () => {
    const directory = temporaryDirectory();
    const file = join(directory, "petstore.env");
    writeFileSync(file, `PETSTORE_DATA=${directory}/pets\nPETSTORE_FREE_LIMITS=7/80\nPETSTORE_PORT=0\n`);
    const { startMessage, stop } = await started(spawnPetstore(["serve", "--env-file", file]));
    expect(startMessage).toContain(`  Data         ${directory}/pets\n`);
    expect(startMessage).toContain("(free plan, 7 requests per minute, 80 per day)");
    const { out } = await petstore("keys", "list", "--env-file", file, "--json");
    expect(JSON.parse(out)).toMatchObject([{ id: 1, limits: { perMinute: 7, perDay: 80 } }]);
    expect(await stop("SIGTERM")).toBe(0);
  });

  test("a damaged usage store prevents the start", async () => {
    const data = temporaryDirectory();
    const path = join(data, "production-limits.db");
    writeFileSync(path, "no database, ".repeat(100), { mode: 0o600 });
    const { code, out, err } = await petstore("serve", "--port", "0", "--data", data);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toStartWith(`petstore: cannot open the database ${path}: file is not a database; `);
  });

  test("the start message has the public URL", async () => {
    const { startMessage, stop } = await serve(
      temporaryDirectory(),
      "--public-url",
      "https://api.example.com/pets",
    );
    expect(startMessage).toContain("  API          https://api.example.com/pets/v1\n");
    expect(startMessage).toContain("  OpenAPI      https://api.example.com/pets/openapi.json\n");
    expect(startMessage).toContain('" https://api.example.com/pets/v1/pets\n');
    expect(await stop("SIGINT")).toBe(0);
  });
});
