import { afterAll, beforeAll, expect, test } from "bun:test";
import { DEFAULT_PLANS } from "../../src/domain/api-keys.ts";
import { type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

test("any 401: without a key no path or method shows whether it exists", async () => {
  for (const [method, path] of [
    ["GET", "/nothing"],
    ["DELETE", "/pets"],
    ["OPTIONS", "/pets"],
    ["POST", "/pets"],
    ["HEAD", "/pets"],
    ["GET", ""],
  ] as const) {
    expect((await service.call({ method, path, key: null })).status).toBe(401);
  }
});

test("any 401: counts against the limits of the address, and 429 beyond them", async () => {
  const own = await startService({
    plans: {
      ...DEFAULT_PLANS,
      anonymous: { perMinute: 5, perDay: 100 },
    },
  });
  const statuses: number[] = [];
  for (let i = 0; i < 7; i++) statuses.push((await own.call({ path: "/pets", key: null })).status);
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
  expect((await own.call({ path: "/pets" })).status).toBe(200);
  await own.stop();
});
