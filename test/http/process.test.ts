import { beforeEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { temporaryFolder } from "../../harness/cleanup.ts";
import { createKey, type PetstoreServer, runPetstore, startPetstore } from "../../harness/petstore.ts";

let folder = "";
beforeEach(() => void (folder = temporaryFolder("http")));

const serve = (flags: readonly string[] = []) => startPetstore(["--data", folder, "--port", "0", ...flags]);
const newKey = (...plan: string[]) => createKey(["--data", folder], ...plan);

const call = (server: PetstoreServer, key: string | undefined, path = "/pets", init: RequestInit = {}) =>
  fetch(server.url + path, {
    ...init,
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
  });
const remaining = (response: Response) => Number(response.headers.get("x-ratelimit-remaining"));
const codeOf = async (response: Response) => ((await response.json()) as { code?: string }).code;

/** Repeats a check until it is true, for at most a second. */
async function withinASecond(check: () => Promise<boolean>): Promise<void> {
  const started = performance.now();
  while (!(await check())) {
    if (performance.now() - started > 1_000) throw new Error("not within a second");
    await Bun.sleep(20);
  }
}

describe("stopping", () => {
  test("SIGTERM: a request in progress gets its response with Connection: close, then exit 0", async () => {
    const server = await serve();
    const { hostname, port } = new URL(server.url);
    const body = '{"name":"Last","categoryId":1}';
    let response = "";
    const socket = connect(Number(port), hostname);
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("data", (chunk) => void (response += chunk.toString()));
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write(
      `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
    );
    await withinASecond(async () => (await call(server, server.key)).ok);
    const exit = server.stop("SIGTERM");
    await withinASecond(() =>
      call(server, server.key).then(
        () => false,
        () => true,
      ),
    );
    socket.write(body.slice(5));
    await closed;
    expect(response).toStartWith("HTTP/1.1 201");
    expect(response).toMatch(/connection: close/i);
    expect(await exit).toBe(0);

    const again = await serve();
    expect(again.key).toBeUndefined();
    expect(await (await call(again, server.key)).json()).toEqual([{ id: 1, name: "Last", categoryId: 1 }]);
    expect(await again.stop("SIGINT")).toBe(0);
  }, 20_000);

  test("SIGTERM with --drain-delay: /healthz responds 503 while the server still responds, then exit 0", async () => {
    const server = await serve(["--drain-delay", "1s"]);
    const health = server.url.replace("/v1", "/healthz");
    expect((await fetch(health)).status).toBe(200);
    const exit = server.stop("SIGTERM");
    await withinASecond(async () => (await fetch(health)).status === 503);
    const response = await call(server, server.key);
    expect([response.status, response.headers.get("connection")]).toEqual([200, "close"]);
    expect(await exit).toBe(0);
  });

  test("SIGTERM: a restart keeps the exact usage", async () => {
    const first = await serve();
    for (let i = 0; i < 25; i++) await call(first, first.key);
    await first.stop();
    const second = await serve();
    expect(remaining(await call(second, first.key))).toBe(60 - 26);
    await second.stop();
  });

  test("a second server with the same data folder exits with one line", async () => {
    const server = await serve();
    const { code, out, err } = await runPetstore("serve", "--port", "0", "--data", folder);
    expect({ code, out, lines: err.trim().split("\n").length }).toEqual({ code: 1, out: "", lines: 1 });
    await server.stop();
  });
});

describe("kill -9", () => {
  test("every acknowledged pet is stored, and at most a second of usage is lost", async () => {
    const server = await serve();
    const { key } = await newKey("free");
    const acknowledged: unknown[] = [];
    for (let i = 0; i < 30; i++) {
      const body = JSON.stringify({ name: `Rex ${i}`, categoryId: i });
      acknowledged.push(await (await call(server, key, "/pets", { method: "POST", body })).json());
    }
    await Bun.sleep(1_000);
    for (let i = 0; i < 5; i++) await call(server, key);
    await server.stop("SIGKILL");

    const again = await serve();
    const response = await call(again, key, "/pets?limit=100");
    expect(await response.json()).toEqual(acknowledged as never);
    expect(remaining(response)).toBeLessThanOrEqual(60 - 30 - 1);
    expect(remaining(response)).toBeGreaterThanOrEqual(60 - 35 - 1);
    await again.stop();
  }, 20_000);

  test("a ban is stored at once, and `keys unban` ends it within a second", async () => {
    const flags = ["--ban-grace", "0s", "--ban-strikes", "3"];
    const server = await serve(flags);
    const { id, key } = await newKey("enterprise", "--per-minute", "1", "--per-day", "100");
    await call(server, key);
    const codes: (string | undefined)[] = [];
    while (codes.at(-1) !== "key_banned") {
      expect(codes.length).toBeLessThan(20);
      codes.push(await codeOf(await call(server, key)));
      await Bun.sleep(2);
    }
    await server.stop("SIGKILL");

    const again = await serve(flags);
    expect(await codeOf(await call(again, key))).toBe("key_banned");
    const { code } = await runPetstore("keys", "unban", id, "--data", folder);
    expect(code).toBe(0);
    await withinASecond(async () => (await codeOf(await call(again, key))) !== "key_banned");
    await again.stop();
  }, 20_000);

  test("`keys unban` without a running server takes effect at the next start", async () => {
    const flags = ["--ban-grace", "0s", "--ban-strikes", "1"];
    const server = await serve(flags);
    const { id, key } = await newKey("enterprise", "--per-minute", "1", "--per-day", "100");
    await call(server, key);
    await call(server, key);
    await Bun.sleep(2);
    expect(await codeOf(await call(server, key))).toBe("key_banned");
    await server.stop();
    await runPetstore("keys", "unban", id, "--data", folder);
    const again = await serve(flags);
    expect(await codeOf(await call(again, key))).not.toBe("key_banned");
    await again.stop();
  }, 20_000);
});

test("a client that sends without a pause does not delay other clients", async () => {
  const server = await serve();
  const { hostname, port } = new URL(server.url);
  const requests = Buffer.from("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2_000));
  const flood = connect(Number(port), hostname);
  // Each push in a turn of its own: a buffer that takes all at once would otherwise keep this very test from going on.
  const push = () => void (!flood.destroyed && flood.write(requests, () => setImmediate(push)));
  flood.on("error", () => {}).on("data", () => {});
  push();
  const longest = async () => {
    let ms = 0;
    for (let i = 0; i < 20; i++) {
      const started = performance.now();
      await call(server, server.key, "/pets");
      ms = Math.max(ms, performance.now() - started);
    }
    return ms;
  };
  expect(await longest()).toBeLessThan(1_000);
  flood.destroy();
  expect(await server.stop()).toBe(0);
}, 20_000);
