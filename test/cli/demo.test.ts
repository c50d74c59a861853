import { afterEach, beforeEach, expect, jest, spyOn, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { openStores } from "../../src/adapters/open-stores.ts";
import { startApp } from "../../src/app.ts";
import { DEMO_CLIENTS } from "../../src/demo/clients.ts";
import { startDemo } from "../../src/demo/demo.ts";
import { earlierRequests, liveFigures, usageBatches } from "../../src/demo/history.ts";
import { addPetsAndOrders, startTraffic } from "../../src/demo/traffic.ts";
import { DEFAULT_PLANS, limitsOf } from "../../src/domain/plans.ts";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import { newQuota, peek } from "../../src/domain/rate-limit.ts";
import { DAY_MS, HOUR_MS } from "../../src/text/time-units.ts";
import { NO_REQUESTS, sumOfRequests } from "../../src/domain/usage-history.ts";
import { silentLog } from "../../src/observe/log.ts";
import type { Key } from "../../src/operator/operations.ts";
import { scheduler, type Scheduler } from "../../src/runtime/scheduler.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
import { Random } from "../../trials/harness/random.ts";
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
  jest.restoreAllMocks();
  delete process.env["TMPDIR"];
  delete process.env["PETSTORE_AUDIT_RETENTION"];
  Object.assign(process.env, variables);
});

test("a newcomer sees keys of every plan, limits and a ban; the demo touches no other data and leaves nothing behind", async () => {
  const cli = new InProcessCli({ hasData: false });
  const settings = { PETSTORE_AUDIT_RETENTION: "30d" };
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

test("the console says that it is a demo, and begins with a past: the plots of the console have the last hours at once", async () => {
  process.env["TMPDIR"] = temporary;
  const { message, stop } = await new InProcessCli().start("demo");
  const [, origin = "", code = ""] = /^ {2}Console +(\S+)\/\?code=(\w+)$/m.exec(message) ?? [];
  expect(await (await fetch(origin)).text()).toContain('<html lang="en" data-environment="demo">');
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
  const startedAt = Date.parse("2026-11-15T23:40:00Z");
  const clock = new TestClock(startedAt);
  const config = configIn(cliDirectory());
  const time = new VirtualTime(clock);
  const start = () => startApp(config, { clock, log: silentLog, isDemo: true });
  const demo = await startDemo(config.data, { clock, startApp: start, scheduler: time.scheduler });
  await time.pass(15 * 60_000);
  expect(time.timers).toBeGreaterThan(0);
  await demo[Symbol.asyncDispose]();
  expect(time.timers).toBe(0);

  const now = clock.now();
  const stores = await openStores(config.data);
  const { items: keys } = await stores.keys.listKeys({ sort: "id", isDescending: false, limit: 100, now });
  const totals = await stores.usageHistory.usageByKey({ by: "hour", since: now - DAY_MS, until: now });
  await stores.close();
  const quotas = openQuotaStore(config.data.directory.files.quotas);
  const clients = keys.map(({ id, name, plan, limits }) => {
    const quota = quotas.find({ kind: "key", id }) ?? newQuota();
    const { outcome } = peek(quota, limitsOf(plan, limits, DEFAULT_PLANS), now, DEFAULT_BAN);
    const { admitted, limited } = totals.find(({ keyId }) => keyId === id) ?? NO_REQUESTS;
    return { name, outcome, usedToday: quota.day.used, admitted, limited };
  });
  quotas.close();

  const daysBefore = (time: number | undefined) => time && (startedAt - time) / DAY_MS;
  expect(
    keys.map(({ name, createdAt, revokedAt, limits }) => [
      name,
      daysBefore(createdAt),
      daysBefore(revokedAt),
      limits,
    ]),
  ).toEqual([
    ["Mobile app", 180, undefined, undefined],
    ["Web shop", 150, undefined, undefined],
    ["Shelter import", 90, undefined, { perMinute: 6_000, perDay: 500_000 }],
    ["Price comparison", 60, undefined, undefined],
    ["Forgotten script", 45, undefined, undefined],
    ["Your key", 0, undefined, undefined],
    ["Old kiosk", 200, 12, undefined],
  ]);
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

/** What happens by chance is the same each time. */
function seedChance(): void {
  const random = new Random(7);
  spyOn(Math, "random").mockImplementation(() => random.fraction());
}

test("the sample usage has two months: days that resemble today, with fewer requests at weekends, and some errors", () => {
  seedChance();
  const now = Date.parse("2026-11-15T12:20:00Z");
  const clients = DEMO_CLIENTS.map((client, keyId) => ({ client, keyId, ...earlierRequests(client, now) }));
  const batches = [...usageBatches(clients, now)];
  expect(batches.map(({ writer, sequence }) => [writer, sequence])).toEqual(
    Array.from({ length: 550 }, (_, index) => ["demo", index + 1]),
  );
  const starts = batches.map(({ hour }) => new Date(hour).toISOString());
  expect([new Set(starts).size, starts[0], starts.at(-1)]).toEqual([
    550,
    "2026-09-16T03:00:00.000Z",
    "2026-11-15T12:00:00.000Z",
  ]);
  const table = clients.map(({ client, keyId, quota, hours }) => {
    const rows = batches.flatMap(({ hour, keys }) =>
      keys.flatMap((key) => (key.keyId === keyId ? { hour, ...key } : [])),
    );
    const { admitted, limited, errors } = sumOfRequests(rows);
    const timeOf = (row = rows[0]) => row && new Date(row.lastUsedAt).toISOString();
    const now = rows.at(-1)?.byOperation.map((each) => Object.values(each).join(" ")) ?? [];
    const numbers = [hours.size, rows.length, admitted, limited, errors, quota.day.used].join(" ");
    return [client.key.name, numbers, timeOf(), timeOf(rows.at(-1)), ...now];
  });
  expect(table).toEqual([
    ["Old kiosk", "0 0 0 0 0 0", undefined, undefined],
    [
      "Mobile app",
      "10 550 2455903 0 49116 54036",
      "2026-09-16T03:59:59.753Z",
      "2026-11-15T12:19:59.360Z",
      "listPets 1708 34",
      "getPet 320 6",
    ],
    [
      "Web shop",
      "10 550 308415 0 6182 6784",
      "2026-09-16T03:59:57.632Z",
      "2026-11-15T12:19:57.215Z",
      "placeOrder 72 1",
      "listPets 92 2",
      "updateOrder 51 1",
      "listOrders 38 1",
    ],
    [
      "Shelter import",
      "10 550 1228322 0 24576 27024",
      "2026-09-16T03:59:59.430Z",
      "2026-11-15T12:19:59.590Z",
      "createPet 613 12",
      "listPets 399 8",
    ],
    [
      "Price comparison",
      "9 540 34524 639 655 744",
      "2026-09-17T03:21:00.641Z",
      "2026-11-15T11:36:01.557Z",
      "listPets 49 1",
      "getPet 13 0",
    ],
    ["Forgotten script", "0 0 0 0 0 0", undefined, undefined],
  ]);
  const figuresOf = liveFigures(clients, now);
  const minutes = [-600, -541, -540, -539, -460, -81, -45, -20, -1, 0].map((minute) => {
    const { requests, latencies, connections } = figuresOf(now + minute * 60_000, 60_000);
    return [
      minute,
      ...Object.values(requests),
      latencies.reduce((sum, each) => sum + each),
      connections,
    ].join(" ");
  });
  expect(minutes).toEqual([
    "-600 0 0 0 0 0 0 4",
    "-541 0 0 0 0 0 0 4",
    "-540 87 2 0 0 0 89 4",
    "-539 88 2 0 0 0 90 4",
    "-460 114 2 0 0 0 116 4",
    "-81 187 4 1 0 0 191 4",
    "-45 173 4 0 0 0 177 4",
    "-20 161 3 0 0 0 164 4",
    "-1 162 3 0 0 0 165 4",
    "0 161 3 0 0 0 164 4",
  ]);
  const times = [...figuresOf(now - HOUR_MS, 60_000).latencies].flatMap((count, bucket) =>
    count > 0 ? `${bucket}: ${count}` : [],
  );
  expect(times.join(", ")).toBe(
    "50: 26, 51: 33, 52: 25, 53: 22, 54: 14, 55: 19, 56: 17, 57: 12, 58: 7, 59: 1, 72: 1, 73: 1",
  );
});

test("the clients of the demo add pets and orders, and go on as their habits say", async () => {
  seedChance();
  const clock = new TestClock(Date.parse("2026-11-15T15:00:00Z"));
  const keys = DEMO_CLIENTS.map((client, keyId) => ({
    client,
    keyId,
    secret: `pet_live_${client.key.name.replace(" ", "")}`,
  }));
  /** What each client has sent. */
  const sent = new Map<string, string[]>();
  let lastId = 0;
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const [, name = ""] = (request.headers.get("Authorization") ?? "").split("_live_");
      const of = sent.get(name) ?? [];
      const body = await request.text();
      sent.set(name, [...of, `${request.method} ${pathname}${search} ${body}`.trim()]);
      const rejected = { Pricecomparison: "rate_limited", Forgottenscript: "key_banned" }[name];
      if (rejected !== undefined && of.length >= 60)
        return Response.json(
          { code: rejected, message: "" },
          { status: 429, headers: { "Retry-After": "20" } },
        );
      if (request.method === "GET" && !/\d$/.test(pathname)) return Response.json([]);
      return Response.json({ id: request.method === "POST" ? ++lastId : 1, ...JSON.parse(body || "{}") });
    },
  });
  const url = `${server.url.origin}/v1`;
  await addPetsAndOrders(url, keys);
  const isWithoutStatus = (line: string) => !line.includes("status");
  const [added = [], placed = []] = sent.values();
  expect([new Set(added).size, added.filter(isWithoutStatus).length]).toEqual([97, 13]);
  const countsOf = (lines: readonly string[]) => {
    const kind = (line: string) => line.replace(/(?<=id=|pets\/|orders\/)\d+/, "N").replace(/ \{"[np].*/, "");
    const kinds = [...Map.groupBy(lines, kind)].map(([each, { length }]) => `${length} ${each}`);
    return kinds.toSorted();
  };
  expect([...sent.keys(), countsOf(added), countsOf(placed)]).toEqual([
    "Shelterimport",
    "Webshop",
    ["120 POST /v1/pets"],
    [
      '10 PATCH /v1/store/orders/N {"status":"completed"}',
      "30 POST /v1/store/orders",
      '5 PATCH /v1/store/orders/N {"status":"cancelled"}',
    ],
  ]);

  sent.clear();
  const time = new VirtualTime(clock);
  const stop = startTraffic({ url, keys, clock, scheduler: time.scheduler });
  await time.pass(300_000);
  await stop();
  const firstOf = (name: string, start: string) => sent.get(name)?.find((line) => line.startsWith(start));
  expect([
    firstOf("Shelterimport", "POST"),
    firstOf("Webshop", "PATCH"),
    firstOf("Mobileapp", "GET /v1/pets/"),
  ]).toEqual([
    'POST /v1/pets {"name":"Fips the parrot","categoryId":3,"status":"available"}',
    'PATCH /v1/store/orders/154 {"status":"completed"}',
    "GET /v1/pets/82",
  ]);
  expect([...sent].map(([name, lines]) => [name].concat(countsOf(lines)))).toEqual([
    [
      "Mobileapp",
      "101 GET /v1/pets?status=available&limit=50",
      "317 GET /v1/pets?id=N&limit=100",
      "5 GET /v1/pets?status=available&limit=1000",
      "71 GET /v1/pets/N",
    ],
    [
      "Webshop",
      "10 GET /v1/store/orders",
      "13 GET /v1/pets?id=N&limit=100",
      "19 POST /v1/store/orders",
      '6 PATCH /v1/store/orders/N {"status":"cancelled"}',
      "7 GET /v1/pets?status=available&limit=50",
      '9 PATCH /v1/store/orders/N {"status":"completed"}',
    ],
    [
      "Shelterimport",
      "1 GET /v1/pets?status=available&limit=1000",
      "136 POST /v1/pets",
      "27 GET /v1/pets?status=available&limit=50",
      "82 GET /v1/pets?id=N&limit=100",
    ],
    [
      "Pricecomparison",
      "14 GET /v1/pets/N",
      "17 GET /v1/pets?status=available&limit=50",
      "3 GET /v1/pets?status=available&limit=1000",
      "40 GET /v1/pets?id=N&limit=100",
    ],
    [
      "Forgottenscript",
      "1 GET /v1/pets?status=available&limit=1000",
      "131 GET /v1/pets?id=N&limit=100",
      "24 GET /v1/pets/N",
      "53 GET /v1/pets?status=available&limit=50",
    ],
    ["mistyped", "43 GET /v1/pets"],
  ]);
});
