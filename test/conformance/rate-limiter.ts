import { describe, expect, test as plainTest } from "bun:test";
import { PortCalls } from "./port-calls.ts";
import { testBans, testRepeatedBans } from "./rate-limiter-bans.ts";
import { createTestCase, type OpenRateLimiter } from "./rate-limiter-fixture.ts";
import { testClockAndRestart, testOperators } from "./rate-limiter-operators.ts";
import { testHeaders, testWindows } from "./rate-limiter-windows.ts";

export { type OpenRateLimiter, type RateLimiterUnderTest, STARTS_AT } from "./rate-limiter-fixture.ts";

/** Everything that a RateLimiter must do, on a clock that the tests move. */
export function rateLimiterConformance(name: string, openLimiter: OpenRateLimiter): void {
  const calls = new PortCalls();
  const open: OpenRateLimiter = async (options) => {
    const opened = await openLimiter(options);
    return {
      ...opened,
      // Each restart opens another.
      get rateLimiter() {
        return calls.recorded(opened.rateLimiter, "RateLimiter");
      },
    };
  };
  const test = createTestCase(open);
  describe(`${name}: windows`, () => testWindows(test));
  describe(`${name}: headers`, () => testHeaders(test));
  describe(`${name}: bans`, () => testBans(test));
  describe(`${name}: repeated bans`, () => testRepeatedBans(test));
  describe(`${name}: operators`, () => testOperators(test));
  describe(`${name}: clock and restart`, () => testClockAndRestart(test));
  plainTest(`${name}: a case calls each method`, () => {
    expect(calls.missing(["RateLimiter"])).toEqual([]);
  });
}
