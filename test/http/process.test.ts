import { beforeEach, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import {
  createKey,
  type PetstoreServer,
  runKeysCommand,
  runPetstore,
  startPetstore,
} from "../../trials/harness/petstore.ts";
import { storePolicy } from "../../trials/harness/policy.ts";
import { RawConnection } from "../../trials/harness/http-connection.ts";
import { bearer } from "../bearer.ts";
import { until } from "../timing.ts";
import { withServiceValues } from "../pets.ts";

let directory = "";
beforeEach(() => void (directory = temporaryDirectory("http")));

const serve = (flags: readonly string[] = []) =>
  startPetstore(["--data", directory, "--port", "0", ...flags]);
const newKey = (...plan: string[]) => createKey(["--data", directory], ...plan);

const call = (server: PetstoreServer, key: string | undefined, path = "/pets", init: RequestInit = {}) =>
  fetch(server.url + path, {
    ...init,
    headers: { ...bearer(key), "Content-Type": "application/json" },
  });
const health = async ({ url }: PetstoreServer) => (await fetch(url.replace("/v1", "/healthz"))).status;
const remaining = (response: Response) => Number(response.headers.get("x-ratelimit-remaining"));
const codeOf = async (response: Response) => ((await response.json()) as { code?: string }).code;

test("SIGTERM: a request in progress gets its response, and the next start has its pet and the exact usage", async () => {
  const server = await serve();
  for (let i = 0; i < 25; i++) await call(server, server.key);
  const body = '{"name":"Last","categoryId":1}';
  const client = new RawConnection(Number(new URL(server.url).port));
  await client.write(
    `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
  );
  expect(await health(server)).toBe(200);
  const exit = server.stop("SIGTERM");
  await until(async () => (await health(server).catch(() => 0)) === 0, 5_000);
  await client.write(body.slice(5));
  const response = await client.rest();
  expect(response).toStartWith("HTTP/1.1 201");
  expect(response).toMatch(/connection: close/i);
  expect(await exit).toBe(0);

  const again = await serve();
  expect(again.key).toBeUndefined();
  const pets = await call(again, server.key);
  expect(remaining(pets)).toBe(60 - 27);
  const [last, ...others] = Object.values(Object(await pets.json()));
  expect(last).toEqual(withServiceValues({ id: 1, name: "Last", categoryId: 1 }, Object(last)));
  expect(others).toEqual([]);
  expect(await again.stop("SIGINT")).toBe(0);
}, 60_000);

test("a database that is deleted: the server stops within seconds with status 1, and the next start says why", async () => {
  const server = await serve();
  await call(server, server.key, "/pets", { method: "POST", body: '{"name":"Rex","categoryId":1}' });
  rmSync(`${directory}/production.db`);
  await until(() => server.log.some(({ event }) => event === "database.lost"), 2_000);
  expect(await server.stop()).toBe(1);
  const { code, err } = await runPetstore("serve", "--data", directory, "--port", "0");
  expect([code, err]).toEqual([1, expect.stringContaining("production-rescued.db")]);
  rmSync(`${directory}/production-rescued.db`);
  const begun = await serve(["--new-database"]);
  expect(await (await call(begun, begun.key)).json()).toEqual([]);
  await begun.stop();
}, 60_000);

test("SIGTERM with --drain-delay: /healthz responds 503 while the server still responds", async () => {
  const server = await serve(["--drain-delay", "60s"]);
  expect(await health(server)).toBe(200);
  const exit = server.stop("SIGTERM");
  await until(async () => (await health(server)) === 503, 5_000);
  const response = await call(server, server.key);
  expect([response.status, response.headers.get("connection")]).toEqual([200, "close"]);
  await server.stop("SIGKILL");
  await exit;
}, 60_000);

test("kill -9: acknowledged pets, usage and a ban are stored; `keys unban` before a start ends the ban", async () => {
  await storePolicy(["--data", directory], { ban: { graceMs: 0, strikes: 3 } });
  const server = await serve();
  const acknowledged: unknown[] = [];
  for (let i = 0; i < 30; i++) {
    const body = JSON.stringify({ name: `Rex ${i}`, categoryId: i });
    acknowledged.push(await (await call(server, server.key, "/pets", { method: "POST", body })).json());
  }
  await until(async () => {
    const { usage } = await runKeysCommand(["--data", directory], "show", "1");
    return JSON.stringify(usage).includes('"day":{"used":30,');
  }, 1_000);
  const { id, key } = await newKey("enterprise", "--per-minute", "1", "--per-day", "100");
  await until(async () => (await codeOf(await call(server, key))) === "key_banned", 15_000);
  // The ban is written after the response to the request that caused it, and before the next one.
  await call(server, key);
  await server.stop("SIGKILL");

  const second = await serve();
  const pets = await call(second, server.key, "/pets?limit=100");
  expect(await pets.json()).toEqual(acknowledged as never);
  expect(await codeOf(await call(second, key))).toBe("key_banned");
  await second.stop();

  expect((await runPetstore("keys", "unban", id, "--data", directory)).code).toBe(0);
  const third = await serve();
  expect(await codeOf(await call(third, key))).not.toBe("key_banned");
  await third.stop();
}, 60_000);
