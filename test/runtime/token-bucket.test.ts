import { expect, test } from "bun:test";
import { TokenBucket } from "../../src/runtime/token-bucket.ts";

test("a bucket of 100 tokens and ten a second: the first 100, then ten a second, with the number of those left out", () => {
  let now = 0;
  const bucket = new TokenBucket({ max: 100, perSecond: 10, now: () => now });
  const logged: number[] = [];
  const happen = (times: number) => {
    for (let i = 0; i < times; i++) bucket.reportOrCount((suppressed) => logged.push(suppressed));
  };
  happen(150);
  expect(logged).toEqual(Array.from({ length: 100 }, () => 0));
  now = 1_000;
  logged.length = 0;
  happen(50);
  expect(logged).toEqual([50, ...Array.from({ length: 9 }, () => 0)]);
  now = 3_600_000;
  logged.length = 0;
  happen(1_000);
  expect([logged.length, logged[0]]).toEqual([100, 40]);
});
