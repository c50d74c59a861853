import { afterEach, beforeEach, expect, test } from "bun:test";
import { toNewSecret, generateSecret } from "../../src/domain/api-keys.ts";
import { type Service, startService } from "../service.ts";
import { BY } from "../key-store-arguments.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

let service: Service;
beforeEach(async () => void (service = await startService()));
afterEach(() => service.stop());

const list = (key: string) => service.call({ path: "/pets", key });

for (const isSeenBefore of [true, false]) {
  const before = isSeenBefore ? "used before" : "not used before";

  test(`any 401: a key that has expired by the machine's clock after it was set, ${before}`, async () => {
    const { secret } = await service.newKey({ expiresAt: service.clock.now() + HOUR_MS });
    if (isSeenBefore) expect((await list(secret)).status).toBe(200);
    service.clock.step(DAY_MS);
    expect((await list(secret)).json).toMatchObject({ code: "invalid_api_key" });
    service.clock.step(-DAY_MS);
    expect((await list(secret)).status).toBe(200);
  });

  test(`any 401: a rolled secret whose overlap has ended by the machine's clock, ${before}`, async () => {
    const { id, secret } = await service.newKey();
    const successor = generateSecret("production");
    await service.app.keys.addSecret(
      id,
      { ...toNewSecret(successor), overlapEndsAt: service.clock.now() + HOUR_MS },
      BY,
    );
    if (isSeenBefore) expect((await list(secret)).status).toBe(200);
    service.clock.step(DAY_MS);
    expect((await list(secret)).json).toMatchObject({ code: "invalid_api_key" });
    expect((await list(successor)).status).toBe(200);
    service.clock.step(-DAY_MS);
    expect((await list(secret)).status).toBe(200);
  });
}

for (const byMs of [DAY_MS, -DAY_MS]) {
  test(`any 429: the machine's clock set by ${byMs} ms opens no new window, and Reset follows it`, async () => {
    const { secret } = await service.newKey({ limits: { perMinute: 2, perDay: 100 } });
    await list(secret);
    await list(secret);
    service.clock.step(byMs);
    const { json, headers } = await list(secret);
    expect(json).toMatchObject({ code: "rate_limited" });
    expect(headers.get("retry-after")).toBe("60");
    expect(Number(headers.get("x-ratelimit-reset"))).toBe(service.clock.now() / 1000 + 60);
    service.clock.advance(60_000);
    expect((await list(secret)).status).toBe(200);
  });
}

test("placeOrder 201: createdAt follows the machine's clock", async () => {
  await service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } });
  service.clock.step(DAY_MS);
  const { json } = await service.call({ method: "POST", path: "/store/orders", body: { petId: 1 } });
  expect(json).toMatchObject({ createdAt: "2026-11-16T12:00:00.000Z" });
});

test("createPet 201: an Idempotency-Key is forgotten after 24 hours of the machine's clock", async () => {
  const create = () =>
    service.call({
      method: "POST",
      path: "/pets",
      headers: { "Idempotency-Key": "one" },
      body: { name: "Rex", categoryId: 1 },
    });
  await create();
  service.clock.step(DAY_MS - 1);
  expect((await create()).json).toMatchObject({ id: 1 });
  service.clock.step(1);
  expect((await create()).json).toMatchObject({ id: 2 });
});

test("getPet 410: removed on 5 December 2030 of the machine's clock", async () => {
  await service.call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } });
  const get = async () => (await service.call({ path: "/pets/1" })).status;
  service.clock.step(Date.parse("2030-12-05T00:00:00Z") - service.clock.now() - 1);
  expect(await get()).toBe(200);
  service.clock.step(1);
  expect(await get()).toBe(410);
  service.clock.step(-DAY_MS);
  expect(await get()).toBe(200);
});
