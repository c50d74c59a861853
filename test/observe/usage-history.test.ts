import { expect, test } from "bun:test";
import { join } from "node:path";
import { rateLimitStatus } from "../../trials/harness/api-client.ts";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { startPetstore } from "../../trials/harness/petstore.ts";
import type { UsageRow } from "../../src/domain/usage-history.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { startService } from "../service.ts";

const NOON = Date.parse("2026-11-15T12:00:00Z");

test("a server counts every outcome by operation, exact after a clean stop, and nothing without a valid key", async () => {
  await using service = await startService();
  const { id, secret: key } = await service.newKey({ limits: { perMinute: 6, perDay: 100 } });
  const statuses: number[] = [];
  const call = async (path: string, init: { method?: string; body?: unknown; key?: string | null } = {}) =>
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
  await call("/pets", { key: null });
  await call("/pets", { key: "pet_live_wrong" });
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
  const { usageHistory } = service.app;
  expect(await usageHistory.readUsage({ keyId: id, by: "hour", since: NOON, until: NOON })).toStrictEqual([
    expected("listPets", { admitted: 2, errors: 1 }),
    expected("createPet", { admitted: 1 }),
    expected("getPet", { admitted: 1, errors: 1 }),
    // The tenth strike is a ban.
    expected("none", { admitted: 2, limited: 10, banned: 3, errors: 2 }),
  ]);
  expect(await usageHistory.lastUsed([id])).toEqual(new Map([[id, NOON + 1_001]]));
});

test("counts that are stored survive SIGKILL, and SIGTERM loses none", async () => {
  const data = temporaryFolder("usage-history");
  const flags = ["--data", data, "--port", "0", "--admin-address", "off"];
  const killed = await startPetstore(flags);
  const key = killed.key ?? "";
  const { usageHistory, close } = openSqlite(join(data, "production.db"));
  const admitted = async () => {
    const [totals] = await usageHistory.usageByKey({ by: "day", since: 0, until: Date.now() });
    return totals?.admitted ?? 0;
  };
  for (let i = 0; i < 20; i++) await rateLimitStatus(killed.url, key);
  while ((await admitted()) < 20) await Bun.sleep(20);
  await killed.stop("SIGKILL");

  const stopped = await startPetstore(flags);
  for (let i = 0; i < 5; i++) await rateLimitStatus(stopped.url, key);
  expect(await stopped.stop("SIGTERM")).toBe(0);
  expect(await admitted()).toBe(25);
  await close();
});
