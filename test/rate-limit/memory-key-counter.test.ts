import { expect, test } from "bun:test";
import { DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import { MemoryKeyCounter } from "../../src/rate-limit/memory/memory-key-counter.ts";
import { TestClock } from "../test-clock.ts";

const FREE = { perMinute: 60, perDay: 1_000 };

test("50,000 keys are counted; the one without a request for the longest time is forgotten first", async () => {
  const counter = new MemoryKeyCounter({ clock: new TestClock(), ban: () => DEFAULT_BAN });
  const count = (keyId: number) => counter.decide({ keyId, limits: FREE });
  for (let keyId = 0; keyId < 50_000; keyId++) await count(keyId);
  await count(0);
  await count(50_000);
  expect(await counter.quota(0)).toMatchObject({ minute: { used: 2 } });
  expect(await counter.quota(1)).toBeUndefined();
  expect(await counter.quota(2)).toMatchObject({ minute: { used: 1 } });
});
