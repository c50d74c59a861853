import { test } from "bun:test";
import { limiterAgreesWithModel } from "./agreement.ts";
import { openOnMaps } from "./opening.ts";

test("rateLimiter and model never differ, whatever happens to whom and when", async () => {
  await limiterAgreesWithModel(openOnMaps, 500);
}, 60_000);
