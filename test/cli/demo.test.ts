import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { openStores } from "../../src/adapters/open-stores.ts";
import { DEMO_CLIENTS } from "../../src/demo/clients.ts";
import { startDemo } from "../../src/demo/demo.ts";
import { earlierRequests } from "../../src/demo/history.ts";
import { DEFAULT_PLANS, limitsOf } from "../../src/domain/plans.ts";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import { newQuota, peek } from "../../src/domain/rate-limit.ts";
import { DAY_MS, HOUR_MS } from "../../src/text/time-units.ts";
import { NO_REQUESTS } from "../../src/domain/usage-history.ts";
import { silentLog } from "../../src/observe/log.ts";
import type { Key } from "../../src/operator/operations.ts";
import { scheduler, type Scheduler } from "../../src/runtime/scheduler.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import { freePort } from "../../trials/harness/server.ts";
import { bearer } from "../bearer.ts";
import { configIn, TestClock } from "../service.ts";
import { cleanUpAfterAll, InProcessCli, cliDirectory } from "./cli.ts";
import { until } from "../timing.ts";

cleanUpAfterAll();

/** The directory for temporary files, empty at first. */
let temporary: string;
const variables = { ...process.env };
beforeEach(() => void (temporary = cliDirectory()));
afterEach(() => {
  delete process.env["TMPDIR"];
  delete process.env["PETSTORE_FREE_LIMITS"];
  Object.assign(process.env, variables);
});

test("a newcomer sees keys of every plan, limits and a ban; the demo touches no other data and leaves nothing behind", async () => {
  const cli = new InProcessCli();
  const settings = { PETSTORE_FREE_LIMITS: "1000000/1000000" };
  Object.assign(process.env, settings, { TMPDIR: temporary });
  // Ten seconds pass within two. Faster, the clock would leave the requests behind on a busy machine.
  const { setTimeout } = globalThis;
  const sooner = (run: () => void, ms = 0) => setTimeout(run, ms / 5);
  const timers = spyOn(globalThis, "setTimeout").mockImplementation(Object.assign(sooner, setTimeout));
  const seconds = setInterval(() => cli.clock.advance(50), 10);

  const { message, lines, stop } = await cli.start("demo", settings);
  const [, url = ""] = /^ {2}API +(\S+)$/m.exec(message) ?? [];
  const [, secret = ""] = /Bearer (pet_live_\w+)/.exec(message) ?? [];
  const response = await fetch(`${url}/pets?limit=100`, { headers: bearer(secret) });
  expect([response.status, Object(await response.json()).length]).toEqual([200, 100]);

  await until(() => lines.some((line) => line.includes('"event":"key.banned"')), 10_000);
  clearInterval(seconds);
  timers.mockRestore();

  const [, nextCode = ""] = /^ {2}petstore (admin-url .*)$/m.exec(message) ?? [];
  expect(await cli.out(nextCode)).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?code=[\da-f]{40}\n$/);
  const [directory = ""] = readdirSync(temporary);
  const list = () => cli.json<Key[]>("keys", "list", "--data", join(temporary, directory));
  const isBanned = ({ state }: Key) => state === "banned";
  let keys = await list();
  // The server saves its quotas now and then.
  await until(async () => (keys = await list()).some(isBanned), 1_000);
  expect(keys.filter(isBanned).map(({ name }) => name)).toEqual(["Forgotten script"]);
  expect(new Set(keys.map(({ plan }) => plan))).toEqual(new Set(["free", "pro", "business", "enterprise"]));

  expect((await stop()).code).toBe(0);
  expect(readdirSync(temporary)).toEqual([]);
  expect(existsSync(cli.dataDir)).toBeFalse();
});

test("the demo listens where --port and --admin-address, or their variables, say", async () => {
  process.env["TMPDIR"] = temporary;
  const [port, adminPort] = [freePort(), freePort()];
  const variables = { PETSTORE_ADMIN_ADDRESS: `127.0.0.1:${adminPort}` };
  const { message, stop } = await new InProcessCli().start(`demo --port ${port}`, variables);
  expect(message).toContain(`http://127.0.0.1:${port}/v1`);
  expect(message).toContain(`http://127.0.0.1:${adminPort}/`);
  expect((await stop()).code).toBe(0);
});

test("the demo begins with a past: the plots of the console have the last hours at once", async () => {
  process.env["TMPDIR"] = temporary;
  const { message, stop } = await new InProcessCli().start("demo");
  const [, origin = "", code = ""] = /^ {2}Console +(\S+)\/\?code=(\w+)$/m.exec(message) ?? [];
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ code });
  const signedIn = await fetch(`${origin}/api/session`, { method: "POST", headers, body });
  expect(signedIn.status).toBe(200);
  const { secret } = Object(await signedIn.json());
  const cookie = signedIn.headers
    .getSetCookie()
    .map((line) => line.split(";")[0])
    .join("; ");
  for (const [range, steps] of [
    ["15m", 180],
    ["1h", 720],
    ["6h", 360],
  ] as const) {
    const response = await fetch(`${origin}/api/series?range=${range}`, {
      headers: { Cookie: cookie, "Petstore-Session": secret },
    });
    expect(response.status).toBe(200);
    const { requests, p50, totals } = Object(await response.json());
    expect(requests.success).toHaveLength(steps);
    expect(requests.success.filter((count: number | null) => count !== null).length).toBeGreaterThan(
      steps - 5,
    );
    expect(totals.success).toBeGreaterThan(100);
    // "Price comparison" begins a run of requests each 45 minutes, and each run reaches its limit once.
    if (range === "6h") expect(totals.limited).toBe(8);
    expect(p50.filter((ms: number | null) => ms !== null && ms < 2).length).toBeGreaterThan(steps / 4);
  }
  expect((await stop()).code).toBe(0);
});

test("a client that always sends requests was last used at the end of each hour of its past", () => {
  const client = DEMO_CLIENTS.find(({ key }) => key.name === "Mobile app");
  if (client === undefined) throw new Error("the demo has no such client");
  const { hours } = earlierRequests(client, Date.parse("2026-11-15T12:00:00Z"));
  expect(hours.size).toBeGreaterThan(4);
  for (const [start, { lastUsedAt }] of hours)
    expect(lastUsedAt - start).toBeWithin(HOUR_MS - 60_000, HOUR_MS);
});

interface Timer {
  readonly at: number;
  readonly work: () => void;
}

/** Timers that are due by a test clock. Each client has one, except while it waits for a response. */
class VirtualTime {
  readonly #timers: Timer[] = [];
  #added = Promise.withResolvers<void>();

  constructor(private readonly clock: TestClock) {}

  readonly scheduler: Scheduler = {
    ...scheduler,
    setTimeout: (work, ms) => {
      const timer = { at: this.clock.time + ms, work };
      this.#timers.push(timer);
      this.#added.resolve();
      return { unref() {}, close: () => void this.#remove(timer) };
    },
  };

  get timers(): number {
    return this.#timers.length;
  }

  #remove(timer: Timer): void {
    const index = this.#timers.indexOf(timer);
    if (index >= 0) this.#timers.splice(index, 1);
  }

  /** Lets time pass, one request at a time. */
  async pass(ms: number): Promise<void> {
    const until = this.clock.time + ms;
    for (;;) {
      const next = this.#timers.toSorted((a, b) => a.at - b.at)[0];
      if (next === undefined || next.at > until) break;
      this.#remove(next);
      this.clock.time = next.at;
      this.#added = Promise.withResolvers<void>();
      next.work();
      await this.#added.promise;
    }
    this.clock.time = until;
  }
}

test("after a quarter of an hour, quotas agree with the usage of 24 hours, and one client is out of quota", async () => {
  // The demo ends in the hour in which it began: the last 24 hours contain the same hour of the day before.
  const clock = new TestClock(Date.parse("2026-11-15T23:40:00Z"));
  const config = configIn(cliDirectory());
  const time = new VirtualTime(clock);
  const options = { clock, log: silentLog, shownSettings: [], scheduler: time.scheduler };
  const demo = await startDemo(config, options);
  await time.pass(15 * 60_000);
  expect(time.timers).toBeGreaterThan(0);
  await demo[Symbol.asyncDispose]();
  expect(time.timers).toBe(0);

  const now = clock.now();
  const stores = await openStores(config);
  const { items: keys } = await stores.keys.listKeys({ sort: "id", isDescending: false, limit: 100, now });
  const totals = await stores.usageHistory.usageByKey({ by: "hour", since: now - DAY_MS, until: now });
  await stores.close();
  const quotas = openQuotaStore(config.directory.files.quotas);
  const clients = keys.map(({ id, name, plan, limits }) => {
    const quota = quotas.find({ kind: "key", id }) ?? newQuota();
    const { outcome } = peek(quota, limitsOf(plan, limits, DEFAULT_PLANS), now, DEFAULT_BAN);
    const { admitted, limited } = totals.find(({ keyId }) => keyId === id) ?? NO_REQUESTS;
    return { name, outcome, usedToday: quota.day.used, admitted, limited };
  });
  quotas.close();

  const namesOf = (some: typeof clients) => some.map(({ name }) => name);
  expect(clients.filter(({ usedToday, admitted }) => usedToday !== admitted)).toEqual([]);
  expect(namesOf(clients.filter(({ outcome }) => outcome !== "allowed"))).toEqual(["Forgotten script"]);
  const busy = ["Mobile app", "Web shop", "Shelter import", "Price comparison"];
  expect(namesOf(clients.filter(({ admitted }) => admitted > 500))).toEqual(busy);
  expect(namesOf(clients.filter(({ limited }) => limited > 0))).toEqual([
    "Price comparison",
    "Forgotten script",
  ]);
});
