import { expect } from "bun:test";
import * as fc from "fast-check";
import { type BanRules, type Limits, newUsage, type Subject } from "../../src/domain/rate-limit.ts";
import { type OpenRateLimiter, type RateLimiterUnderTest, STARTS_AT } from "../conformance/rate-limiter.ts";
import { address, key, textOf } from "../subjects.ts";
import { ModelRateLimiter, type VisibleUsage } from "./model.ts";

const SUBJECTS = [key(1), key(2), address("192.0.2.7")];

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
const subject = fc.constantFrom<Subject>(...SUBJECTS);
const limits = fc.record({
  perMinute: fc.integer({ min: 1, max: 5 }),
  perDay: fc.integer({ min: 1, max: 12 }),
});
const rules: fc.Arbitrary<BanRules> = fc.record({
  strikes: fc.integer({ min: 1, max: 4 }),
  graceMs: fc.constantFrom(0, 1_000, 1_500),
  lengthMs: fc.constantFrom(1, 5_000, 300_000),
});

type Step =
  | { readonly burst: Subject; readonly count: number }
  | { readonly pauseMs: number }
  | { readonly waitRetryAfter: Subject }
  | { readonly jumpMs: number }
  | { readonly restartWithJumpMs: number }
  | { readonly plan: Subject; readonly limits: Limits }
  | { readonly unban: Subject; readonly agoMs: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ burst: subject, count: fc.integer({ min: 1, max: 8 }) }) },
  { weight: 4, arbitrary: fc.record({ pauseMs: pause }) },
  { weight: 2, arbitrary: fc.record({ waitRetryAfter: subject }) },
  { weight: 1, arbitrary: fc.record({ jumpMs: jump }) },
  { weight: 1, arbitrary: fc.record({ restartWithJumpMs: jump }) },
  { weight: 1, arbitrary: fc.record({ plan: subject, limits }) },
  { weight: 1, arbitrary: fc.record({ unban: subject, agoMs: fc.constantFrom(0, 1, 1_000, 100_000) }) },
);

/** Random histories of a few subjects: rate limiter and model must be the same at each step. */
export async function compareWithModel(open: OpenRateLimiter, runs: number): Promise<void> {
  const history = fc.record({ rules, limits, steps: fc.array(step, { maxLength: 40, size: "max" }) });
  await fc.assert(
    fc.asyncProperty(history, async ({ rules, limits, steps }) => {
      const opened = await open({ ban: rules, startsAt: STARTS_AT });
      try {
        const comparison = new Comparison(opened, new ModelRateLimiter(rules), limits);
        for (const next of steps) await comparison.run(next);
      } finally {
        await opened.close();
      }
    }),
    { numRuns: runs },
  );
}

class Comparison {
  readonly #limits: Map<string, Limits>;
  /** A start does not load what has expired by then, so the clock is never set back to before a start. */
  #earliest = -Infinity;

  constructor(
    private readonly opened: RateLimiterUnderTest,
    private readonly model: ModelRateLimiter,
    limits: Limits,
  ) {
    this.#limits = new Map(SUBJECTS.map((subject) => [textOf(subject), limits]));
  }

  async run(step: Step): Promise<void> {
    const { opened, model } = this;
    if ("burst" in step) for (let i = 0; i < step.count; i++) await this.#decide(step.burst);
    if ("pauseMs" in step) opened.advance(step.pauseMs);
    if ("waitRetryAfter" in step) await this.#waitRetryAfter(step.waitRetryAfter);
    if ("jumpMs" in step) opened.advance(Math.max(step.jumpMs, this.#earliest - opened.now()));
    if ("restartWithJumpMs" in step) await this.#restart(step.restartWithJumpMs);
    if ("plan" in step) this.#limits.set(textOf(step.plan), step.limits);
    if ("unban" in step) {
      await opened.rateLimiter.unban(step.unban, step.agoMs);
      model.unban(step.unban, opened.now() - step.agoMs, opened.now());
    }
    for (const subject of SUBJECTS)
      expect(await this.#usage(subject)).toEqual(model.usage(subject, opened.now()));
  }

  async #decide(subject: Subject) {
    const limits = this.#limits.get(textOf(subject)) ?? { perMinute: 1, perDay: 1 };
    const decision = await this.opened.rateLimiter.decide(subject, limits);
    expect(decision).toEqual(this.model.decide(subject, limits, this.opened.now()));
    return decision;
  }

  async #waitRetryAfter(subject: Subject): Promise<void> {
    const { outcome, retryAfter } = await this.#decide(subject);
    this.opened.advance(retryAfter * 1000);
    const { outcome: later } = await this.#decide(subject);
    if (outcome === "limited") expect(later).toBe("allowed");
  }

  async #restart(jumpMs: number): Promise<void> {
    this.opened.advance(Math.max(jumpMs, this.#earliest - this.opened.now()));
    await this.opened.restart();
    this.#earliest = this.opened.now();
  }

  async #usage(subject: Subject): Promise<VisibleUsage> {
    const { minute, day, bannedUntil } = (await this.opened.rateLimiter.usage(subject)) ?? newUsage();
    return {
      used: [minute.used, day.used],
      strikes: [minute.strikes, day.strikes],
      bannedUntil: bannedUntil > this.opened.now() ? bannedUntil : undefined,
    };
  }
}
