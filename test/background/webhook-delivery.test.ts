import { Database } from "bun:sqlite";
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import type { NewAuditEntry } from "../../src/domain/audit.ts";
import type { WebhookStore } from "../../src/domain/ports/webhooks.ts";
import { MAX_DELIVERIES, retryDelayMs } from "../../src/domain/webhooks.ts";
import { createLog } from "../../src/observe/log.ts";
import { type WebhookOptions, WebhookSender } from "../../src/background/webhook-delivery.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import {
  accept,
  type Behaviour,
  startReceiver,
  WEBHOOK_SECRET,
} from "../../trials/harness/webhook-receiver.ts";
import { webhookSecrets } from "../../src/config/value-types.ts";
import { whileLocked } from "../store/sqlite-database.ts";
import { TestClock } from "../test-clock.ts";
import { until } from "../timing.ts";

const DAY_MS = 86_400_000;
/** Waits of some milliseconds in place of seconds. */
const TIMES = { pollMs: 5, beatMs: 10, silentMs: 100, timeoutMs: 10_000, retryFactor: 0.005 };
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** An audit trail, and a receiver of it. */
async function setUp(behaviour?: Behaviour) {
  const path = join(temporaryDirectory("webhook"), "store.db");
  const stores = openSqlite(path);
  closing.push(() => stores.close());
  const receiver = startReceiver(behaviour);
  closing.push(receiver.close);
  const clock = new TestClock();
  const lines: Record<string, unknown>[] = [];
  const log = createLog({ format: "json", write: (line) => lines.push(JSON.parse(line)) });
  const secrets = () => webhookSecrets.parse(WEBHOOK_SECRET) ?? [];
  const start = (rest: Partial<WebhookOptions> = {}) => {
    const sender = new WebhookSender({
      ...stores,
      url: receiver.url,
      secrets,
      events: ["*"],
      environment: "production",
      isOnlyServer: true,
      server: "one",
      clock,
      retentionNow: () => clock.now(),
      log,
      ...rest,
      times: { ...TIMES, ...rest.times },
    });
    closing.push(() => sender.close());
    return sender;
  };
  const record = async (count = 1, entry: Partial<NewAuditEntry> = {}) => {
    for (let n = 0; n < count; n++)
      await stores.audit.recordAudit({
        at: clock.now(),
        actor: { kind: "server", name: "web-1" },
        action: "key.banned",
        ...entry,
      });
  };
  const state = async () =>
    (await stores.webhooks.readWebhook()) ?? { position: -1n, deliveries: [], source: "" };
  const opened = async () => {
    await until(async () => (await state()).position >= 0n, 10_000);
  };
  const arrived = (count: number) => receiver.when(() => receiver.accepted().length >= count);
  return { ...stores, path, receiver, clock, lines, start, record, state, opened, arrived };
}

/** The methods of a store, for another one that replaces some of them. */
function methodsOf(webhooks: WebhookStore): WebhookStore {
  return {
    openWebhook: (source) => webhooks.openWebhook(source),
    readWebhook: () => webhooks.readWebhook(),
    takeWebhook: (...args) => webhooks.takeWebhook(...args),
    saveWebhook: (...args) => webhooks.saveWebhook(...args),
    releaseWebhook: (server) => webhooks.releaseWebhook(server),
    countWaiting: (...args) => webhooks.countWaiting(...args),
  };
}

test("an entry arrives as Standard Webhooks says: three headers, a signature, and type, timestamp and data", async () => {
  const { receiver, start, record, opened, arrived, state } = await setUp();
  start();
  await opened();
  const target = { kind: "key", id: 9_007_199_254_740_993n } as const;
  await record(1, { target, after: { bannedUntil: "2026-11-15T12:05:00.000Z" } });
  await arrived(1);
  const [event] = receiver.received;
  const { source } = await state();
  expect(event?.body).toBe(
    `{"type":"key.banned","timestamp":"2026-11-15T12:00:00.000Z","data":{"environment":"production","id":1,"at":"2026-11-15T12:00:00.000Z","actor":{"operator":null,"kind":"server","name":"web-1"},"action":"key.banned","target":{"kind":"key","id":9007199254740993},"before":null,"after":{"bannedUntil":"2026-11-15T12:05:00.000Z"}}}`,
  );
  expect(event?.headers).toMatchObject({
    "content-type": "application/json",
    "webhook-id": `${source}_1_1794744000000`,
    "webhook-timestamp": "1794744000",
    "webhook-signature": expect.stringMatching(/^v1,[\w+/]{43}=$/),
    "user-agent": expect.stringMatching(/^Petstore\/\d/),
  });
  expect(source).toMatch(/^[\da-f]{8}$/);
  expect(receiver.unsigned).toEqual([]);
});

test("a first start begins at the end of the audit trail, and a later one where the last one ended, also at another URL", async () => {
  const { receiver, start, record, opened } = await setUp();
  await record(5);
  const first = start();
  await opened();
  await record(2);
  await until(() => first.counts.delivered >= 2, 10_000);
  await first.close();
  await record(2);
  const other = startReceiver();
  closing.push(other.close);
  start({ url: other.url });
  await other.when(() => other.accepted().length >= 2);
  expect([receiver.accepted(), other.accepted()]).toEqual([
    [6, 7],
    [8, 9],
  ]);
});

test("only the chosen actions are delivered, and the position moves past the others", async () => {
  const { receiver, start, record, opened, arrived, state } = await setUp();
  start({ events: ["key.banned", "operator.*"] });
  await opened();
  for (const action of [
    "key.created",
    "operator.created",
    "key.banned",
    "operator.revoked",
    "key.updated",
  ] as const)
    await record(1, { action });
  await arrived(3);
  expect(receiver.received.map(({ type }) => type)).toEqual([
    "operator.created",
    "key.banned",
    "operator.revoked",
  ]);
  await until(async () => (await state()).position >= 5n, 10_000);
});

describe("a receiver", () => {
  test.each<[string, Behaviour, Partial<typeof TIMES>]>([
    ["that responds 500", (n) => (n <= 3 ? new Response("broken", { status: 500 }) : accept()), {}],
    ["that redirects", (n) => (n <= 3 ? Response.redirect("/elsewhere", 307) : accept()), {}],
    ["that responds 410", (n) => (n <= 3 ? new Response(null, { status: 410 }) : accept()), {}],
    ["that hangs", (n) => (n <= 2 ? "hang" : accept()), { timeoutMs: 50 }],
    ["that is slow", async () => Bun.sleep(20).then(accept), {}],
    [
      "whose response does not end",
      () => new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536)) })),
      {},
    ],
    [
      "whose response cannot be decompressed",
      () => new Response("ok", { headers: { "Content-Encoding": "gzip" } }),
      {},
    ],
    [
      "whose response stands still",
      () => new Response(new ReadableStream({ start: (to) => to.enqueue(new Uint8Array(1)) })),
      { timeoutMs: 50 },
    ],
  ])("%s gets every entry in order, and repeats have the same webhook-id", async (_, behaviour, times) => {
    const { receiver, start, record, opened, arrived } = await setUp(behaviour);
    start({ times });
    await opened();
    await record(4);
    await arrived(4);
    expect(receiver.accepted()).toEqual([1, 2, 3, 4]);
    const idsOfEntry = Map.groupBy(receiver.received, ({ entry }) => entry);
    for (const events of idsOfEntry.values()) expect(new Set(events.map(({ id }) => id)).size).toBe(1);
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(4);
    expect(receiver.unsigned).toEqual([]);
    expect(new Set(receiver.received.map(({ path }) => path))).toEqual(new Set(["/hook"]));
    // Nothing of a later entry came before the earlier one was accepted.
    const order = receiver.received.map(({ entry = 0 }) => entry);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });

  test("that is not there gets every entry when it comes, and the log says when it began and ended", async () => {
    const { receiver, start, record, opened, lines, state, clock } = await setUp();
    await receiver.goAway();
    const sender = start();
    await opened();
    await record(3);
    await until(() => sender.counts.failed >= 3, 10_000);
    expect(sender.waiting).toEqual({ count: 3, oldestAt: clock.now() });
    const refused = { id: 1, type: "key.banned", status: null, error: expect.stringMatching(/refused/i) };
    expect((await state()).deliveries[0]).toMatchObject(refused);
    receiver.comeBack();
    await until(() => sender.counts.delivered >= 3 && sender.waiting?.count === 0, 10_000);
    expect(receiver.received.map(({ entry }) => entry)).toEqual([1, 2, 3]);
    expect(lines.map(({ event }) => event)).toEqual(["webhook.failing", "webhook.recovered"]);
    expect(lines[0]).toMatchObject({ level: "warn", ...refused });
    // A line has a time of its own.
    expect(lines[0]).not.toHaveProperty("at");
  });
});

test("waits grow from half a second or more up to an hour or less, at random within their half", () => {
  expect([1, 2, 3, 4, 11, 12, 13, 1_000].map((n) => retryDelayMs(n, 1))).toEqual([
    1_000, 2_000, 4_000, 8_000, 1_024_000, 2_048_000, 3_600_000, 3_600_000,
  ]);
  expect(retryDelayMs(1, 0)).toBe(500);
  expect(retryDelayMs(99, 0)).toBe(1_800_000);
});

test("a delivery makes the next wait a short one again", async () => {
  // Every second request fails. Waits that grew with each of them would take minutes.
  const { receiver, start, record, opened, arrived } = await setUp((n) =>
    n % 2 === 1 ? new Response(null, { status: 503 }) : accept(),
  );
  start();
  await opened();
  await record(16);
  await arrived(16);
  expect(receiver.received).toHaveLength(32);
});

test("an entry that has failed for three days is skipped, logged and counted; those after it are tried", async () => {
  const { receiver, start, record, opened, lines, clock, arrived } = await setUp(
    () => new Response(null, { status: 503 }),
  );
  const sender = start();
  await opened();
  await record(3);
  await receiver.when(() => receiver.received.length >= 2);
  // A last attempt just before three days are over is not enough.
  clock.advance(3 * DAY_MS - 1);
  const before = receiver.received.length;
  await receiver.when(() => receiver.received.length >= before + 2);
  expect(sender.counts.skipped).toBe(0);
  clock.advance(1);
  await until(() => sender.counts.skipped >= 1, 10_000);
  receiver.behave(accept);
  await arrived(2);
  expect(receiver.accepted()).toEqual([2, 3]);
  expect(sender.counts.skipped).toBe(1);
  expect(lines.find(({ event }) => event === "webhook.skipped")).toMatchObject({
    level: "error",
    entries: 1,
  });
});

test("the time of the first attempt stays, however many follow, also for the next server that delivers", async () => {
  const { receiver, start, record, opened, clock, state } = await setUp(
    () => new Response(null, { status: 503 }),
  );
  // The waits grow with every attempt.
  const times = { retryFactor: 0.000_001 };
  const first = start({ times });
  await opened();
  await record();
  await receiver.when(() => receiver.received.length >= 1);
  clock.advance(2 * DAY_MS);
  const startedAt = receiver.received.length;
  await receiver.when(() => receiver.received.length >= startedAt + 2 * MAX_DELIVERIES);
  await first.close();
  const { deliveries } = await state();
  expect(deliveries).toHaveLength(MAX_DELIVERIES);
  expect((deliveries[0]?.at ?? 0) - (deliveries.at(-1)?.at ?? 0)).toBe(2 * DAY_MS);
  clock.advance(DAY_MS);
  const second = start({ times });
  await until(() => second.counts.skipped >= 1, 10_000);
});

test("entries of a server whose clock is behind by years are delivered", async () => {
  const { receiver, start, record, opened, arrived, clock } = await setUp((n) =>
    n <= 3 ? new Response(null, { status: 503 }) : accept(),
  );
  const sender = start();
  await opened();
  await record(3, { at: clock.now() - 1_000 * DAY_MS });
  await arrived(3);
  expect(receiver.accepted()).toEqual([1, 2, 3]);
  expect(sender.counts.skipped).toBe(0);
});

test("two secrets make two signatures, and a change of them needs no restart", async () => {
  const secrets = [new Uint8Array(32), new Uint8Array(32).fill(1)];
  const { receiver, start, record, opened, arrived } = await setUp();
  let current: readonly Uint8Array[] = secrets;
  start({ secrets: () => current });
  await opened();
  await record();
  await arrived(1);
  current = secrets.slice(1);
  await record();
  await arrived(2);
  const signatures = receiver.received.map(({ id, headers, body }) => [
    headers["webhook-signature"],
    secrets.map((secret) => {
      const content = `${id}.${headers["webhook-timestamp"]}.${body}`;
      return `v1,${createHmac("sha256", secret).update(content).digest("base64")}`;
    }),
  ]);
  const [[both, [a, b] = []] = [], [one, [, second] = []] = []] = signatures;
  expect(both).toBe(`${a} ${b}`);
  expect(one).toBe(second);
});

test("with an earlier state in the database, as of a promoted standby, every entry after it arrives in order", async () => {
  const { receiver, start, record, opened, arrived, path, state } = await setUp();
  const sender = start({ isOnlyServer: false, times: { pollMs: 20 } });
  await opened();
  await record(5);
  await arrived(5);
  await until(() => sender.waiting?.count === 0, 10_000);
  const saved = await state();
  // What the standby did not get: the last three entries, and the state after the second. Its primary assigns new ones.
  const database = new Database(path);
  database.run("DELETE FROM audit WHERE id > 2");
  database.run("UPDATE webhook SET position = 2, beat = beat - 3");
  for (let id = 3; id <= 9; id++)
    database.run("INSERT INTO audit (id, at, actor, action) VALUES (?, ?, 'server', 'pet.updated')", [
      id,
      1_000 + id,
    ]);
  database.close();
  await receiver.when(() => receiver.received.filter(({ type }) => type === "pet.updated").length >= 7);
  const after = receiver.received.filter(({ type }) => type === "pet.updated").map(({ entry }) => entry);
  expect(after).toEqual([3, 4, 5, 6, 7, 8, 9]);
  expect(saved).toMatchObject({ position: 5n });
});

test("many entries that are not delivered delay neither other work nor a stop", async () => {
  const { webhooks, start, state, path } = await setUp();
  await webhooks.openWebhook("source");
  const database = new Database(path);
  database.run(`INSERT INTO audit (at, actor, action) WITH RECURSIVE n (i) AS
    (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) SELECT 1, 'server', 'pet.updated' FROM n`);
  database.close();
  const sender = start({ events: ["key.banned"] });
  await until(async () => (await state()).position !== 0n, 10_000);
  await sender.close();
  expect((await state()).position).toBeLessThan(10_000n);
});

test("a stop does not wait for a receiver that hangs, and the entry is sent again", async () => {
  const { receiver, start, record, opened, arrived } = await setUp(() => "hang");
  const sender = start();
  await opened();
  await record();
  await receiver.when(() => receiver.received.length === 1);
  await sender.close();
  expect(sender.counts).toEqual({ delivered: 0, failed: 0, skipped: 0 });
  receiver.behave(accept);
  start();
  await arrived(1);
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1);
});

test("a stop waits until a delivered entry is saved, so that it is not sent again", async () => {
  const { webhooks, start, record, opened, state } = await setUp();
  const [called, saving] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const rest = methodsOf(webhooks);
  const saveWebhook: WebhookStore["saveWebhook"] = async (...args) => {
    called.resolve();
    await saving.promise;
    return rest.saveWebhook(...args);
  };
  const sender = start({ webhooks: { ...rest, saveWebhook } });
  await opened();
  await record();
  await called.promise;
  const closed = sender.close();
  await Bun.sleep(10);
  saving.resolve();
  await closed;
  expect(await state()).toMatchObject({ position: 1n });
});

test("a server that is killed twice delivers every entry, in order and with the same webhook-id each time", async () => {
  const { receiver, record, webhooks, path } = await setUp(async () => Bun.sleep(2).then(accept));
  await webhooks.openWebhook("source");
  const start = () =>
    Bun.spawn([process.execPath, join(import.meta.dir, "webhook-child.ts"), path, receiver.url]);
  await record(60, { at: Date.now() });
  for (const count of [10, 30, 60]) {
    const child = start();
    await receiver.when(() => receiver.accepted().length >= count);
    child.kill("SIGKILL");
    await child.exited;
  }
  expect(receiver.accepted()).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
  const order = receiver.received.map(({ entry = 0 }) => entry);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(60);
  expect(receiver.unsigned).toEqual([]);
});

test("the last attempts are stored, newest first and no more than twenty", async () => {
  const { start, record, opened, arrived, state } = await setUp();
  const sender = start();
  await opened();
  await record(25);
  await arrived(25);
  await until(() => sender.counts.delivered >= 25, 10_000);
  await sender.close();
  const { deliveries } = await state();
  expect(MAX_DELIVERIES).toBe(20);
  expect(deliveries.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, i) => 25 - i));
  expect(deliveries[0]).toEqual({
    id: 25,
    type: "key.banned",
    at: 1_794_744_000_000,
    status: 200,
    error: null,
    durationMs: expect.any(Number),
  });
});

describe("several servers", () => {
  test("one delivers at a time, and another one goes on at once when it stops", async () => {
    const { receiver, start, record, opened, state } = await setUp();
    const shared = { isOnlyServer: false, times: { silentMs: 600_000 } } as const;
    const one = start({ ...shared, server: "one" });
    await opened();
    await until(async () => "server" in (await state()), 10_000);
    const two = start({ ...shared, server: "two" });
    await record(3);
    await until(() => one.counts.delivered >= 3 && one.waiting?.count === 0, 10_000);
    expect(two.counts.delivered).toBe(0);
    expect(two.waiting).toBeUndefined();
    await one.close();
    await record(2);
    await until(() => two.counts.delivered >= 2, 10_000);
    expect(two.counts.delivered).toBe(2);
    expect(receiver.received.map(({ entry }) => entry)).toEqual([1, 2, 3, 4, 5]);
  });

  test("a server that waits for its turn writes nothing", async () => {
    const { webhooks, path } = await setUp();
    const state = await webhooks.openWebhook("source");
    await whileLocked(path, async () => expect(await webhooks.openWebhook("other")).toEqual(state));
  });

  test("a server that was paused, and is replaced meanwhile, repeats at most one entry and sends no other", async () => {
    const { receiver, start, record, opened, webhooks, arrived } = await setUp();
    const { promise: paused, resolve: release } = Promise.withResolvers<void>();
    const { promise: saving, resolve: onSave } = Promise.withResolvers<void>();
    // The first server stands still before it saves its first delivery.
    const slow: WebhookStore = {
      ...methodsOf(webhooks),
      async saveWebhook(...args) {
        if (args[1].deliveries.length > 0) {
          onSave();
          await paused;
        }
        return webhooks.saveWebhook(...args);
      },
    };
    start({ isOnlyServer: false, server: "one", webhooks: slow });
    await opened();
    await record(5);
    await saving;
    start({ isOnlyServer: false, server: "two" });
    await arrived(5);
    release();
    await record(2);
    await arrived(7);
    // On a busy machine a server that is not paused may be silent for too long, and its entry is repeated too.
    const entries = receiver.received.map(({ entry = 0 }) => entry);
    expect(entries.slice(0, 6)).toEqual([1, 1, 2, 3, 4, 5]);
    expect(entries).toEqual(entries.toSorted((a, b) => a - b));
    expect([...new Set(entries)]).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  test("while the database is unavailable nothing is lost, and the log says so once", async () => {
    const { receiver, start, record, opened, webhooks, arrived, lines } = await setUp();
    let isAway = false;
    const failing: WebhookStore = {
      ...methodsOf(webhooks),
      async saveWebhook(...args) {
        if (isAway) throw new Error("away");
        return webhooks.saveWebhook(...args);
      },
    };
    start({ webhooks: failing });
    await opened();
    isAway = true;
    await record(3);
    await receiver.when(() => receiver.received.length >= 3);
    isAway = false;
    await arrived(3);
    expect(receiver.accepted()).toEqual([1, 2, 3]);
    expect(lines.filter(({ event }) => event === "webhook.unreadable")).toHaveLength(1);
  });
});

test("a server that cannot read the position does not say what waits: another one may deliver by now", async () => {
  const { receiver, start, record, opened, webhooks } = await setUp(
    () => new Response(null, { status: 503 }),
  );
  let isAway = false;
  const away = async () => Promise.reject(new Error("away"));
  const failing: WebhookStore = {
    ...methodsOf(webhooks),
    openWebhook: (source) => (isAway ? away() : webhooks.openWebhook(source)),
    saveWebhook: (...args) => (isAway ? away() : webhooks.saveWebhook(...args)),
  };
  const sender = start({ webhooks: failing, isOnlyServer: false });
  await opened();
  await record();
  await receiver.when(() => receiver.received.length >= 1);
  await until(() => sender.waiting?.count === 1, 10_000);
  isAway = true;
  await until(() => sender.waiting === undefined, 10_000);
});

test("a server that has nothing to deliver reads the audit trail once in each interval", async () => {
  const { start, opened, audit } = await setUp();
  const reads = spyOn(audit, "listAudit");
  const startedAt = performance.now();
  start({ times: { pollMs: 100 } });
  await opened();
  await Bun.sleep(250);
  const intervals = (performance.now() - startedAt) / 100;
  expect(reads.mock.calls.length).toBeGreaterThan(0);
  expect(reads.mock.calls.length).toBeLessThanOrEqual(intervals + 2);
});

test("a test event is signed like the others and moves nothing", async () => {
  const { receiver, start, opened, state } = await setUp(() => new Response("thanks\r\nand more"));
  const sender = start();
  await opened();
  expect(await sender.test()).toEqual({
    status: 200,
    error: null,
    line: "thanks",
    durationMs: expect.any(Number),
  });
  expect(receiver.received.map(({ type, entry }) => [type, entry])).toEqual([["webhook.test", undefined]]);
  expect(receiver.unsigned).toEqual([]);
  expect((await state()).deliveries).toEqual([]);
  receiver.behave(() => new Response(`\u0007${"x".repeat(300)}`));
  expect((await sender.test()).line).toBe(`\\u{7}${"x".repeat(199)}`);
});

test("a test event that is accepted ends the wait for the next attempt", async () => {
  const { receiver, start, record, opened, arrived } = await setUp(() => new Response(null, { status: 503 }));
  const sender = start({ times: { retryFactor: 1_000 } });
  await opened();
  await record();
  await until(() => sender.counts.failed >= 1, 10_000);
  await sender.test();
  expect(sender.counts.failed).toBe(1);
  receiver.behave(accept);
  await sender.test();
  await arrived(1);
});
