import { afterAll, expect, test } from "bun:test";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { BY } from "../key-store-arguments.ts";
import { directoryAt } from "../data-directory.ts";
import { until } from "../timing.ts";
import { startAdminService } from "./admin-service.ts";

const service = await startAdminService();
afterAll(() => service.stop());

const limitOf = async (key: string | null) =>
  Number((await service.call({ path: "/store/orders", key })).headers.get("x-ratelimit-limit"));
const updatePlan = (plan: string, limits: object) =>
  service.ok("PATCH /api/plans", { body: { plan, ...limits } });
const entries = async (query = "") => (await service.ok(`/api/audit?limit=5${query}`))["items"];
const page = async (path: string) => (await fetch(new URL(path, service.url), { headers: HTML })).text();
const newKey = async (plan: string) => {
  const { key, secret } = await service.ok("POST /api/keys", { body: { name: "app", plan } });
  return { id: Number(Object(key)["id"]), secret: String(secret) };
};
/** The limits of the Free plan. */
const documentedLimits = async () =>
  />Free<.*?>([\d,]+)<.*?>([\d,]+)</s.exec(await page("/docs/rate-limits"))?.slice(1);
const HTML = { Accept: "text/html" };

test("listPlans: the limits, and how many keys have each plan", async () => {
  await newKey("free");
  const items = [
    { plan: "free", perMinute: 60, perDay: 1_000, keys: 1 },
    { plan: "pro", perMinute: 300, perDay: 10_000, keys: 0 },
    { plan: "business", perMinute: 1_000, perDay: 100_000, keys: 0 },
    { plan: "anonymous", perMinute: 300, perDay: 10_000, keys: null },
  ];
  expect(await service.ok("/api/plans")).toEqual({ items });
});

test("updatePlan: applies to the next request, in headers, keys, pages and the OpenAPI document", async () => {
  const { id, secret } = await newKey("free");
  expect(await limitOf(secret)).toBe(60);
  expect(await documentedLimits()).toEqual(["60", "1,000"]);
  const etag = (await fetch(new URL("/openapi.json", service.url))).headers.get("etag");
  expect(await updatePlan("free", { perMinute: 7, perDay: 77 })).toMatchObject({ perMinute: 7, perDay: 77 });
  expect(await limitOf(secret)).toBe(7);
  expect(await service.ok(`/api/keys/${id}`)).toMatchObject({ limits: { perMinute: 7, perDay: 77 } });
  expect(await documentedLimits()).toEqual(["7", "77"]);
  const openapi = await fetch(new URL("/openapi.json", service.url));
  expect(openapi.headers.get("etag")).not.toBe(etag);
  await updatePlan("anonymous", { perMinute: 9 });
  expect(await limitOf(null)).toBe(9);
  expect(await entries("&action=plan.updated")).toMatchObject([
    { action: "plan.updated", before: { perMinute: 300 }, after: { plan: "anonymous", perMinute: 9 } },
    {
      actor: { operator: "bootstrap", kind: "admin API" },
      target: null,
      before: { perMinute: 60, perDay: 1_000 },
      after: { plan: "free", perMinute: 7, perDay: 77 },
    },
  ]);
});

test("updatePlan: what keys have used counts against the new limits; Enterprise keys keep their own", async () => {
  await updatePlan("pro", { perMinute: 10 });
  const { secret } = await newKey("pro");
  const enterprise = await service.newKey({ limits: { perMinute: 50, perDay: 500 } });
  for (let i = 0; i < 5; i++) expect((await service.call({ path: "/pets", key: secret })).status).toBe(200);
  await updatePlan("pro", { perMinute: 5 });
  const limited = await service.call({ path: "/pets", key: secret });
  expect([limited.status, limited.headers.get("x-ratelimit-limit")]).toEqual([429, "5"]);
  await updatePlan("pro", { perMinute: 6 });
  const allowed = await service.call({ path: "/pets", key: secret });
  expect([allowed.status, allowed.headers.get("x-ratelimit-remaining")]).toEqual([200, "0"]);
  await updatePlan("business", { perMinute: 1 });
  expect(await limitOf(enterprise.secret)).toBe(50);
});

test("updatePlan 400: no limit, a limit out of bounds, or a plan without limits", async () => {
  const reject = async (body: object) => (await service.admin("PATCH /api/plans", { body })).json;
  expect(await reject({ plan: "free" })).toMatchObject({
    code: "invalid_body",
    message: "At least one of perMinute, perDay is required.",
  });
  expect(await reject({ plan: "free", perDay: 0 })).toMatchObject({ code: "invalid_body" });
  expect(await reject({ plan: "free", perMinute: 1_000_000_001 })).toMatchObject({ code: "invalid_body" });
  expect(await reject({ plan: "enterprise", perMinute: 1 })).toMatchObject({ code: "invalid_body" });
});

test("a change that changes nothing has no audit entry", async () => {
  await updatePlan("business", { perDay: 5 });
  const before = await entries();
  await updatePlan("business", { perDay: 5 });
  await service.ok("PATCH /api/ban-rules", { body: { strikes: 10 } });
  expect(await entries()).toEqual(before);
});

test("updateBanRules: bans follow the new rules at once, and no ban is longer than the longest", async () => {
  const { id, secret } = await service.newKey({ limits: { perMinute: 1, perDay: 9 } });
  const code = async () => {
    const { json } = await service.call({ path: "/pets", key: secret });
    return Object(json)["code"];
  };
  const rules = { strikes: 1, graceMs: 0, lengthMs: 60_000, maxLengthMs: 60_000 };
  expect(await service.ok("PATCH /api/ban-rules", { body: rules })).toEqual(rules);
  expect(await service.ok("/api/ban-rules")).toEqual(rules);
  await code();
  expect(await code()).toBe("rate_limited");
  service.clock.advance(10);
  expect(await code()).toBe("key_banned");
  const documented = await page("/docs/rate-limits");
  expect(documented.includes("1 strike bans the key for 1 minute")).toBe(true);
  expect(documented.includes("Every request that is rejected after the first 429 is a strike.")).toBe(true);
  expect(documented.includes("0 seconds")).toBe(false);
  await service.ok("PATCH /api/ban-rules", { body: { lengthMs: 1_000, maxLengthMs: 1_000 } });
  service.clock.advance(1_001);
  expect(await service.ok(`/api/keys/${id}`)).toMatchObject({ state: "active" });
  expect(await service.ok("PATCH /api/ban-rules", { body: { lengthMs: 9_000 } })).toMatchObject({
    maxLengthMs: 9_000,
  });
  const shorter = await service.admin("PATCH /api/ban-rules", { body: { maxLengthMs: 8_999 } });
  expect(shorter.json["message"]).toContain("maxLengthMs must be at least the length of a first ban");
  expect((await service.admin("PATCH /api/ban-rules", { body: {} })).status).toBe(400);
});

test("what another process changes in the database applies within a second", async () => {
  const { secret } = await newKey("business");
  await limitOf(secret);
  const { policies, close } = openSqlite(directoryAt(service.dataDir).files.database);
  await policies.updatePolicy({ plans: { business: { perMinute: 13, perDay: 1_000 } } }, BY);
  await close();
  await until(async () => (await limitOf(secret)) === 13, 1_000);
  expect(await service.ok("/api/plans")).toMatchObject({ items: [{}, {}, { perMinute: 13 }, {}] });
});
