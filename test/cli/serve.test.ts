import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { cleanUp, petstore, spawnNpm, spawnPetstore, temporaryFolder } from "./workbench.ts";

afterAll(cleanUp);

interface Served {
  readonly url: string;
  /** Everything that was said until it was ready. */
  readonly greeting: string;
  readonly secret: string | undefined;
  readonly child: ReturnType<typeof spawnPetstore>;
  stop(signal: "SIGTERM" | "SIGINT"): Promise<number>;
}

/** A server on a free port; resolves when it has said where it is. */
function serve(data: string, ...argv: string[]): Promise<Served> {
  return served(spawnPetstore(["serve", "--port", "0", "--data", data, ...argv]));
}

async function served(child: Served["child"]): Promise<Served> {
  const greeting = await untilReady(child);
  const [, url = ""] = /^ {2}Interface +(\S+)$/m.exec(greeting) ?? [];
  const [secret] = /pet_(?:live|test)_\w+/.exec(greeting) ?? [];
  return {
    url,
    greeting,
    secret,
    child,
    stop(signal) {
      child.kill(signal);
      return child.exited;
    },
  };
}

/** It greets in one write, so what has the last line of a greeting in it is all of it. */
async function untilReady({ stdout, stderr }: Served["child"]): Promise<string> {
  const decoder = new TextDecoder();
  let said = "";
  for await (const chunk of stdout) {
    said += decoder.decode(chunk, { stream: true });
    if (said.includes("\n  Data ")) return said;
  }
  throw new Error(`it did not start: ${await stderr.text()}`);
}

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
    expect(fetch(url)).rejects.toThrow();
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

  test("a port that is taken is named", async () => {
    using taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const { code, out, err } = await petstore(
      "serve",
      "--port",
      String(taken.port),
      "--data",
      temporaryFolder(),
    );
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe(
      `petstore: cannot listen on 127.0.0.1 port ${taken.port}: another program does so already; stop it or choose another --port\n`,
    );
  });

  test("the public address is what is shown", async () => {
    const { greeting, stop } = await serve(temporaryFolder(), "--public-url", "https://api.example.com/pets");
    expect(greeting).toContain("  Interface  https://api.example.com/pets/v1\n");
    expect(greeting).toContain("  OpenAPI    https://api.example.com/pets/openapi.json\n");
    expect(greeting).toContain("' https://api.example.com/pets/v1/pets\n");
    expect(await stop("SIGINT")).toBe(0);
  });
});
