import { afterAll, beforeAll, expect, test } from "bun:test";
import { postgresUrl } from "../engines/postgres.ts";
import { valkeyUrl } from "../engines/valkey.ts";
import { ask, everywhere } from "./asking.ts";
import { Fleet } from "./fleet.ts";
import { storm } from "./storm.ts";

let fleet: Fleet;
beforeAll(async () => {
  const place = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
  // A machine that runs all of this at once may well leave Valkey silent for the usual 25 ms without its being away.
  fleet = await Fleet.start({ size: 4, place, flags: ["--limits-timeout", "1s"] });
}, 30_000);
afterAll(() => fleet.stop());

/** Goes on asking, as a client that does not listen does. */
async function getBanned(url: string, key: string): Promise<void> {
  while ((await ask(url, key)).code !== "key_banned");
}

test("four servers: of 2,000 requests at once on a Free key exactly 60 are admitted", async () => {
  const { key } = await fleet.newKey("free");
  const heard = await storm(fleet.urls, key, 2_000);
  expect(heard.filter(({ status }) => status === 429)).toHaveLength(1_940);
  const left = heard.filter(({ status }) => status === 200).map(({ remaining }) => remaining);
  expect(left.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i));
}, 20_000);

test("four servers: a ban earned on one holds on all, and keys unban lifts it on all within a second", async () => {
  const { id, key } = await fleet.newKey("enterprise", "--per-minute", "2", "--per-day", "9");
  await getBanned(fleet.urls[0] ?? "", key);
  for (const url of fleet.urls) {
    const { code, remaining, retryAfter } = await ask(url, key);
    expect({ code, remaining }).toEqual({ code: "key_banned", remaining: 0 });
    expect(retryAfter).toBeWithin(290, 301);
  }
  const { bannedUntil, usage } = await fleet.keys("show", id);
  expect(Date.parse(String(bannedUntil))).toBeWithin(Date.now() + 280_000, Date.now() + 301_000);
  expect(usage).toMatchObject({ minute: { used: 2, limit: 2 }, day: { used: 2, limit: 9 } });

  await fleet.keys("unban", id);
  await everywhere(fleet.urls, key, ({ code }) => code === "rate_limited");
}, 20_000);

test("four servers: a change of plan reaches all within a second, and what was used stays used", async () => {
  const { id, key } = await fleet.newKey("free");
  for (const url of fleet.urls) await ask(url, key);
  await fleet.keys("set-plan", id, "pro");
  await everywhere(fleet.urls, key, ({ limit }) => limit === 300);
  const { usage } = await fleet.keys("show", id);
  const { remaining } = await ask(fleet.urls[0] ?? "", key);
  expect(usage).toMatchObject({ minute: { used: 299 - remaining } });
}, 20_000);

test("four servers: a new secret works on all at once, and the old one stops on all within a second", async () => {
  const { id, key } = await fleet.newKey("free");
  await everywhere(fleet.urls, key, ({ status }) => status === 200);
  const rolled = await fleet.keys("roll", id, "--overlap", "0");
  for (const url of fleet.urls) expect((await ask(url, String(rolled.key))).status).toBe(200);
  await everywhere(fleet.urls, key, ({ code }) => code === "invalid_api_key");
}, 20_000);

test("four servers: a revoked key is refused by all within a second", async () => {
  const { id, key } = await fleet.newKey("free");
  await everywhere(fleet.urls, key, ({ status }) => status === 200);
  await fleet.keys("revoke", id);
  await everywhere(fleet.urls, key, ({ code }) => code === "invalid_api_key");
}, 20_000);

test("keys list and keys show give the counts that Valkey keeps", async () => {
  const { id, key } = await fleet.newKey("free");
  for (const url of fleet.urls) await ask(url, key);
  const spent = { minute: { used: 4, limit: 60 }, day: { used: 4, limit: 1_000 } };
  expect(await fleet.keys("show", id)).toMatchObject({ usage: spent, strikes: 0, bannedUntil: null });
  const all = Object.values(await fleet.keys("list"));
  expect(all.find((each) => String(idOf(each)) === id)).toMatchObject({ usage: spent });
}, 20_000);

function idOf(view: unknown): unknown {
  return typeof view === "object" && view !== null && "id" in view ? view.id : undefined;
}
