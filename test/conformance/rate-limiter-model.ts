import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { BanRules } from "../../src/domain/ban-rules.ts";
import {
  decide,
  expire,
  isBanned,
  isExpired,
  type Limits,
  newQuota,
  type Quota,
  unban,
} from "../../src/domain/rate-limit.ts";
import { key } from "../subjects.ts";
import { type NewBan, type OpenRateLimiter, STARTS_AT, withTimes } from "./rate-limiter-fixture.ts";

const KEYS = [1, 10, Number.MAX_SAFE_INTEGER] as const;

/** What a rate limiter does with keys, made of the rules of the domain and a map. */
class Model {
  readonly bans: NewBan[] = [];
  readonly #quotas = new Map<number, Quota>();

  constructor(private readonly rules: BanRules) {}

  decide(id: number, limits: Limits, now: number) {
    const quota = this.#at(id, now);
    const wasBanned = isBanned(quota, now);
    const decision = decide(quota, limits, now, this.rules);
    if (decision.outcome === "banned" && !wasBanned) this.bans.push([id, quota.bannedAt, quota.bannedUntil]);
    return decision;
  }

  unban(id: number, agoMs: number, now: number): void {
    unban(this.#at(id, now), now - agoMs);
  }

  quota(id: number, now: number): Quota | undefined {
    const quota = this.#at(id, now);
    return isExpired(quota, now) ? undefined : quota;
  }

  bannedKeys(now: number): number[] {
    return KEYS.filter((id) => isBanned(this.#at(id, now), now));
  }

  #at(id: number, now: number): Quota {
    const quota = this.#quotas.get(id) ?? newQuota();
    this.#quotas.set(id, quota);
    expire(quota, now, this.rules);
    return quota;
  }
}

/** Limiters fail where something begins or ends. */
const times = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(1, 500, 1_000, 1_001, 5_000, 58_999, 59_999, 60_000) },
  { weight: 2, arbitrary: fc.constantFrom(299_999, 300_000, 600_000, 86_339_999, 86_399_999, 86_400_000) },
  { weight: 1, arbitrary: fc.nat(200_000_000) },
);
const id = fc.constantFrom(...KEYS);
const limits = fc.record({
  perMinute: fc.integer({ min: 1, max: 5 }),
  perDay: fc.integer({ min: 1, max: 12 }),
});
const rules: fc.Arbitrary<BanRules> = fc.record({
  strikes: fc.integer({ min: 1, max: 3 }),
  graceMs: fc.constantFrom(0, 1_000),
  lengthMs: fc.constantFrom(1_500, 300_000),
  maxLengthMs: fc.constantFrom(300_000, 900_000),
});
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("decide" as const),
      id,
      limits,
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: times }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("unban" as const), id, agoMs: times.map((ms) => ms - 1) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
);

const MAX_PROPERTY_MS = 40_000;

export function testAgainstModel(name: string, open: OpenRateLimiter): void {
  test(`${name} decides, unbans and restarts as the rules say, in any history of any keys`, async () => {
    const endsAt = performance.now() + MAX_PROPERTY_MS;
    const agrees = fc.asyncProperty(
      rules,
      fc.array(step, { maxLength: 40, size: "max" }),
      async (ban, steps) => {
        if (performance.now() > endsAt) return;
        const bans: NewBan[] = [];
        const opened = await open({ ban, startsAt: STARTS_AT, onBan: withTimes(bans) });
        const model = new Model(ban);
        try {
          for (const each of steps) {
            const now = opened.now();
            if (each.kind === "pass") opened.advance(each.ms);
            else if (each.kind === "restart") await opened.restart();
            else if (each.kind === "unban") {
              await opened.rateLimiter.unban(key(each.id), each.agoMs);
              model.unban(each.id, each.agoMs, now);
            } else {
              for (let i = 0; i < each.count; i++) {
                const decided = await opened.rateLimiter.decide(key(each.id), each.limits);
                expect(decided).toEqual(model.decide(each.id, each.limits, now));
              }
            }
            expect(bans).toEqual(model.bans);
            const at = opened.now();
            for (const id of KEYS)
              expect(shown(await opened.rateLimiter.quota(key(id)))).toEqual(shown(model.quota(id, at)));
            const bannedKeys = opened.rateLimiter.bannedKeys()?.toSorted((a, b) => a - b);
            // Undefined where another process counts.
            expect(bannedKeys).toBeOneOf([model.bannedKeys(at), undefined]);
          }
        } finally {
          await opened.close();
        }
      },
    );
    await fc.assert(agrees, { numRuns: 25 });
  });
}

/** A window without requests is closed, whenever it was opened. */
function shown(quota: Quota | undefined) {
  if (quota === undefined) return undefined;
  const { minute, day, ...ban } = quota;
  return { minute: minute.used > 0 && minute, day: day.used > 0 && day, ...ban };
}
