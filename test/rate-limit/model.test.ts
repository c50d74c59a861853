import { test } from "bun:test";
import { limiterAgreesWithModel } from "./agreement.ts";
import { openOnMaps } from "./opening.ts";

test("limiter and model never differ, whatever happens to whom and when", async () => {
  await limiterAgreesWithModel(openOnMaps, 500);
}, 60_000);
