import { describe, expect, test } from "bun:test";
import { openStores } from "../../src/adapters/open-stores.ts";
import { encodeCursor } from "../../src/domain/cursor.ts";
import type { OperationId } from "../../src/domain/operation-ids.ts";
import { dataIn } from "../data-directory.ts";
import { useAdminService } from "./admin-service.ts";

const HOUR = 3_600_000;
const NOON = Date.parse("2026-11-15T12:00:00Z");

/** Starts a server with three keys and a history of their requests. */
async function startWithHistory() {
  const service = await useAdminService();
  const limits = { perMinute: 5, perDay: 100 };
  const busy = await service.newKey({ name: "busy", limits });
  const busier = await service.newKey({ name: "busier", limits });
  const stores = await openStores(dataIn(service.dataDir));
  let sequence = 0;
  const add = (hour: number, keyId: number, admitted: number, operation: OperationId = "listPets") => {
    const counts = { admitted, limited: 2, banned: 1, errors: 3, lastUsedAt: hour + 1_000 };
    const byOperation = [{ operation, admitted: admitted - 1, errors: 2 }];
    const keys = [{ keyId, ...counts, byOperation }];
    return stores.usageHistory.addUsage({ writer: "test", sequence: ++sequence, hour, keys });
  };
  await add(NOON - 40 * 24 * HOUR, 3, 2, "getPet");
  await add(NOON - 48 * HOUR, 1, 10, "getPet");
  await add(NOON, 2, 20);
  await add(NOON - HOUR, 2, 5);
  await add(NOON, 3, 40);
  await stores.close();
  return { service, busy, busier };
}

const { service } = await startWithHistory();
/** The history of this one grows while the tests run. */
const { service: used, busy, busier } = await startWithHistory();

describe("getKeyUsage", () => {
  test("has the rows of a key by day, with the exact period", async () => {
    const usage = await service.ok("/api/keys/2/usage?since=2026-11-14T10:00:00Z");
    expect(usage).toMatchObject({
      by: "day",
      since: "2026-11-14T00:00:00.000Z",
      until: "2026-11-16T00:00:00.000Z",
    });
    const items = usage["items"] as Record<string, unknown>[];
    expect(items.find(({ operation }) => operation === "listPets")).toMatchObject({
      start: "2026-11-15T00:00:00.000Z",
      admitted: 23,
      errors: 4,
    });
    expect(items.reduce((sum, { limited }) => sum + Number(limited), 0)).toBe(4);
  });

  test("has the rows by hour of the last 24 hours", async () => {
    const { items, since, until } = await service.ok("/api/keys/2/usage?by=hour");
    expect([since, until]).toEqual(["2026-11-14T13:00:00.000Z", "2026-11-15T13:00:00.000Z"]);
    const starts = (items as { start: string }[]).map(({ start }) => start);
    expect([...new Set(starts)]).toEqual(["2026-11-15T11:00:00.000Z", "2026-11-15T12:00:00.000Z"]);
  });

  test("a key without requests has no rows", async () => {
    const path = "/api/keys/1/usage?since=2026-11-15T00:00:00Z";
    expect(await service.ok(path)).toMatchObject({ items: [] });
  });
});

test("getUsage: adds up the requests of each key, most used first, with names", async () => {
  const { items } = await service.ok("/api/usage");
  expect(items).toMatchObject([
    { keyId: 3, name: "busier", admitted: 40 },
    { keyId: 2, name: "busy", plan: "enterprise", admitted: 25, limited: 4, banned: 2, errors: 6 },
    { keyId: 1, name: "test", admitted: 10, lastUsedAt: "2026-11-13T12:00:01.000Z" },
  ]);
  const first = await service.ok("/api/usage?limit=1");
  expect(first["items"]).toHaveLength(1);
  const rest = await service.ok(`/api/usage?cursor=${first["nextCursor"]}`);
  expect([first["items"], rest["items"]].flat() as unknown).toEqual(items);
  expect(rest["nextCursor"]).toBeNull();
});

test("getUsage: nothing follows a key whose requests are no longer in the history", async () => {
  const cursor = encodeCursor("usage", 9n);
  expect(await service.ok(`/api/usage?limit=2&cursor=${cursor}`)).toMatchObject({
    items: [],
    nextCursor: null,
  });
});

test("keys by use today are in the order of the windows that they show, and those close to a limit are found", async () => {
  // The history of key 3 has more.
  for (let i = 0; i < 4; i++) await used.call({ path: "/pets", key: busy.secret });
  for (let i = 0; i < 3; i++) await used.call({ path: "/pets", key: busier.secret });
  const { items } = await used.ok("/api/keys?sort=usedToday&order=desc");
  expect(items).toMatchObject([
    { id: 2, usage: { day: { used: 4 } } },
    { id: 3, usage: { day: { used: 3 } } },
    { id: 1, usage: { day: { used: 0 } } },
  ]);
  expect(await used.ok("/api/keys?usedPercent=80")).toMatchObject({ total: 1, items: [{ id: 2 }] });
  expect(await used.ok("/api/keys?usedPercent=60")).toMatchObject({ total: 2 });
  const { closeKeys } = await used.ok("/api/overview");
  expect(closeKeys).toEqual({ total: 1, first: { id: 2, name: "busy" } });
  used.clock.advance(60_000);
});

test("getOverview: has the keys with the most requests in the last 24 hours, with their windows now", async () => {
  const { topKeys, ...overview } = await service.ok("/api/overview");
  expect(overview).toMatchObject({ range: "1h", step: 5, bannedKeys: 0, deprecatedKeys: 1, expiringKeys: 0 });
  expect([overview["keyRequests"], overview["before"]]).toEqual([74, null]);
  expect(topKeys).toMatchObject([
    { id: 3, name: "busier", admitted: 40 },
    { id: 2, name: "busy", state: "active", admitted: 25, limited: 4, usage: { minute: { used: 0 } } },
  ]);
});

test("getOverview: has 20 keys at most", async () => {
  const many = await useAdminService();
  const stores = await openStores(dataIn(many.dataDir));
  const keys = [];
  for (let i = 0; i < 21; i++) {
    const { id } = await many.newKey({ name: `key ${i}` });
    keys.push({
      keyId: id,
      admitted: 1,
      limited: 0,
      banned: 0,
      errors: 0,
      lastUsedAt: NOON,
      byOperation: [],
    });
  }
  await stores.usageHistory.addUsage({ writer: "test", sequence: 1, hour: NOON, keys });
  await stores.close();
  const { topKeys, keyRequests } = await many.ok("/api/overview");
  expect([Object(topKeys).length, keyRequests]).toEqual([20, 21]);
});

test("listKeys: the keys that called a deprecated operation since", async () => {
  const { items } = await service.ok("/api/keys?deprecatedSince=2026-11-01T00:00:00Z");
  expect(items).toMatchObject([{ id: 1 }]);
});

test("listAudit: is newest first, in pages, and has filters", async () => {
  for (const name of ["one", "two", "three"]) {
    service.clock.advance(1_000);
    await service.ok("POST /api/keys", { body: { name, plan: "free" } });
  }
  const created = async (query = "") => {
    const page = await service.ok(`/api/audit?action=key.created&actor=admin+API${query}`);
    const items = page["items"] as { at: string; after: { name: string } }[];
    return { names: items.map(({ after }) => after.name), cursor: page["nextCursor"], items };
  };
  const first = await created("&limit=2");
  expect(first.names).toEqual(["three", "two"]);
  expect((await created(`&limit=2&cursor=${String(first.cursor)}`)).names).toEqual(["one"]);
  const oldest = await created("&limit=2&after=0");
  expect(oldest.names).toEqual(["one", "two"]);
  expect((await created(`&limit=2&after=0&cursor=${String(oldest.cursor)}`)).names).toEqual(["three"]);
  const at = first.items[1]?.at ?? "";
  expect((await created(`&since=${at}`)).names).toEqual(["three", "two"]);
  expect((await created(`&until=${at}`)).names).toEqual(["one"]);
  expect((await created("&target=key:5")).names).toEqual(["two"]);
});
