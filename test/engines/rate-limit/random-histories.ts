import { expect } from "bun:test";
import * as fc from "fast-check";
import { type BanRules, type Limits, NEVER, newUsage, type Subject } from "../../../src/domain/rate-limit.ts";
import {
  type OpenRateLimiter,
  type RateLimiterUnderTest,
  STARTS_AT,
} from "../../conformance/rate-limiter.ts";
import { key, textOf } from "../../subjects.ts";

const SUBJECTS = [key(1), key(2)];

/** Rate limiters fail where something begins or ends, so most pauses end at such a time. */
const pause = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(1, 999, 1_000, 1_001, 4_999, 5_000, 59_999, 60_000, 60_001) },
  { weight: 2, arbitrary: fc.constantFrom(299_999, 300_000, 86_339_999, 86_340_000, 86_399_999, 86_400_000) },
  { weight: 1, arbitrary: fc.nat(100_000) },
);
const jump = fc.oneof(
  pause,
  pause.map((ms) => -ms),
  fc.integer({ min: -200_000_000, max: 200_000_000 }),
);
const limits = fc.record({
  perMinute: fc.integer({ min: 1, max: 5 }),
  perDay: fc.integer({ min: 1, max: 12 }),
});
const rules: fc.Arbitrary<BanRules> = fc
  .record({
    strikes: fc.integer({ min: 1, max: 4 }),
    graceMs: fc.constantFrom(0, 1_000, 1_500),
    lengthMs: fc.constantFrom(1, 5_000, 300_000),
    longest: fc.constantFrom(1, 3, 8),
  })
  .map(({ strikes, graceMs, lengthMs, longest }) => ({
    strikes,
    graceMs,
    lengthMs,
    maxLengthMs: longest * lengthMs,
  }));

type Step =
  | { readonly burst: Subject; readonly count: number }
  | { readonly pauseMs: number }
  | { readonly waitRetryAfter: Subject }
  | { readonly jumpMs: number }
  | { readonly restartWithJumpMs: number }
  | { readonly plan: Subject; readonly limits: Limits }
  | { readonly unban: Subject; readonly agoMs: number };

const subject = fc.constantFrom(...SUBJECTS);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ burst: subject, count: fc.integer({ min: 1, max: 8 }) }) },
  { weight: 4, arbitrary: fc.record({ pauseMs: pause }) },
  { weight: 2, arbitrary: fc.record({ waitRetryAfter: subject }) },
  { weight: 1, arbitrary: fc.record({ jumpMs: jump }) },
  { weight: 1, arbitrary: fc.record({ restartWithJumpMs: jump }) },
  { weight: 1, arbitrary: fc.record({ plan: subject, limits }) },
  { weight: 1, arbitrary: fc.record({ unban: subject, agoMs: fc.constantFrom(0, 1, 1_000, 100_000) }) },
);
const history = fc.record({ rules, limits, steps: fc.array(step, { maxLength: 40, size: "max" }) });

/** Random histories of two keys: both rate limiters must decide the same at each step. */
export async function compareInHistories(
  opens: readonly [OpenRateLimiter, OpenRateLimiter],
  runs: number,
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(history, async ({ rules, limits, steps }) => {
      const opened = await Promise.all(opens.map(async (open) => open({ ban: rules, startsAt: STARTS_AT })));
      const [one, other] = opened.map((each) => new Player(each, limits));
      try {
        for (const next of steps) expect(await one?.play(next)).toEqual(await other?.play(next));
      } finally {
        await Promise.all(opened.map((each) => each.close()));
      }
    }),
    { numRuns: runs },
  );
}

/** Plays a history on one rate limiter. */
class Player {
  readonly #limits: Map<string, Limits>;
  /** A start does not load what has expired by then, so the clock is never set back to before a start. */
  #earliest = -Infinity;

  constructor(
    private readonly opened: RateLimiterUnderTest,
    limits: Limits,
  ) {
    this.#limits = new Map(SUBJECTS.map((subject) => [textOf(subject), limits]));
  }

  /** Gives the decisions, and the usage after them. */
  async play(step: Step): Promise<unknown[]> {
    const seen: unknown[] = [];
    if ("burst" in step) for (let i = 0; i < step.count; i++) seen.push(await this.#decide(step.burst));
    if ("pauseMs" in step) this.opened.advance(step.pauseMs);
    if ("waitRetryAfter" in step) seen.push(await this.#waitRetryAfter(step.waitRetryAfter));
    if ("jumpMs" in step) this.#jump(step.jumpMs);
    if ("restartWithJumpMs" in step) {
      this.#jump(step.restartWithJumpMs);
      await this.opened.restart();
      this.#earliest = this.opened.now();
    }
    if ("plan" in step) this.#limits.set(textOf(step.plan), step.limits);
    if ("unban" in step) await this.opened.rateLimiter.unban(step.unban, step.agoMs);
    return [...seen, ...(await Promise.all(SUBJECTS.map((subject) => this.#usage(subject))))];
  }

  #jump(ms: number): void {
    this.opened.advance(Math.max(ms, this.#earliest - this.opened.now()));
  }

  async #decide(subject: Subject) {
    const limits = this.#limits.get(textOf(subject)) ?? { perMinute: 1, perDay: 1 };
    return this.opened.rateLimiter.decide(subject, limits);
  }

  /** A request after `Retry-After` is allowed. */
  async #waitRetryAfter(subject: Subject) {
    const { outcome, retryAfter } = await this.#decide(subject);
    this.opened.advance(retryAfter * 1000);
    const later = await this.#decide(subject);
    if (outcome === "limited") expect(later.outcome).toBe("allowed");
    return later;
  }

  /** What a client can notice of it. */
  async #usage(subject: Subject) {
    const { minute, day, bannedUntil, lastBanEndedAt, lastBanMs } =
      (await this.opened.rateLimiter.usage(subject)) ?? newUsage();
    return {
      used: [minute.used, day.used],
      strikes: [minute.strikes, day.strikes],
      bannedUntil: bannedUntil > this.opened.now() ? bannedUntil : undefined,
      lastBan: lastBanEndedAt === NEVER ? undefined : { endedAt: lastBanEndedAt, lengthMs: lastBanMs },
    };
  }
}
