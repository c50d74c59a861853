import { expect } from "bun:test";
import * as fc from "fast-check";
import { type BanRules, type Limits, NEVER, newUsage, type Subject } from "../../src/domain/rate-limit.ts";
import { type OpenRateLimiter, type RateLimiterUnderTest, STARTS_AT } from "../conformance/rate-limiter.ts";
import { textOf } from "../subjects.ts";
import { ModelRateLimiter, type VisibleUsage } from "./model.ts";

interface Scope {
  readonly runs: number;
  /** Those whose usage survives a restart. */
  readonly subjects: readonly Subject[];
}

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

const stepOf = (subject: fc.Arbitrary<Subject>): fc.Arbitrary<Step> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ burst: subject, count: fc.integer({ min: 1, max: 8 }) }) },
    { weight: 4, arbitrary: fc.record({ pauseMs: pause }) },
    { weight: 2, arbitrary: fc.record({ waitRetryAfter: subject }) },
    { weight: 1, arbitrary: fc.record({ jumpMs: jump }) },
    { weight: 1, arbitrary: fc.record({ restartWithJumpMs: jump }) },
    { weight: 1, arbitrary: fc.record({ plan: subject, limits }) },
    { weight: 1, arbitrary: fc.record({ unban: subject, agoMs: fc.constantFrom(0, 1, 1_000, 100_000) }) },
  );

/** Random histories of a few subjects: rate limiter and model must be the same at each step. */
export async function compareWithModel(open: OpenRateLimiter, { runs, subjects }: Scope): Promise<void> {
  const step = stepOf(fc.constantFrom(...subjects));
  const history = fc.record({ rules, limits, steps: fc.array(step, { maxLength: 40, size: "max" }) });
  await fc.assert(
    fc.asyncProperty(history, async ({ rules, limits, steps }) => {
      const opened = await open({ ban: rules, startsAt: STARTS_AT });
      try {
        const comparison = new Comparison({ opened, model: new ModelRateLimiter(rules), subjects }, limits);
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
    private readonly compared: {
      readonly opened: RateLimiterUnderTest;
      readonly model: ModelRateLimiter;
      readonly subjects: readonly Subject[];
    },
    limits: Limits,
  ) {
    this.#limits = new Map(compared.subjects.map((subject) => [textOf(subject), limits]));
  }

  async run(step: Step): Promise<void> {
    const { opened, model, subjects } = this.compared;
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
    const usages = await Promise.all(subjects.map((subject) => this.#usage(subject)));
    expect(usages).toEqual(subjects.map((subject) => model.usage(subject, opened.now())));
  }

  async #decide(subject: Subject) {
    const limits = this.#limits.get(textOf(subject)) ?? { perMinute: 1, perDay: 1 };
    const decision = await this.compared.opened.rateLimiter.decide(subject, limits);
    expect(decision).toEqual(this.compared.model.decide(subject, limits, this.compared.opened.now()));
    return decision;
  }

  async #waitRetryAfter(subject: Subject): Promise<void> {
    const { outcome, retryAfter } = await this.#decide(subject);
    this.compared.opened.advance(retryAfter * 1000);
    const { outcome: later } = await this.#decide(subject);
    if (outcome === "limited") expect(later).toBe("allowed");
  }

  async #restart(jumpMs: number): Promise<void> {
    this.compared.opened.advance(Math.max(jumpMs, this.#earliest - this.compared.opened.now()));
    await this.compared.opened.restart();
    this.#earliest = this.compared.opened.now();
  }

  async #usage(subject: Subject): Promise<VisibleUsage> {
    const { minute, day, bannedUntil, lastBanEndedAt, lastBanMs } =
      (await this.compared.opened.rateLimiter.usage(subject)) ?? newUsage();
    return {
      used: [minute.used, day.used],
      strikes: [minute.strikes, day.strikes],
      bannedUntil: bannedUntil > this.compared.opened.now() ? bannedUntil : undefined,
      lastBan: lastBanEndedAt === NEVER ? undefined : { endedAt: lastBanEndedAt, lengthMs: lastBanMs },
    };
  }
}
