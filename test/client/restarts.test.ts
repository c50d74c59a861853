import { expect, test } from "bun:test";
import { clientRestarts } from "../../trials/faults/client.ts";

test("every create happens once and every pet is listed once, while the server is killed three times", async () => {
  const options = { creates: 400, kills: 3, perMinute: 10_000, concurrency: 20 };
  const result = await clientRestarts(options);
  expect(result).toMatchObject({ created: 400, listed: 400, names: 400, duplicates: 0, missing: 0 });
  expect(result.rateLimited).toBe(0);
  expect(result.retries).toBeGreaterThan(0);
}, 120_000);
