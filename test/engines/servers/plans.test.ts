import { afterAll, beforeAll, expect, test } from "bun:test";
import { openStores } from "../../../src/adapters/open-stores.ts";
import { NO_ACTIVITY } from "../../../src/domain/servers.ts";
import { rateLimitStatus } from "../../../trials/harness/api-client.ts";
import {
  adminFlags,
  createKey,
  type PetstoreServer,
  runPetstore,
  startPetstore,
  succeed,
} from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { freePorts } from "../../../trials/harness/server.ts";
import { bearer } from "../../bearer.ts";
import { dataIn } from "../../data-directory.ts";
import { until } from "../../timing.ts";

/* Servers that share PostgreSQL, and with them the limits of the plans and the ban rules. */

const databaseUrl = await postgresUrl();
const storage = ["--database-url", databaseUrl];
const TOKEN = "the-token-of-all-servers";
const PUBLIC_URL = ["--public-url", "https://api.example.com"];
const shared = [...adminFlags(TOKEN), ...storage];

async function start(...flags: string[]): Promise<PetstoreServer> {
  const [port = 0] = freePorts(1);
  const argv = ["--port", `${port}`, ...shared, ...flags];
  // On a busy machine PostgreSQL may respond too late for a start.
  const server = await startPetstore(argv).catch(() => startPetstore(argv));
  return { ...server, url: `http://127.0.0.1:${port}/v1` };
}

let first: PetstoreServer;
let key: string;
beforeAll(async () => {
  first = await start(...PUBLIC_URL);
  ({ key } = await createKey(storage, "free"));
}, 60_000);
afterAll(() => first.stop());

async function call<T>({ adminUrl }: PetstoreServer, path: string, body?: object): Promise<T> {
  const headers = { ...bearer(TOKEN), "Content-Type": "application/json" };
  const change = body && { method: "PATCH", body: JSON.stringify(body) };
  const response = await fetch(adminUrl + path, { headers, ...change });
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

const limitOn = async ({ url }: PetstoreServer) => (await rateLimitStatus(url, key)).limit;

/** The limits of requests that are sent to the servers in turn. */
async function limitsInTurn(servers: readonly PetstoreServer[], requests: number): Promise<Set<number>> {
  const limits = new Set<number>();
  for (let i = 0; i < requests; i++) limits.add((await limitOn(servers[i % servers.length] ?? first)) ?? 0);
  return limits;
}

interface Entry {
  readonly actor: object;
  readonly before: object | null;
  readonly after: object;
}
const planEntries = async () =>
  (await call<{ items: Entry[] }>(first, "/api/audit?action=plan.updated")).items;

test("limits and ban rules that one server changes reach all, and stay after a restart", async () => {
  const second = await start(...PUBLIC_URL);
  const both = [first, second];
  await call(first, "/api/plans", { plan: "free", perMinute: 50, perDay: 500 });
  expect(await limitOn(first)).toBe(50);
  await until(async () => (await limitOn(second)) === 50, 1_000);
  expect(await limitsInTurn(both, 10)).toEqual(new Set([50]));
  await succeed("plans", "update", "free", "--per-day", "400", ...storage);
  await succeed("ban-rules", "update", "--strikes", "7", ...storage);
  await second.stop();
  await first.stop();
  first = await start(...PUBLIC_URL);
  expect(await limitOn(first)).toBe(50);
  expect(await call(first, "/api/ban-rules")).toMatchObject({ strikes: 7 });
  expect(await planEntries()).toMatchObject([
    { actor: { kind: "command line" }, before: { perDay: 500 }, after: { plan: "free", perDay: 400 } },
    { actor: { kind: "admin API" }, after: { plan: "free", perMinute: 50, perDay: 500 } },
  ]);
}, 120_000);

interface Differing {
  readonly id: string;
  readonly differing: readonly { readonly name: string; readonly value: string }[];
}
const serversOn = async (server: PetstoreServer) =>
  (await call<{ items: Differing[] }>(server, "/api/servers")).items;

test("servers of another version, or with another public URL, are shown as differing", async () => {
  expect((await serversOn(first)).map(({ differing }) => differing)).toEqual([[]]);
  const second = await start("--public-url", "https://other.example.com");
  const urls = ["https://api.example.com/v1", "https://other.example.com/v1"];
  await until(async () => (await serversOn(second)).length === 2, 5_000);
  expect((await serversOn(second)).flatMap(({ differing }) => differing)).toEqual(
    urls.map((value) => ({ name: "public-url", value })),
  );
  const { out } = await runPetstore("servers", "list", ...storage);
  expect(out.match(/public-url/g)).toHaveLength(2);
  await second.stop();

  const old = { ...NO_ACTIVITY, id: "old", name: "web-9", version: "1.1.0-old", startedAt: 0 };
  const { serverReports, close } = await openStores(dataIn("", databaseUrl));
  const same = await start(...PUBLIC_URL);
  await until(async () => {
    await serverReports.report("old", JSON.stringify(old));
    return (await serversOn(same)).length === 3;
  }, 5_000);
  await close();
  const differing = (await serversOn(same)).map((server) => [server.id === "old", server.differing.length]);
  expect(differing.toSorted()).toEqual([
    [false, 0],
    [false, 0],
    [true, 1],
  ]);
  const headers = bearer(TOKEN);
  const metrics = await (await fetch(`${same.adminUrl}/metrics`, { headers })).text();
  expect(metrics).toContain("\npetstore_servers_differing_settings 1\n");
  await same.stop();
}, 120_000);
