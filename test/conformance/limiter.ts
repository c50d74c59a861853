import { describe } from "bun:test";
import { bans } from "./limiter-bans.ts";
import { headers } from "./limiter-headers.ts";
import { operators } from "./limiter-operators.ts";
import { clockAndRestart } from "./limiter-time.ts";
import { type OpenLimiter, promisesOf } from "./limiter-trial.ts";
import { windows } from "./limiter-windows.ts";

export { type LimiterUnderTest, type OpenLimiter, STARTS_AT } from "./limiter-trial.ts";

/** Everything that is promised of limits and bans, for every engine, on a clock that the tests hold. */
export function limiterConformance(name: string, open: OpenLimiter): void {
  const promise = promisesOf(open);
  describe(`${name}: windows`, () => windows(promise));
  describe(`${name}: headers`, () => headers(promise));
  describe(`${name}: bans`, () => bans(promise));
  describe(`${name}: operators`, () => operators(promise));
  describe(`${name}: clock and restart`, () => clockAndRestart(promise));
}
