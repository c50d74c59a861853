import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openStores } from "../../src/adapters.ts";
import { configIn } from "../service.ts";
import { type AdminService, startAdminService } from "./admin-service.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOON = Date.parse("2026-11-15T12:00:00Z");

/** The first key called getPet 40 days ago, the second one two hours ago, the third one never. */
let service: AdminService;
beforeAll(async () => {
  service = await startAdminService();
  for (const name of ["busy", "idle"]) await service.newKey({ name });
  const { usageHistory, close } = await openStores(configIn(service.dataDir));
  const calls = [
    { keyId: 1, operation: "getPet", hour: NOON - 40 * DAY_MS },
    { keyId: 2, operation: "getPet", hour: NOON - 2 * HOUR_MS },
    { keyId: 3, operation: "listPets", hour: NOON - HOUR_MS },
  ] as const;
  for (const [sequence, { keyId, operation, hour }] of calls.entries()) {
    const byOperation = [{ operation, admitted: 1, errors: 0 }];
    const counts = { admitted: 1, limited: 0, banned: 0, errors: 0, lastUsedAt: hour + 1, byOperation };
    const keys = [{ keyId, ...counts }];
    await usageHistory.addUsage({ writer: "test", sequence: sequence + 1, hour, keys });
  }
  await close();
});
afterAll(() => service.stop());

describe("calls of deprecated operations", () => {
  test("listKeys: the keys that called one since", async () => {
    const ids = async (query: string) => {
      const { items } = await service.ok({ path: `/api/keys?${query}` });
      return (items as { id: number }[]).map(({ id }) => id);
    };
    expect(await ids("deprecatedSince=2026-10-01T00:00:00Z")).toEqual([1, 2]);
    expect(await ids("deprecatedSince=2026-11-01T00:00:00Z")).toEqual([2]);
    expect(await ids("deprecatedSince=2026-11-15T11:00:00Z")).toEqual([]);
    expect(await ids("deprecatedSince=2026-10-01T00:00:00Z&search=busy")).toEqual([2]);
  });

  test("getOverview: the number of keys in the last 30 days", async () => {
    expect(await service.ok({ path: "/api/overview" })).toMatchObject({ deprecatedKeys: 1 });
  });
});
