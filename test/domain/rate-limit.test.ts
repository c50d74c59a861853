import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type BanRules, DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import {
  canUnban,
  copyOf,
  decide,
  type Decision,
  exhaustedWindow,
  expire,
  expiresAt,
  isCloseToLimit,
  isExpired,
  type Limits,
  merge,
  NEVER,
  newQuota,
  peek,
  type Quota,
  shift,
  shiftDecision,
  unban,
  usedPercent,
} from "../../src/domain/rate-limit.ts";
import { fromStored, toStored } from "../../src/domain/stored-quota.ts";
import { DAY_MS, MINUTE_MS } from "../../src/text/time-units.ts";

type WindowKind = "minute" | "day";

interface Rejection {
  readonly at: number;
  readonly kind: WindowKind;
  readonly openedAt: number;
}

interface SpecWindow extends Pick<Rejection, "kind" | "openedAt"> {
  readonly limit: number;
  readonly remaining: number;
  readonly closesAt: number;
}

const LENGTHS_MS = { minute: MINUTE_MS, day: DAY_MS } as const;

/** What docs/rate-limits.md says, computed anew from the whole history for each request. */
class Model {
  readonly #allowed: number[] = [];
  #rejections: Rejection[] = [];
  #bans: (Pick<Rejection, "kind"> & { readonly from: number; readonly to: number })[] = [];

  constructor(
    private readonly limits: Limits,
    private readonly rules: BanRules,
  ) {}

  peek(now: number) {
    const ban = this.#bans.at(-1);
    return ban && now < ban.to ? this.#decision("banned", ban.to, now) : this.#counted(now);
  }

  decide(now: number) {
    const before = this.peek(now);
    if (before.outcome === "banned") return before;
    if (before.outcome === "allowed") {
      this.#allowed.push(now);
      return this.#decision("allowed", 0, now);
    }
    const { kind, openedAt } = this.#exhausted(now) ?? this.#window("day", now);
    this.#rejections.push({ at: now, kind, openedAt });
    if (this.#strikes(kind, openedAt) < this.rules.strikes) return this.#counted(now);
    const to = now + this.#nextBanMs(now);
    this.#bans.push({ from: now, to, kind });
    return this.#decision("banned", to, now);
  }

  /** The next ban is a first one again, and the next rejection is no strike. */
  unban(): void {
    this.#bans = [];
    this.#rejections = [];
  }

  #counted(now: number) {
    const exhausted = this.#exhausted(now);
    return this.#decision(exhausted ? "limited" : "allowed", exhausted?.closesAt ?? 0, now);
  }

  #window(kind: WindowKind, now: number): SpecWindow {
    let openedAt = -Infinity;
    let used = 0;
    for (const at of this.#allowed) {
      if (at < openedAt + LENGTHS_MS[kind]) used++;
      else [openedAt, used] = [at, 1];
    }
    if (now >= openedAt + LENGTHS_MS[kind]) [openedAt, used] = [now, 0];
    const limit = kind === "day" ? this.limits.perDay : this.limits.perMinute;
    return {
      kind,
      openedAt,
      limit,
      remaining: Math.max(0, limit - used),
      closesAt: openedAt + LENGTHS_MS[kind],
    };
  }

  /** The exhausted window that closes last; on a tie, the longer one. */
  #exhausted(now: number): SpecWindow | undefined {
    const [day, minute] = [this.#window("day", now), this.#window("minute", now)];
    const exhausted = [day, minute].filter(({ remaining }) => remaining === 0);
    return exhausted.toSorted((a, b) => b.closesAt - a.closesAt)[0];
  }

  /** Those since the last ban that this window led to. */
  #strikes(kind: WindowKind, openedAt: number): number {
    const ofWindow = this.#rejections.filter((each) => each.kind === kind && each.openedAt === openedAt);
    let graceBeganAt: number | undefined;
    const strikes = ofWindow.filter(({ at }) => {
      const isStrike = graceBeganAt !== undefined && at - graceBeganAt > this.rules.graceMs;
      if (isStrike || graceBeganAt === undefined) graceBeganAt = at;
      return isStrike;
    });
    return strikes.filter(({ at }) => this.#bans.every((ban) => ban.kind !== kind || ban.from < at)).length;
  }

  #nextBanMs(now: number): number {
    const { lengthMs, maxLengthMs } = this.rules;
    const last = this.#bans.at(-1);
    const lastMs = last && now < last.to + DAY_MS ? last.to - last.from : 0;
    return Math.max(lengthMs, Math.min(2 * lastMs, maxLengthMs));
  }

  #decision(outcome: Decision["outcome"], until: number, now: number) {
    const [minute, day] = [this.#window("minute", now), this.#window("day", now)];
    const { limit, remaining, closesAt } = minute.remaining < day.remaining ? minute : day;
    const isBanned = outcome === "banned";
    const ends = isBanned ? Math.max(until, this.#exhausted(now)?.closesAt ?? 0) : until;
    const retryAfterSeconds = outcome === "allowed" ? 0 : Math.max(1, Math.ceil((ends - now) / 1_000));
    const strikes = [minute, day].map((each) => this.#strikes(each.kind, each.openedAt));
    const resetAt = Math.ceil((isBanned ? ends : closesAt) / 1_000);
    return { outcome, limit, remaining: isBanned ? 0 : remaining, resetAt, retryAfterSeconds, strikes };
  }
}

const STARTS_AT = 1_800_000_000_123;
const someLimits = fc.record({
  perMinute: fc.integer({ min: 1, max: 4 }),
  perDay: fc.integer({ min: 1, max: 9 }),
});
const someRules = fc.record({
  strikes: fc.integer({ min: 1, max: 3 }),
  graceMs: fc.constantFrom(0, 1_000),
  lengthMs: fc.constantFrom(1_000, 300_000),
  maxLengthMs: fc.constantFrom(300_000, 500_000),
});
const someWait = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(0, 1, 500, 1_000, 1_001, 58_999, 59_999, 60_000) },
  { weight: 2, arbitrary: fc.constantFrom(299_999, 300_000, 500_000, 86_099_999, 86_339_999, 86_400_000) },
  { weight: 1, arbitrary: fc.nat(100_000_000) },
);
const CHANGES = [
  "none",
  "none",
  "none",
  "unban",
  "earlier unban",
  "store",
  "shift",
  "forget",
  "expire",
] as const;
const someStep = fc.record({
  wait: someWait,
  requests: fc.integer({ min: 1, max: 6 }),
  change: fc.constantFrom(...CHANGES),
});

const SHIFT_MS = 7_000;

/** The decision by the clock of the model. */
function seen(decision: Decision, shiftedMs: number) {
  const { outcome, limit, remaining, resetAt, retryAfterSeconds, minute, day } = shiftDecision(
    decision,
    -shiftedMs,
  );
  return { outcome, limit, remaining, resetAt, retryAfterSeconds, strikes: [minute.strikes, day.strikes] };
}

test("decide and peek do what the rules say, in random histories", () => {
  fc.assert(
    fc.property(
      someLimits,
      someRules,
      fc.array(someStep, { maxLength: 30, size: "max" }),
      (limits, rules, steps) => {
        const model = new Model(limits, rules);
        let quota = newQuota();
        let modelNow = STARTS_AT;
        let shiftedMs = 0;
        for (const { wait, requests, change } of steps) {
          modelNow += wait;
          const changedAt = modelNow + shiftedMs;
          if (change === "unban") {
            model.unban();
            unban(quota, changedAt);
          }
          if (change === "earlier unban") unban(quota, STARTS_AT + shiftedMs - 1);
          if (change === "store") quota = fromStored(toStored(quota));
          if (change === "expire") expire(quota, changedAt, rules);
          if (change === "forget" && isExpired(quota, changedAt)) quota = newQuota();
          if (change === "shift") {
            shift(quota, SHIFT_MS);
            shiftedMs += SHIFT_MS;
          }
          const now = modelNow + shiftedMs;
          for (let i = 0; i < requests; i++) {
            expect(seen(peek(structuredClone(quota), limits, now, rules), shiftedMs)).toEqual(
              model.peek(modelNow),
            );
            expect(seen(decide(quota, limits, now, rules), shiftedMs)).toEqual(model.decide(modelNow));
            expect(isExpired(quota, expiresAt(quota))).toBe(true);
          }
        }
      },
    ),
    { numRuns: 250, seed: 7, endOnFailure: true },
  );
});

test("a clock that is set back gives no quota twice and makes nothing longer", () => {
  const someSteps = fc.array(fc.record({ wait: someWait, back: fc.nat(100_000_000) }), { maxLength: 20 });
  fc.assert(
    fc.property(someLimits, someRules, someSteps, (limits, rules, steps) => {
      const quota = newQuota();
      let now = STARTS_AT * 2;
      for (const { wait, back } of steps) {
        now += wait;
        decide(quota, limits, now, rules);
        now -= back;
        const before = structuredClone(quota);
        expire(quota, now, rules);
        expect([quota.minute.used, quota.day.used]).toEqual([before.minute.used, before.day.used]);
        expect(expiresAt(quota) - now).toBeLessThanOrEqual(DAY_MS + rules.maxLengthMs);
        const { retryAfterSeconds } = decide(quota, limits, now, rules);
        expect(retryAfterSeconds).toBeLessThanOrEqual(Math.max(DAY_MS, rules.maxLengthMs) / 1_000);
        if (quota.bannedAt !== NEVER) expect(quota.bannedUntil - now).toBeLessThanOrEqual(rules.maxLengthMs);
        for (const { graceBeganAt } of [quota.minute, quota.day])
          expect(graceBeganAt).toBeLessThanOrEqual(now);
      }
    }),
    { numRuns: 200, seed: 7, endOnFailure: true },
  );
});

describe("merge", () => {
  const openedAgo = fc.constantFrom(0, 1, 999, 1_001, 30_000, 58_999, 59_001, 59_999, 86_398_999, 86_399_999);
  const window = fc
    .record({ openedAgo, used: fc.nat(5), graceAgo: fc.constantFrom(0, 500, 5_000), strikes: fc.nat(3) })
    .map(({ openedAgo, used, graceAgo, strikes }) => ({
      openedAt: STARTS_AT - openedAgo,
      used,
      graceBeganAt: used === 0 ? NEVER : STARTS_AT - Math.min(graceAgo, openedAgo),
      strikes: used === 0 ? 0 : strikes,
    }));
  const ban = fc.constantFrom(
    { bannedAt: NEVER, bannedUntil: NEVER, lastBanMs: 0 },
    { bannedAt: STARTS_AT - 5_000, bannedUntil: STARTS_AT + 10_000, lastBanMs: 0 },
    { bannedAt: STARTS_AT - 4_900, bannedUntil: STARTS_AT + 10_100, lastBanMs: 0 },
    { bannedAt: STARTS_AT, bannedUntil: STARTS_AT + 30_000, lastBanMs: 0 },
    { bannedAt: NEVER, bannedUntil: STARTS_AT - 60_000, lastBanMs: 5_000 },
  );
  const quota = fc
    .record({ minute: window, day: window, ban })
    .map(({ ban, ...windows }): Quota => Object.assign(newQuota(), windows, ban));
  const merged = (one: Quota, other: Quota) => {
    const result = copyOf(one);
    merge(result, copyOf(other), STARTS_AT);
    return result;
  };
  const current = (each: Quota) => {
    const result = copyOf(each);
    expire(result, STARTS_AT);
    return result;
  };

  test("has the larger count of windows that are open together, from the opening of the first", () => {
    fc.assert(
      fc.property(quota, quota, (one, other) => {
        const result = merged(one, other);
        for (const kind of ["minute", "day"] as const) {
          const [own, known] = [current(one)[kind], current(other)[kind]];
          const open = [own, known].filter(({ used }) => used > 0);
          const openings = open.map(({ openedAt }) => openedAt);
          const isNext = Math.max(...openings) - Math.min(...openings) >= LENGTHS_MS[kind] - 1_000;
          const counted = isNext ? open.filter(({ openedAt }) => openedAt === Math.max(...openings)) : open;
          expect(result[kind].used).toBe(Math.max(0, ...counted.map(({ used }) => used)));
          if (counted.length > 0)
            expect(result[kind].openedAt).toBe(Math.min(...counted.map(({ openedAt }) => openedAt)));
        }
      }),
      { seed: 7, numRuns: 500, endOnFailure: true },
    );
  });

  test("of windows that are open together it has the strikes and the later grace, without those from before a ban", () => {
    fc.assert(
      fc.property(quota, quota, (one, other) => {
        const result = merged(one, other);
        const both = [current(one), current(other)];
        const banEnd = Math.max(...both.map(({ bannedUntil }) => bannedUntil));
        for (const kind of ["minute", "day"] as const) {
          const newest = Math.max(...both.map((each) => (each[kind].used > 0 ? each[kind].openedAt : NEVER)));
          const known = both.flatMap(({ [kind]: window, bannedUntil }) => {
            const isOpen = window.used > 0 && newest - window.openedAt < LENGTHS_MS[kind] - 1_000;
            return isOpen && banEnd - bannedUntil <= 1_000 ? window : [];
          });
          expect(result[kind].strikes).toBe(Math.max(0, ...known.map(({ strikes }) => strikes)));
          expect(result[kind].graceBeganAt).toBe(
            Math.max(NEVER, ...known.map(({ graceBeganAt }) => graceBeganAt)),
          );
        }
      }),
      { seed: 7, numRuns: 500, endOnFailure: true },
    );
  });

  test("has the later ban, and merging again changes nothing", () => {
    fc.assert(
      fc.property(quota, quota, (one, other) => {
        const result = merged(one, other);
        const ends = [current(one), current(other)].map(({ bannedUntil }) => bannedUntil);
        expect(Math.max(...ends) - result.bannedUntil).toBeWithin(0, 1_001);
        const [first = 0, second = 0] = ends;
        if (second - first > 1_000) expect(result.bannedAt).toBe(current(other).bannedAt);
        expect(merged(result, other)).toEqual(result);
        expect(merged(result, result)).toEqual(result);
      }),
      { seed: 7, numRuns: 500, endOnFailure: true },
    );
  });
});

const ONE = { perMinute: 1, perDay: 9 };

test("a ban is forgotten a day after its end", () => {
  const quota = { ...newQuota(), bannedUntil: STARTS_AT, lastBanMs: 300_000 };
  expire(quota, STARTS_AT + DAY_MS - 1);
  expect([quota.lastBanMs, isExpired(quota, STARTS_AT + DAY_MS - 1)]).toEqual([300_000, false]);
  expect(isExpired(quota, STARTS_AT + DAY_MS)).toBeTrue();
  expire(quota, STARTS_AT + DAY_MS);
  expect(quota).toEqual(newQuota());
});

test("a quota is kept until its last window closes, which can be that of the minute", () => {
  const quota = newQuota();
  Object.assign(quota.day, { used: 2, openedAt: STARTS_AT });
  expect(expiresAt(quota)).toBe(STARTS_AT + DAY_MS);
  Object.assign(quota.minute, { used: 1, openedAt: STARTS_AT + DAY_MS - 1 });
  expect(expiresAt(quota)).toBe(STARTS_AT + DAY_MS - 1 + MINUTE_MS);
});

test("an unban changes something after a ban or a strike", () => {
  const window = { ...newQuota().minute, strikes: 1 };
  const quotas = [{}, { bannedUntil: 0 }, { minute: window }, { day: window }];
  expect(quotas.map((changes) => canUnban({ ...newQuota(), ...changes }))).toEqual([false, true, true, true]);
});

test("a client waits for the exhausted window that closes last, and on a tie for the longer one", () => {
  const window = (remaining: number, resetAt: number) => ({ limit: 1, remaining, resetAt, strikes: 0 });
  const exhausted = (minute: Decision["minute"], day: Decision["day"]) =>
    exhaustedWindow({ ...window(0, 0), outcome: "limited", retryAfterSeconds: 1, minute, day });
  expect(exhausted(window(0, 60), window(1, 90))).toBe("minute");
  expect(exhausted(window(1, 90), window(0, 60))).toBe("day");
  expect(exhausted(window(0, 60), window(0, 90))).toBe("day");
  expect(exhausted(window(0, 60), window(0, 60))).toBe("day");
  expect(exhausted(window(0, 61), window(0, 60))).toBe("minute");
});

test("four fifths of a limit are close to it", () => {
  expect([usedPercent(1, 4), usedPercent(3, 2)]).toEqual([25, 150]);
  expect([isCloseToLimit(799, 1_000), isCloseToLimit(800, 1_000)]).toEqual([false, true]);
});

test("a clock may start at 0", () => {
  const quota = newQuota();
  expect(decide(quota, ONE, 0, DEFAULT_BAN)).toMatchObject({ outcome: "allowed", resetAt: 60 });
  expect(decide(quota, ONE, 0, DEFAULT_BAN)).toMatchObject({ outcome: "limited", retryAfterSeconds: 60 });
});

test("a ban is no longer than the current rules allow", () => {
  const quota = { ...newQuota(), bannedAt: STARTS_AT, bannedUntil: STARTS_AT + 300_000 };
  expire(quota, STARTS_AT + 1, { ...DEFAULT_BAN, lengthMs: 1_000, maxLengthMs: 2_000 });
  expect(quota.bannedUntil).toBe(STARTS_AT + 2_000);
  expire(quota, STARTS_AT + 2_000, DEFAULT_BAN);
  expect(quota).toMatchObject({ bannedAt: NEVER, bannedUntil: STARTS_AT + 2_000, lastBanMs: 2_000 });
});

test("stored data has the ten numbers of a quota in this order, in later releases too", () => {
  const minute = { openedAt: 1, used: 2, graceBeganAt: 3, strikes: 4 };
  const day = { openedAt: 5, used: 6, graceBeganAt: 7, strikes: 8 };
  const banned = { minute, day, bannedAt: 9, bannedUntil: 10, lastBanMs: 0 };
  expect(toStored(banned)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(toStored({ ...banned, bannedAt: NEVER, bannedUntil: 9, lastBanMs: 1 }).slice(8)).toEqual([9, -2]);
  expect(fromStored([])).toEqual(newQuota());
});

/** Releases up to 1.2.0 stored the first rejection where the beginning of the grace period is, and more strikes. */
test("what an earlier release stored goes on: its strikes count, and the next comes a second after the last", () => {
  const stored = [STARTS_AT, 1, STARTS_AT, 8, STARTS_AT, 1, -1, 0, -1, -1];
  const quota = fromStored(stored);
  const outcomes = [2_000, 2_500, 3_000, 3_001].map(
    (ms) => decide(quota, ONE, STARTS_AT + ms, DEFAULT_BAN).outcome,
  );
  expect(outcomes).toEqual(["limited", "limited", "limited", "banned"]);
});
