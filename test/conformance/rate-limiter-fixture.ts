import { expect, test } from "bun:test";
import type { Awaitable } from "../../src/runtime/awaitable.ts";
import type { RateLimiter } from "../../src/domain/ports/rate-limiter.ts";
import { type BanRules, DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import type { Decision, Limits, OnBan, Subject } from "../../src/domain/rate-limit.ts";
import { address, key } from "../subjects.ts";

/** A rate limiter on a clock that the test moves. */
export interface RateLimiterUnderTest {
  /** The current one: each restart opens another. */
  readonly rateLimiter: RateLimiter;
  now(): number;
  /** A negative number sets the clock back. */
  advance(ms: number): void;
  /** Closes the rate limiter and opens another on the same data. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Opens a rate limiter without any quota, its clock at `startsAt`. */
export type OpenRateLimiter = (options: {
  ban: BanRules;
  startsAt: number;
  onBan?: OnBan;
}) => Awaitable<RateLimiterUnderTest>;

/** Not a whole second, so that rounding shows. */
export const STARTS_AT = 1_800_000_000_123;
export const FREE: Limits = { perMinute: 60, perDay: 1_000 };
export const KEY: Subject = key(1);
export const OTHER_KEY = key(10);
export const ADDRESS = address("2001:db8:0:1::/64");

/** A test on a new rate limiter with the default ban rules. */
export type TestCase = (name: string, body: (limiter: TestLimiter) => Promise<void>) => void;

export function createTestCase(open: OpenRateLimiter): TestCase {
  return (name, body) =>
    test(name, async () => {
      const opened = await open({ ban: DEFAULT_BAN, startsAt: STARTS_AT });
      try {
        await body(new TestLimiter(opened));
      } finally {
        await opened.close();
      }
    });
}

/** Key, beginning and end. */
export type NewBan = readonly [number, number, number];

/** Adds new bans to a list. */
export const withTimes =
  (bans: NewBan[]): OnBan =>
  (keyId, { bannedAt, bannedUntil }) =>
    void bans.push([keyId, bannedAt, bannedUntil]);

export class TestLimiter {
  constructor(private readonly opened: RateLimiterUnderTest) {}

  now = () => this.opened.now();
  advance = (ms: number) => this.opened.advance(ms);
  quota = async (subject = KEY) => this.opened.rateLimiter.quota(subject);

  unban = async (subject = KEY) => this.opened.rateLimiter.unban(subject, 0);

  peek = (limits = FREE, subject: Subject = ADDRESS) => this.opened.rateLimiter.peek(subject, limits);

  async decide(limits = FREE, subject = KEY) {
    return this.opened.rateLimiter.decide(subject, limits);
  }

  /** The next request gets this decision. */
  async decides(expected: Partial<Decision>, limits = FREE, subject = KEY) {
    expect(await this.decide(limits, subject)).toMatchObject(expected);
  }

  /** The outcomes of that many requests. */
  async decideTimes(count: number, limits = FREE, subject = KEY) {
    const outcomes: string[] = [];
    for (let i = 0; i < count; i++) outcomes.push((await this.decide(limits, subject)).outcome);
    return outcomes;
  }

  /** Exhausts a window. The last request is rejected and begins the grace period. */
  async exhaust(limits = FREE, subject = KEY) {
    while ((await this.decide(limits, subject)).outcome === "allowed");
  }

  /** The outcomes of that many requests, each after the grace period of the one before: each is a strike. */
  async strikes(count: number, limits = FREE, subject = KEY) {
    const outcomes: string[] = [];
    for (let i = 0; i < count; i++) {
      this.advance(1_001);
      outcomes.push((await this.decide(limits, subject)).outcome);
    }
    return outcomes;
  }

  async earnBan(limits = FREE, subject = KEY) {
    await this.exhaust(limits, subject);
    await this.strikes(10, limits, subject);
  }

  /** The length of the ban that the key gets next, in seconds. */
  async earnBanOfSeconds() {
    await this.earnBan();
    const { outcome, retryAfterSeconds } = await this.decide();
    return outcome === "banned" ? retryAfterSeconds : outcome;
  }
}

export const all = (count: number, outcome: string) => Array.from({ length: count }, () => outcome);
export const second = (ms: number) => Math.ceil(ms / 1000);
