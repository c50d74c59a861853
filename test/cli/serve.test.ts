import { afterAll, describe, expect, test } from "bun:test";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { freePort } from "../../harness/ports.ts";
import { serve, served } from "./serving.ts";
import { cleanUp, EXECUTABLE, petstore, spawnNpm, temporaryFolder } from "./workbench.ts";

afterAll(cleanUp);

const status = async (url: string, secret: string | undefined) =>
  (await fetch(`${url}/pets`, { headers: { Authorization: `Bearer ${secret}` } })).status;

/** Asks until the answer is the one awaited; a change that never comes fails by the test's own timeout. */
async function untilStatus(url: string, secret: string, awaited: number): Promise<number> {
  const since = performance.now();
  while ((await status(url, secret)) !== awaited);
  return performance.now() - since;
}

const NO_LIMITS = ["--plan", "enterprise", "--per-minute", "1000000", "--per-day", "1000000"];

describe("serve", () => {
  test("an empty machine gets a key that works when its line is pasted; later starts print none", async () => {
    const data = join(temporaryFolder(), "new", "data");
    const first = await serve(data);
    const origin = first.url.slice(0, -"/v1".length);
    expect(first.greeting).toBe(`Petstore is serving production. Stop it with Ctrl-C.

  Interface  ${origin}/v1
  Docs       ${origin}/docs
  OpenAPI    ${origin}/openapi.json
  Data       ${data}
  Limits     in process

No key existed yet, so here is one (free: 60 a minute, 1,000 a day):

  ${first.secret}

It will not be shown again: only a hash of it is kept. Try it:

  curl -i -H 'Authorization: Bearer ${first.secret}' ${origin}/v1/pets

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
      { id: 1, name: "first key", plan: "free", use: { day: { used: 2 } } },
    ]);
  });

  test("npm start takes flags, and a signal to npm stops the server behind it", async () => {
    const data = temporaryFolder();
    const { url, secret, stop } = await served(spawnNpm("start", "-s", "--", "--port", "0", "--data", data));
    expect(await status(url, secret)).toBe(200);
    expect(await stop("SIGTERM")).toBe(0);
    await expect(fetch(url)).rejects.toThrow();
  });

  test("staging and production share a folder, and neither takes the other's key", async () => {
    const data = temporaryFolder();
    const [production, staging] = await Promise.all([serve(data), serve(data, "--env", "staging")]);
    expect(staging.secret).toStartWith("pet_test_");
    expect(await status(staging.url, staging.secret)).toBe(200);
    expect(await status(staging.url, production.secret)).toBe(401);
    expect(await status(production.url, staging.secret)).toBe(401);
    expect(await Promise.all([production.stop("SIGTERM"), staging.stop("SIGTERM")])).toEqual([0, 0]);
  });

  test("keys made, rolled and revoked beside a running server count there within a second", async () => {
    const data = temporaryFolder();
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

  test("limits and bans are settings, and unban lifts one on a running server", async () => {
    const data = temporaryFolder();
    const bans = ["--ban-strikes", "1", "--ban-grace", "0", "--ban-length", "1h"];
    const { url, secret = "", stop } = await serve(data, "--free-limits", "1/10", ...bans);
    const code = async () => {
      const response = await fetch(`${url}/pets`, { headers: { Authorization: `Bearer ${secret}` } });
      return response.ok ? "ok" : String(Object(await response.json())["code"]);
    };
    expect(await code()).toBe("ok");
    let last = await code();
    expect(last).toBe("rate_limited");
    // Without grace the next refusal is a strike, once a millisecond has passed since the first.
    while (last === "rate_limited") last = await code();
    expect(last).toBe("key_banned");

    expect((await petstore("keys", "unban", "1", "--data", data)).code).toBe(0);
    while (last === "key_banned") last = await code();
    expect(last).toBe("rate_limited");
    expect(await stop("SIGTERM")).toBe(0);
  });

  test("a second server on the same folder is refused", async () => {
    const data = temporaryFolder();
    const { stop } = await serve(data);
    const { code, out, err } = await petstore("serve", "--port", "0", "--data", data);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(`petstore: another server is already running on ${data} (production)\n`);
    expect(await stop("SIGTERM")).toBe(0);
  });

  test("a port that is taken is named, and left to the server that has it", async () => {
    const data = temporaryFolder();
    const first = await serve(data, "--port", String(freePort()));
    const { port } = new URL(first.url);
    const { code, out, err } = await petstore("serve", "--port", port, "--data", temporaryFolder());
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(
      `petstore: cannot listen on 127.0.0.1 port ${port}: another program does so already; stop it or choose another --port\n`,
    );
    expect(await status(first.url, first.secret)).toBe(200);
    expect(await first.stop("SIGTERM")).toBe(0);
  });

  test.each([
    ["nosuch.invalid", "no such host"],
    ["203.0.113.1", "this machine has no such address"],
  ])("a host that cannot be listened on is named: %s", async (host, reason) => {
    const { code, out, err } = await petstore("serve", "--host", host, "--data", temporaryFolder());
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(`petstore: cannot listen on ${host} port 8080: ${reason}; see --host\n`);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "the log says what was started, and how it ended: %s",
    async (signal) => {
      const data = join(temporaryFolder(), "data");
      const { url, child, stop, log } = await serve(data);
      expect(await stop(signal)).toBe(0);
      const lines = (await log()).map((line) => /^\S+Z (\w+) (\w+) (.*)$/.exec(line)?.slice(1) ?? [line]);
      expect(lines.map(([level, event, details = ""]) => [level, event, JSON.parse(details)])).toEqual([
        [
          "info",
          "serving",
          {
            version: packageJson.version,
            environment: "production",
            address: url,
            store: `SQLite in ${data}`,
            limits: "in process",
            pid: child.pid,
          },
        ],
        ["info", "stopping", { signal }],
        ["info", "stopped", { afterMs: expect.any(Number) }],
      ]);
    },
  );

  test("a first key that cannot be shown is revoked, and how to get another is said", async () => {
    const data = join(temporaryFolder(), "data");
    const line = '"$0" "$1" serve --port 0 --data "$2" > /dev/full';
    const child = Bun.spawn(["bash", "-c", line, process.execPath, EXECUTABLE, data], { stderr: "pipe" });
    expect(await child.stderr.text()).toBe(
      "petstore: no space is left on the device, so the first key could not be shown and is revoked; make another with petstore keys create\n",
    );
    expect(await child.exited).toBe(1);
    expect(JSON.parse((await petstore("keys", "list", "--data", data, "--json")).out)).toMatchObject([
      { name: "first key", state: "revoked" },
    ]);
  });

  test("counts that cannot be read are in the way of a start, which says what to do", async () => {
    const data = temporaryFolder();
    const path = join(data, "production-limits.db");
    writeFileSync(path, "no database, ".repeat(100));
    const { code, out, err } = await petstore("serve", "--port", "0", "--data", data);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(
      `petstore: cannot open the database ${path}: file is not a database; counts start anew when that file is moved away\n`,
    );
  });

  test("the data is for the owner of the server alone", async () => {
    const data = join(temporaryFolder(), "new", "data");
    const { stop } = await serve(data);
    expect(statSync(data).mode & 0o777).toBe(0o700);
    expect(await stop("SIGTERM")).toBe(0);
  });

  test("the public address is what is shown", async () => {
    const { greeting, stop } = await serve(temporaryFolder(), "--public-url", "https://api.example.com/pets");
    expect(greeting).toContain("  Interface  https://api.example.com/pets/v1\n");
    expect(greeting).toContain("  OpenAPI    https://api.example.com/pets/openapi.json\n");
    expect(greeting).toContain("' https://api.example.com/pets/v1/pets\n");
    expect(await stop("SIGINT")).toBe(0);
  });
});
