import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { BanRules } from "../../src/domain/ban-rules.ts";
import { ADDRESS, KEY, type OpenRateLimiter, STARTS_AT } from "./rate-limiter-fixture.ts";

const DAY_MS = 86_400_000;

const limits = fc.record({
  perMinute: fc.integer({ min: 1, max: 4 }),
  perDay: fc.integer({ min: 1, max: 6 }),
});
/** Bans that end before, with and after each window. */
const rules: fc.Arbitrary<BanRules> = fc.record({
  strikes: fc.integer({ min: 1, max: 3 }),
  graceMs: fc.constantFrom(0, 1_000),
  lengthMs: fc.constantFrom(1_500, 60_000, 300_000, 2 * DAY_MS),
  maxLengthMs: fc.constantFrom(2 * DAY_MS, 3 * DAY_MS),
});
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ limits, requests: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 3, arbitrary: fc.record({ passMs: fc.constantFrom(1, 999, 1_001, 30_000, 60_000, DAY_MS - 1) }) },
  { weight: 2, arbitrary: fc.constantFrom("wait for Retry-After", "wait for X-RateLimit-Reset") },
);

/**
 * A client does what a 429 says, after any history of its windows, of bans and of its plan. `X-RateLimit-Reset` of an
 * exhausted limit is about one window, and says when a request is allowed during a ban alone.
 */
export function testWaits(name: string, open: OpenRateLimiter): void {
  test(`${name}: whoever waits as long as any 429 says is allowed`, async () => {
    const waits = { limited: 0, banned: 0, "banned beyond the ban": 0 };
    const isKept = fc.asyncProperty(
      rules,
      fc.constantFrom(KEY, ADDRESS),
      fc.array(step, { maxLength: 30, size: "max" }),
      async (ban, subject, steps) => {
        const opened = await open({ ban, startsAt: STARTS_AT });
        let plan = { perMinute: 1, perDay: 1 };
        const send = async () => opened.rateLimiter.decide(subject, plan);
        try {
          for (const each of steps) {
            if (typeof each === "object") {
              if ("passMs" in each) opened.advance(each.passMs);
              else plan = each.limits;
              const requests = "requests" in each ? each.requests : 0;
              for (let i = 0; i < requests; i++) await send();
              continue;
            }
            const { outcome, retryAfterSeconds, resetAt } = await send();
            if (outcome === "allowed") continue;
            const now = opened.now();
            const { bannedUntil = 0 } = (await opened.rateLimiter.quota(subject)) ?? {};
            waits[outcome]++;
            if (outcome === "banned" && bannedUntil <= now + 1_000 * (retryAfterSeconds - 1))
              waits["banned beyond the ban"]++;
            const isReset = outcome === "banned" && each === "wait for X-RateLimit-Reset";
            opened.advance(isReset ? 1_000 * resetAt - now : 1_000 * retryAfterSeconds);
            expect((await send()).outcome).toBe("allowed");
          }
        } finally {
          await opened.close();
        }
      },
    );
    await fc.assert(isKept, { numRuns: 60, seed: 7, endOnFailure: true });
    expect(Math.min(...Object.values(waits))).toBeGreaterThan(0);
  });
}
