import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { UsageRow } from "../../src/domain/usage-history.ts";
import { type Service, startService } from "../service.ts";

const HOUR_MS = 3_600_000;
const NOON = Date.parse("2026-11-15T12:00:00Z");

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const hourOf = async (keyId: number, at = service.clock.now()): Promise<readonly UsageRow[]> =>
  service.app.usageHistory.readUsage({ keyId, by: "hour", since: at, until: at });

describe("usage history of a server", () => {
  test("every outcome is counted, by operation, and is exact after a clean stop", async () => {
    const { id, secret: key } = await service.newKey({ limits: { perMinute: 6, perDay: 100 } });
    const statuses: number[] = [];
    const call = async (path: string, init: { method?: string; body?: unknown } = {}) =>
      statuses.push((await service.call({ path, key, ...init })).status);
    await call("/pets");
    await call("/pets?limit=0");
    await call("/pets", { method: "POST", body: { name: "Rex", categoryId: 1 } });
    await call("/pets/99");
    await call("/no-such-path");
    await call("/pets", { method: "DELETE" });
    await call("/pets");
    service.clock.advance(1_001);
    for (let i = 0; i < 12; i++) await call("/pets");
    expect(statuses.slice(0, 7)).toEqual([200, 400, 201, 404, 404, 405, 429]);
    await service.restart();

    const expected = (operation: UsageRow["operation"], counts: Partial<UsageRow>) => ({
      keyId: id,
      start: NOON,
      operation,
      admitted: 0,
      limited: 0,
      banned: 0,
      errors: 0,
      ...counts,
    });
    expect(await hourOf(id)).toStrictEqual([
      expected("listPets", { admitted: 2, errors: 1 }),
      expected("createPet", { admitted: 1 }),
      expected("getPet", { admitted: 1, errors: 1 }),
      // The tenth strike is a ban.
      expected("none", { admitted: 2, limited: 10, banned: 3, errors: 2 }),
    ]);
    expect(await service.app.usageHistory.lastUsed([id])).toEqual(new Map([[id, NOON + 1_001]]));
  });

  test("requests count in the hour in which they are answered; a day has the sum of its hours", async () => {
    const { id, secret: key } = await service.newKey();
    await service.call({ path: "/pets", key });
    const first = service.clock.now();
    service.clock.advance(HOUR_MS);
    await service.call({ path: "/pets", key });
    await service.call({ path: "/pets", key });
    await service.restart();
    expect(await hourOf(id, first)).toMatchObject([{ admitted: 1, start: NOON }]);
    expect(await hourOf(id)).toMatchObject([{ admitted: 2, start: NOON + HOUR_MS }]);
    const day = await service.app.usageHistory.readUsage({ keyId: id, by: "day", since: NOON, until: NOON });
    expect(day).toMatchObject([{ admitted: 3, start: Date.parse("2026-11-15T00:00:00Z") }]);
  });

  test("requests without a valid key leave no trace", async () => {
    const before = await service.app.usageHistory.lastUsed();
    await service.call({ path: "/pets", key: null });
    await service.call({ path: "/pets", key: "pet_live_wrong" });
    await service.restart();
    expect(await service.app.usageHistory.lastUsed()).toEqual(before);
  });
});
