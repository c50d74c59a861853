import { afterAll, beforeAll, expect, test } from "bun:test";
import { type PetstoreServer, startPetstore } from "../../../trials/harness/petstore.ts";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import type { Server } from "../../../trials/harness/server.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { until } from "../../timing.ts";

const TOKEN = "the-token-of-the-operators";
let postgres: Server;
let valkey: Server;
let server: PetstoreServer;
/** Its data directory cannot be written to. */
let readOnly: PetstoreServer;

beforeAll(async () => {
  [postgres, valkey] = await Promise.all([startPostgres(), startValkey()]);
  const storage = ["--database-url", postgres.url, "--limits-url", valkey.url, "--port", "0"];
  const admin = ["--admin-address", "127.0.0.1:0"];
  server = await startPetstore([...storage, ...admin, "--admin-token", TOKEN]);
  readOnly = await startPetstore([...storage, ...admin, "--data", "/proc/petstore"]);
}, 60_000);
afterAll(async () => {
  await Promise.all([server.stop(), readOnly.stop()]);
  await Promise.all([postgres.stop(), valkey.stop()]);
});

const get = (path: string) =>
  fetch(server.adminUrl + path, { headers: { Authorization: `Bearer ${TOKEN}` } });
const ready = async (query = "") => {
  const response = await fetch(`${server.adminUrl}/readyz${query}`);
  return { status: response.status, text: await response.text() };
};

test("a server that cannot write its token keeps one in memory, and says so", async () => {
  expect(readOnly.log.find(({ event }) => event === "admin.token-not-saved")?.level).toBe("warn");
  expect((await fetch(`${readOnly.adminUrl}/readyz`)).status).toBe(200);
});

test("while Valkey is unavailable: not ready, unless that check is excluded; usage is unknown", async () => {
  await valkey.stop();
  await until(async () => (await ready()).status === 503);
  expect((await ready()).text).toContain("[-]rate-limiter failed\n");
  expect((await ready("?exclude=rate-limiter")).status).toBe(200);
  expect(await (await get("/api/server")).json()).toMatchObject({
    rateLimiter: { kind: "Valkey", state: "unavailable", latencyMs: null },
  });
  const { items } = Object(await (await get("/api/keys")).json());
  expect(items).toMatchObject([{ id: 1, state: "active", usage: null, strikes: null }]);
  expect(Object(await (await get("/api/overview")).json()).bannedKeys).toBeNull();
  await valkey.restart();
  await until(async () => (await ready()).status === 200);
}, 60_000);

test("while PostgreSQL is unavailable: not ready, nobody signs in, and who was there before is still let in", async () => {
  const post = (path: string, body: object) =>
    fetch(server.adminUrl + path, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify(body),
    });
  const { token } = Object(await (await post("/api/operators", { name: "prom", role: "metrics" })).json());
  const scrape = async (secret: string) =>
    (await fetch(`${server.adminUrl}/metrics`, { headers: { Authorization: `Bearer ${secret}` } })).status;
  expect(await scrape(token)).toBe(200);
  await postgres.stop();
  await until(async () => (await ready()).status === 503);
  expect((await ready()).text).toContain("[-]database failed\n");
  expect((await fetch(`${server.adminUrl}/livez`)).status).toBe(200);
  const signIn = await fetch(`${server.adminUrl}/api/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token: TOKEN }),
  });
  expect([signIn.status, signIn.headers.get("set-cookie")]).toEqual([503, null]);
  // Who has a session or the token still sees the state of the server.
  expect(await (await get("/api/server")).json()).toMatchObject({ database: { state: "unavailable" } });
  const keys = await get("/api/keys");
  expect([keys.status, keys.headers.get("retry-after"), Object(await keys.json()).code]).toEqual([
    503,
    "1",
    "unavailable",
  ]);
  expect([await scrape(token), await scrape(TOKEN), await scrape("not-known")]).toEqual([200, 200, 503]);
  await postgres.restart();
  await until(async () => (await ready()).status === 200);
}, 60_000);
