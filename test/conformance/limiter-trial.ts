import { test } from "bun:test";
import { type BanRules, DEFAULT_BAN, type Limits, type Subject } from "../../src/domain/rate-limit.ts";
import type { Awaitable } from "../../src/domain/awaitable.ts";
import type { RateLimiter } from "../../src/domain/ports.ts";

/** A rateLimiter on a clock that the test holds. */
export interface LimiterUnderTest {
  /** The one in use: another after each restart. */
  readonly rateLimiter: RateLimiter;
  now(): number;
  /** A negative number sets the clock back. */
  advance(ms: number): void;
  /** Closes the rateLimiter and opens another on what it left behind. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Opens a rateLimiter that knows nobody yet, its clock at `startsAt`. */
export type OpenLimiter = (options: { ban: BanRules; startsAt: number }) => Awaitable<LimiterUnderTest>;

/** Not on a full second, so that what rounds shows. */
export const STARTS_AT = 1_800_000_000_123;
export const FREE: Limits = { perMinute: 60, perDay: 1_000 };
export const KEY: Subject = "key:1";
export const OTHER: Subject = "key:10";
export const ADDRESS: Subject = "address:2001:db8:0:1::/64";

/** A sentence that holds for a rateLimiter just opened. */
export type Promises = (sentence: string, body: (trial: Trial) => Promise<void>, ban?: BanRules) => void;

export function promisesOf(open: OpenLimiter): Promises {
  return (sentence, body, ban = DEFAULT_BAN) =>
    test(sentence, async () => {
      const opened = await open({ ban, startsAt: STARTS_AT });
      try {
        await body(new Trial(opened));
      } finally {
        await opened.close();
      }
    });
}

/** What the sentences are made of. */
export class Trial {
  constructor(private readonly opened: LimiterUnderTest) {}

  now = () => this.opened.now();
  advance = (ms: number) => this.opened.advance(ms);
  restart = () => this.opened.restart();
  usage = async (subject = KEY) => this.opened.rateLimiter.usage(subject);
  unban = async (at: number, subject = KEY) => this.opened.rateLimiter.unban(subject, at);

  async decide(limits = FREE, subject = KEY) {
    return this.opened.rateLimiter.decide(subject, limits);
  }

  async times(count: number, limits = FREE, subject = KEY) {
    const outcomes: string[] = [];
    for (let i = 0; i < count; i++) outcomes.push((await this.decide(limits, subject)).outcome);
    return outcomes;
  }

  /** Spends the window and goes past the grace, so that each request from here on is a strike. */
  async provoke(limits = FREE, subject = KEY) {
    while ((await this.decide(limits, subject)).outcome === "allowed");
    this.advance(DEFAULT_BAN.graceMs + 1);
  }

  async earnBan(limits = FREE, subject = KEY) {
    await this.provoke(limits, subject);
    await this.times(DEFAULT_BAN.strikes, limits, subject);
  }
}

export const all = (count: number, outcome: string) => Array.from({ length: count }, () => outcome);
export const second = (ms: number) => Math.ceil(ms / 1000);
