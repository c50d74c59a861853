import { afterAll, beforeAll, expect, test } from "bun:test";
import { rateLimitStatus, type RateLimitStatus } from "../../../harness/api-client.ts";
import { sendBurst } from "../../../harness/burst.ts";
import { Fleet } from "../../../harness/fleet.ts";
import { postgresUrl } from "../../../harness/postgres.ts";
import { valkeyUrl } from "../../../harness/valkey.ts";
import { openStores } from "../../../src/adapters.ts";

let fleet: Fleet;
let databaseUrl: string;
beforeAll(async () => {
  databaseUrl = await postgresUrl();
  const storage = ["--database-url", databaseUrl, "--limits-url", await valkeyUrl()];
  // On a busy machine Valkey may take longer than the default of 25 ms.
  fleet = await Fleet.start({
    size: 4,
    storage,
    flags: ["--limits-timeout", "1s"],
  });
}, 30_000);
afterAll(() => fleet.stop());

/** Continues to send requests after a 429. */
async function getBanned(url: string, key: string): Promise<void> {
  while ((await rateLimitStatus(url, key)).code !== "key_banned");
}

/** Every server has to reach the status within a second. */
async function everyServer(key: string, isExpected: (status: RateLimitStatus) => boolean): Promise<void> {
  const deadline = performance.now() + 1_000;
  const reach = async (url: string) => {
    for (;;) {
      const status = await rateLimitStatus(url, key);
      if (isExpected(status)) return;
      if (performance.now() > deadline) throw new Error(`after a second still ${JSON.stringify(status)}`);
      await Bun.sleep(20);
    }
  };
  await Promise.all(fleet.urls.map(reach));
}

test("four servers: of 2,000 concurrent requests on a Free key exactly 60 are allowed", async () => {
  const { key } = await fleet.createKey("free");
  const responses = await sendBurst(fleet.ports, key, 2_000);
  expect(responses.filter(({ status }) => status === 429)).toHaveLength(1_940);
  const allowed = responses.filter(({ status }) => status === 200);
  const remaining = allowed.map(({ headers }) => Number(headers["x-ratelimit-remaining"]));
  expect(remaining.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i));
}, 20_000);

test("four servers: a ban on one is a ban on all, and keys unban lifts it on all within a second", async () => {
  const { id, key } = await fleet.createKey("enterprise", "--per-minute", "2", "--per-day", "9");
  await getBanned(fleet.urls[0] ?? "", key);
  for (const url of fleet.urls) {
    const { code, remaining, retryAfter } = await rateLimitStatus(url, key);
    expect({ code, remaining }).toEqual({ code: "key_banned", remaining: 0 });
    expect(retryAfter).toBeWithin(290, 301);
  }
  const { bannedUntil, usage } = await fleet.keys("show", id);
  expect(Date.parse(String(bannedUntil))).toBeWithin(Date.now() + 280_000, Date.now() + 301_000);
  expect(usage).toMatchObject({ minute: { used: 2, limit: 2 }, day: { used: 2, limit: 9 } });

  await fleet.keys("unban", id);
  await everyServer(key, ({ code }) => code === "rate_limited");
}, 20_000);

test("four servers: a ban has one audit entry and one event, by the server that decided it", async () => {
  const { id, key } = await fleet.createKey("enterprise", "--per-minute", "2", "--per-day", "9");
  await Promise.all(fleet.urls.map((url) => getBanned(url, key)));
  const stores = await openStores({ environment: "production", dataDir: "", databaseUrl });
  const target = { kind: "key", id: BigInt(id) } as const;
  const entries = async () =>
    (await stores.audit.listAudit({ action: "key.banned", target, limit: 10 })).items;
  const deadline = performance.now() + 2_000;
  while ((await entries()).length === 0 && performance.now() < deadline) await Bun.sleep(20);
  expect(await entries()).toMatchObject([{ actor: { kind: "server" }, target }]);
  await stores.close();
  const isOfKey = (text: string) => String(JSON.parse(text).keyId) === id;
  const events = fleet.logs.flat().filter(({ event, text }) => event === "key.banned" && isOfKey(text));
  expect(events).toHaveLength(1);
}, 20_000);

test("four servers: a change of plan reaches all within a second, and usage is unchanged", async () => {
  const { id, key } = await fleet.createKey("free");
  for (const url of fleet.urls) await rateLimitStatus(url, key);
  await fleet.keys("set-plan", id, "pro");
  await everyServer(key, ({ limit }) => limit === 300);
  const { usage } = await fleet.keys("show", id);
  const { remaining } = await rateLimitStatus(fleet.urls[0] ?? "", key);
  expect(usage).toMatchObject({ minute: { used: 299 - remaining } });
}, 20_000);

test("four servers: a new secret works on all at once, and the old one stops on all within a second", async () => {
  const { id, key } = await fleet.createKey("free");
  await everyServer(key, ({ status }) => status === 200);
  const rolled = await fleet.keys("roll", id, "--overlap", "0");
  for (const url of fleet.urls) expect((await rateLimitStatus(url, String(rolled.key))).status).toBe(200);
  await everyServer(key, ({ code }) => code === "invalid_api_key");
}, 20_000);

test("four servers: a revoked key is rejected by all within a second", async () => {
  const { id, key } = await fleet.createKey("free");
  await everyServer(key, ({ status }) => status === 200);
  await fleet.keys("revoke", id);
  await everyServer(key, ({ code }) => code === "invalid_api_key");
}, 20_000);

test("keys list and keys show give the usage that Valkey stores", async () => {
  const { id, key } = await fleet.createKey("free");
  for (const url of fleet.urls) await rateLimitStatus(url, key);
  const usage = { minute: { used: 4, limit: 60 }, day: { used: 4, limit: 1_000 } };
  expect(await fleet.keys("show", id)).toMatchObject({ usage, strikes: 0, bannedUntil: null });
  const all = Object.values(await fleet.keys("list"));
  expect(all.find((each) => String(idOf(each)) === id)).toMatchObject({ usage });
}, 20_000);

function idOf(view: unknown): unknown {
  return typeof view === "object" && view !== null && "id" in view ? view.id : undefined;
}
