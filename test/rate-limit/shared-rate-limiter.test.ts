import { afterEach, describe, expect, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import { type BanRules, DEFAULT_BAN, type Limits, type OnBan } from "../../src/domain/rate-limit.ts";
import { createMemoryRateLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { loggableError, type ValkeyLink } from "../../src/rate-limit/valkey/connection.ts";
import type { DecisionRequest, KeyReport } from "../../src/rate-limit/valkey/script.ts";
import { SharedRateLimiter } from "../../src/rate-limit/valkey/shared-rate-limiter.ts";
import { SimulatedValkey, ValkeyModel } from "../../trials/simulation/valkey.ts";
import { Process, STARTS_AT, World } from "../../trials/simulation/world.ts";
import { key } from "../subjects.ts";

const FREE: Limits = { perMinute: 60, perDay: 1_000 };
const TIMEOUT_MS = 500;
/** The timeout, and a tick of the timer. */
const OUTAGE_MS = 550;

interface Settings {
  readonly servers?: number;
  readonly rules?: BanRules;
  readonly maxBatchSize?: number;
  readonly maxConcurrentBatches?: number;
  readonly onBan?: OnBan;
  readonly leave?: () => Promise<void>;
}

const opened: SharedRateLimiter[] = [];
afterEach(async () => {
  for (const limiter of opened.splice(0)) await limiter.close();
});

class RecordingModel extends ValkeyModel {
  readonly batches: (readonly DecisionRequest[])[] = [];
  readonly reports: KeyReport[] = [];
  /** The most keys of a batch. */
  keys = 0;

  override decide(requests: readonly DecisionRequest[], reports: readonly KeyReport[] = []) {
    this.batches.push(requests);
    this.reports.push(...reports);
    this.keys = Math.max(this.keys, new Set([...requests, ...reports].map(({ subject }) => subject.id)).size);
    return super.decide(requests, reports);
  }
}

class PromptProcess extends Process {
  override atEndOfIteration(work: () => void): void {
    queueMicrotask(work);
  }
}

/** Several servers on a simulated Valkey, whose clock is hours behind theirs. Time passes in `time.run` only. */
async function setUp(settings: Settings = {}) {
  const { servers = 4, rules = DEFAULT_BAN, maxBatchSize = 32, maxConcurrentBatches = 1, onBan } = settings;
  const { leave = async () => {} } = settings;
  const time = new World();
  const model = new RecordingModel(() => STARTS_AT + time.now - 10_000_000, rules);
  const valkey = new SimulatedValkey(time, model);
  const states: string[] = [];
  const processes = Array.from({ length: servers }, (_, i) => new PromptProcess(time, `${i}`));
  const opens: Process[] = [];
  const limiters = processes.map((process) => {
    const { clock } = process;
    const limiter = new SharedRateLimiter(
      {
        clock,
        scheduler: process,
        ban: rules,
        local: createMemoryRateLimiter({ clock, ban: rules, scheduler: process }),
        timeoutMs: TIMEOUT_MS,
        register: {
          count: servers,
          beat: (link) => link.servers().then(Boolean, () => false),
          leave,
        },
        onBan,
        onStateChange: (state, cause) =>
          states.push(cause instanceof Error ? `${state}: ${cause.message}` : state),
      },
      {
        open(): Promise<ValkeyLink> {
          opens.push(process);
          return valkey.open(process);
        },
        maxBatchSize,
        maxConcurrentBatches,
      },
    );
    opened.push(limiter);
    return limiter;
  });
  for (const limiter of limiters) await limiter.start();
  const [first] = limiters;
  if (first === undefined) throw new Error("no server");

  /** How many requests are allowed, if each of the servers gets so many at once. */
  const burst = async (count: number, { limits = FREE, on = limiters, id = 1 } = {}) => {
    const decisions = on.flatMap((limiter) =>
      Array.from({ length: count }, async () => limiter.decide(key(id), limits)),
    );
    return (await Promise.all(decisions)).filter(({ outcome }) => outcome === "allowed").length;
  };
  /** Every server sees that nothing is left. */
  const exhaust = async () => {
    expect(await burst(20)).toBe(60);
    expect(await burst(1)).toBe(0);
  };
  /** Every server notices. */
  const beginOutage = async () => {
    valkey.standStill();
    const noticed = burst(1, { id: 999 });
    time.run(OUTAGE_MS);
    await noticed;
  };
  const endOutage = async () => {
    valkey.goOn();
    time.run(0);
  };
  return {
    time,
    valkey,
    model,
    opens,
    states,
    processes,
    limiters,
    first,
    burst,
    exhaust,
    beginOutage,
    endOutage,
  };
}

describe("batches", () => {
  test("requests that arrive together form batches, in order, and so do those that arrive meanwhile", async () => {
    const { time, valkey, model, first } = await setUp({ maxBatchSize: 3 });
    valkey.standStill();
    const decide = (ids: number[]) => Promise.all(ids.map(async (id) => first.decide(key(id), FREE)));
    const together = decide([0, 1, 2, 3]);
    time.run(0);
    const meanwhile = decide([4, 5]);
    valkey.goOn();
    await Promise.all([together, meanwhile]);
    expect(model.batches.map((batch) => batch.map(({ subject }) => subject.id))).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
  });

  test("with 10,000 requests in the queue the next one is rejected, and those before it are decided", async () => {
    const { valkey, states, first } = await setUp();
    valkey.standStill();
    const decisions = Array.from({ length: 10_000 }, async (_, id) => first.decide(key(id), FREE));
    expect(first.queueLength).toBe(10_000);
    await expect(first.decide(key(1), FREE)).rejects.toEqual(
      new Unavailable("the queue for Valkey is full (10000 requests)"),
    );
    valkey.goOn();
    expect((await Promise.all(decisions)).every(({ outcome }) => outcome === "allowed")).toBe(true);
    expect(states).toEqual([]);
  });
});

describe("a pause", () => {
  test("of 500 ms is waited for, and four servers give exactly the limit", async () => {
    const { time, valkey, states, burst } = await setUp();
    for (const ms of [30, 100, 400, 500]) {
      valkey.standStill();
      const allowed = burst(50);
      time.run(ms);
      valkey.goOn();
      expect(await allowed).toBe(60);
      time.run(60_000);
    }
    expect(states).toEqual([]);
  });

  test("after one of 500 ms, the requests that waited for another batch wait for 500 ms again", async () => {
    const { time, valkey, states, first } = await setUp();
    valkey.standStill();
    const one = first.decide(key(1), FREE);
    time.run(450);
    const other = first.decide(key(2), FREE);
    valkey.goOn();
    valkey.standStill();
    time.run(450);
    expect(states).toEqual([]);
    valkey.goOn();
    expect([await one, await other]).toMatchObject([{ remaining: 59 }, { remaining: 59 }]);
  });

  test("of the own process is none of Valkey", async () => {
    const { time, valkey, states, processes, first } = await setUp();
    valkey.standStill();
    const decision = first.decide(key(1), FREE);
    time.run(0);
    for (const process of processes) process.block(10_000);
    time.run(10_000);
    valkey.goOn();
    expect(await decision).toMatchObject({ remaining: 59 });
    expect(states).toEqual([]);
  });

  test("an operator's read that fails changes nothing for clients", async () => {
    const { time, valkey, states, first, burst } = await setUp();
    await burst(1);
    valkey.silenceLinks();
    const usage = first.usage(key(1));
    time.run(10_000);
    expect(states).toEqual([]);
    valkey.stop();
    expect(await usage).toMatchObject({ minute: { used: 1 } });
  });
});

describe("an outage", () => {
  test("begins after 500 ms; from then on nobody waits", async () => {
    const { time, valkey, states, first, burst } = await setUp();
    valkey.standStill();
    const waiting = burst(3);
    time.run(TIMEOUT_MS);
    expect(states).toEqual([]);
    time.run(OUTAGE_MS - TIMEOUT_MS);
    expect(states).toEqual(Array.from({ length: 4 }, () => "unavailable: no response within 500 ms"));
    expect(await waiting).toBe(12);
    expect(first.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", limit: 60, remaining: 11 });
    valkey.goOn();
    time.run(0);
    expect(states.slice(4)).toEqual(Array.from({ length: 4 }, () => "available"));
  });

  test("each server gives its share of what was left, and no more is left afterwards", async () => {
    const { limiters, first, burst, beginOutage, endOutage } = await setUp();
    expect(await burst(5)).toBe(20);
    // Each server has seen the key, the last one all 20 requests.
    for (const limiter of limiters) await limiter.decide(key(1), FREE);
    await beginOutage();
    expect(await burst(1)).toBe(4);
    expect(first.decide(key(1), FREE)).toMatchObject({ outcome: "allowed", limit: 60, remaining: 8 });
    const during = 5 + (await burst(50));
    expect(during).toBeWithin(36, 36 + 4);
    await endOutage();
    expect(await burst(50)).toBe(0);
  });

  test("with more servers than requests, each server gives one", async () => {
    const { burst, beginOutage } = await setUp({ servers: 6 });
    await beginOutage();
    expect(await burst(10, { limits: { perMinute: 2, perDay: 100 } })).toBe(6);
  });

  test("Retry-After and Remaining are true", async () => {
    const { time, first, beginOutage } = await setUp();
    await beginOutage();
    for (let left = 14; left >= 0; left--) {
      expect(first.decide(key(5), FREE)).toMatchObject({ limit: 60, remaining: left });
      time.run(100);
    }
    const rejected = await first.decide(key(5), FREE);
    expect(rejected).toMatchObject({ outcome: "limited", limit: 60, remaining: 0 });
    time.run(1000 * rejected.retryAfter - 1_001);
    expect(first.decide(key(5), FREE)).toMatchObject({ outcome: "limited" });
    time.run(1_001);
    expect(first.decide(key(5), FREE)).toMatchObject({ outcome: "allowed" });
  });

  test("new limits apply to what is left", async () => {
    const { first, burst, exhaust, beginOutage } = await setUp();
    await exhaust();
    await beginOutage();
    expect(await burst(1)).toBe(0);
    expect(first.decide(key(1), { perMinute: 300, perDay: 10_000 })).toMatchObject({
      outcome: "allowed",
      limit: 300,
      remaining: 59,
    });
  });

  test("a step of the machine's clock moves X-RateLimit-Reset and no window", async () => {
    const { time, processes, first, beginOutage } = await setUp();
    await beginOutage();
    const { resetAt } = await first.decide(key(5), FREE);
    for (const process of processes) process.wallStepMs = 3_600_000;
    time.run(1_000);
    expect(first.decide(key(5), FREE)).toMatchObject({ remaining: 13, resetAt: resetAt + 3_600 });
  });
});

describe("after an outage", () => {
  test("the report comes before the next decision about the key", async () => {
    const { time, valkey, model, first, burst, beginOutage } = await setUp({ servers: 1 });
    await beginOutage();
    for (let id = 1; id <= 200; id++) await first.decide(key(id), FREE);
    await burst(10, { id: 150 });
    valkey.goOn();
    valkey.standStill();
    time.run(0);
    // The first report is on its way, without this key.
    const decision = first.decide(key(150), FREE);
    valkey.goOn();
    expect(await decision).toMatchObject({ remaining: 48 });
    time.run(0);
    expect(model.reports).toHaveLength(200);
    expect(model.reports.findIndex(({ subject }) => subject.id === 150)).toBe(32);
  });

  test("in a cluster, a batch is about one key, and many are on their way", async () => {
    const cluster = { maxBatchSize: 1, maxConcurrentBatches: 1_024 };
    const { time, valkey, model, first, beginOutage } = await setUp({ servers: 1, ...cluster });
    await beginOutage();
    for (let id = 1; id <= 200; id++) await first.decide(key(id), FREE);
    model.keys = 0;
    valkey.goOn();
    time.run(0);
    expect(await first.decide(key(150), FREE)).toMatchObject({ remaining: 58 });
    time.run(0);
    expect(model).toMatchObject({ keys: 1, reports: { length: 200 } });
  });

  test("a server that Valkey replies to late: what it may give meanwhile is not given by the others", async () => {
    const { time, valkey, limiters, burst, beginOutage } = await setUp();
    expect(await burst(5)).toBe(20);
    for (const limiter of limiters) await limiter.decide(key(1), FREE);
    await beginOutage();
    // The last server needs another connection.
    valkey.silenceLinks(({ name }) => name === "3");
    valkey.goOn();
    time.run(0);
    const others = await burst(50, { on: limiters.slice(0, 3) });
    expect(others).toBe(3 * 10);
    expect(await burst(50, { on: limiters.slice(3) })).toBe(9);
    time.run(2_500);
    expect(await burst(50)).toBe(0);
  });

  test("after two seconds every server gives what is left in Valkey", async () => {
    const { time, first, burst, beginOutage, endOutage } = await setUp();
    await beginOutage();
    await endOutage();
    expect(await burst(60, { on: [first] })).toBe(15);
    time.run(2_000);
    expect(await burst(60, { on: [first] })).toBe(45);
  });

  test("a reply that is lost counts twice rather than not at all", async () => {
    const { time, valkey, model, burst } = await setUp({ servers: 1 });
    valkey.standStill();
    const waiting = burst(1);
    time.run(0);
    valkey.silenceLinks();
    valkey.goOn();
    time.run(OUTAGE_MS + 250 + TIMEOUT_MS);
    expect(await waiting).toBe(1);
    expect(model.usageOf(1).minute.used).toBe(2);
  });

  test("a report that arrives late counts in the window in which the requests were given", async () => {
    const { time, valkey, model, burst, beginOutage } = await setUp({ servers: 1 });
    await beginOutage();
    const givenAt = model.now();
    expect(await burst(5)).toBe(5);
    valkey.goOn();
    valkey.standStill();
    time.run(30_000);
    valkey.goOn();
    time.run(0);
    expect(model.usageOf(1).minute.openedAt).toBe(givenAt);
  });

  test("a Valkey that lost its data learns what was given in the outage", async () => {
    const { time, valkey, model, states, burst } = await setUp({ servers: 1 });
    time.run(1_000);
    await burst(20);
    valkey.stop();
    model.flush();
    expect(await burst(10)).toBe(10);
    time.run(10_000);
    valkey.isDown = false;
    time.run(250);
    expect(states).toEqual(["unavailable: the connection was closed", "available"]);
    expect(model.usageOf(1).minute.used).toBe(10);
    time.run(50_000);
    expect(model.usageOf(1).minute.used).toBe(0);
  });

  test("a connection that lasted a second is replaced at once, another one after 250 ms", async () => {
    const { time, valkey, opens } = await setUp({ servers: 1 });
    time.run(1_000);
    valkey.stop();
    valkey.isDown = false;
    time.run(0);
    expect(opens).toHaveLength(2);
    time.run(999);
    valkey.stop();
    time.run(249);
    expect(opens).toHaveLength(2);
    time.run(1);
    expect(opens).toHaveLength(3);
    time.run(500);
    expect(opens).toHaveLength(5);
  });

  test("close: nothing is tried any more, and requests that wait are decided", async () => {
    const { time, valkey, opens, first, burst } = await setUp({ servers: 1 });
    valkey.standStill();
    const waiting = burst(3);
    await first.close();
    expect(await waiting).toBe(3);
    valkey.stop();
    time.run(10_000);
    expect(opens).toHaveLength(1);
  });
});

test("close while Valkey decides: the reply does not bring the server back", async () => {
  const replied = Promise.withResolvers<void>();
  const { time, valkey, states, first, burst } = await setUp({ servers: 1, leave: () => replied.promise });
  valkey.standStill();
  const waiting = burst(3);
  time.run(0);
  const closed = first.close();
  valkey.goOn();
  time.run(0);
  replied.resolve();
  await closed;
  expect(await waiting).toBe(3);
  expect(states).toEqual([]);
  expect(first.decide(key(1), FREE)).toMatchObject({ outcome: "allowed" });
});

describe("bans", () => {
  const rules = { strikes: 2, graceMs: 0, lengthMs: 300_000, maxLengthMs: 1_200_000 };
  const ONE = { perMinute: 1, perDay: 100 };

  test("a ban of an outage is carried over, and doubles the one after it", async () => {
    const bans: number[] = [];
    const onBan: OnBan = (keyId, { bannedAt, bannedUntil }) => bans.push(keyId, bannedUntil - bannedAt);
    const { time, first, beginOutage, endOutage } = await setUp({ rules, onBan, servers: 1 });
    await beginOutage();
    while ((await first.decide(key(3), ONE)).outcome !== "banned") time.run(1);
    expect(bans).toEqual([3, 300_000]);
    time.run(100_000);
    await endOutage();
    expect(await first.decide(key(3), ONE)).toMatchObject({ outcome: "banned", retryAfter: 200 });
    time.run(200_000);
    while ((await first.decide(key(3), ONE)).outcome !== "banned") time.run(1);
    expect(bans).toEqual([3, 300_000, 3, 600_000]);
  });

  test("an unban that arrives late ends no ban that began after it, and one from before it", async () => {
    const { time, valkey, model, processes, limiters } = await setUp({ rules, servers: 2 });
    const [one, other] = limiters;
    const getBanned = async (id: number) => {
      while ((await other?.decide(key(id), ONE))?.outcome !== "banned") time.run(1);
    };
    await getBanned(3);
    for (const process of processes.slice(0, 1)) valkey.cutOff(process, 10_000);
    for (const id of [3, 4]) void one?.unban(key(id), 0);
    time.run(5_000);
    await getBanned(4);
    time.run(15_000);
    expect(model.usageOf(3).bannedUntil).toBe(-1);
    expect(model.usageOf(4).bannedUntil).toBeGreaterThan(0);
  });

  test("2,000 unbans of an outage all arrive", async () => {
    const { time, model, first, beginOutage, endOutage } = await setUp({ servers: 1 });
    await beginOutage();
    for (let id = 1; id <= 2_000; id++) await first.unban(key(id), 0);
    await endOutage();
    time.run(0);
    const unbanned = model.reports.filter(({ unbannedAt }) => unbannedAt !== undefined);
    expect(unbanned).toHaveLength(2_000);
  });
});

test("a logged error has no password, also if the server that does not know AUTH quotes it", () => {
  const message = "ERR unknown command 'auth', with args beginning with: 'petstore' 's3cret' ";
  const error = loggableError(Object.assign(new Error(message), { command: {} }));
  expect(error.message).toBe("ERR unknown command 'auth'");
  expect(error).not.toHaveProperty("command");
});
