import { describe, expect, test as plainTest } from "bun:test";
import { PortCalls } from "./port-calls.ts";
import { rateLimiterCases } from "./rate-limiter-cases.ts";
import { createTestCase, type OpenRateLimiter } from "./rate-limiter-fixture.ts";
import { testAgainstModel } from "./rate-limiter-model.ts";
import { testWaits } from "./rate-limiter-waits.ts";

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
  testAgainstModel(name, open);
  testWaits(name, open);
  describe(name, () => rateLimiterCases(createTestCase(open)));
  plainTest(`${name}: a case calls each method`, () => {
    expect(calls.missing(["RateLimiter"])).toEqual([]);
  });
}
