import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { generateSecret } from "../../src/domain/secrets.ts";
import { type AdminService, startAdminService } from "./admin-service.ts";

let service: AdminService;
beforeEach(async () => void (service = await startAdminService()));
afterEach(() => service.stop());

interface Key {
  readonly id: number;
  readonly name: string;
  readonly [field: string]: unknown;
}

const create = async (fields: Record<string, unknown> = {}) => {
  const body = { name: "mobile app", plan: "free", ...fields };
  return (await service.ok("POST /api/keys", { body })) as { key: Key; secret: string };
};
const list = async (query = "") =>
  (await service.ok(`/api/keys${query}`)) as { items: Key[]; total: number; nextCursor: string | null };
const namesOf = async (query: string) => (await list(query)).items.map(({ name }) => name);
const change = (path: string, body?: object) =>
  service.admin({ method: body ? "PATCH" : "POST", path: `/api/keys/${path}`, ...(body && { body }) });
const NO_OVERLAP = { overlapSeconds: 0 };
const statusWith = async (secret: string) => (await service.call({ path: "/pets", key: secret })).status;

describe("createKey", () => {
  test("201 with the secret, which works, and with every field of the key", async () => {
    const { key, secret } = await create({
      owner: "mobile@example.com",
      notes: "two\nlines",
      labels: ["mobile", "eu"],
      access: "read",
      expiresAt: "2027-01-01T01:00:00+01:00",
    });
    expect(key).toEqual({
      id: 2,
      name: "mobile app",
      owner: "mobile@example.com",
      notes: "two\nlines",
      labels: ["mobile", "eu"],
      plan: "free",
      limits: { perMinute: 60, perDay: 1_000 },
      access: "read",
      state: "active",
      secrets: [
        {
          hint: `${secret.slice(0, 13)}…${secret.slice(-4)}`,
          createdAt: "2026-11-15T12:00:00.000Z",
          validUntil: null,
        },
      ],
      usage: {
        minute: { used: 0, limit: 60, resetsAt: null },
        day: { used: 0, limit: 1_000, resetsAt: null },
      },
      strikes: 0,
      bannedUntil: null,
      createdAt: "2026-11-15T12:00:00.000Z",
      expiresAt: "2027-01-01T00:00:00.000Z",
      revokedAt: null,
      lastUsedAt: null,
    });
    expect(await statusWith(secret)).toBe(200);
  });

  test("null is no value, and an Enterprise key has its own limits", async () => {
    const limits = { perMinute: 5, perDay: 50 };
    const { key } = await create({ plan: "enterprise", limits, owner: null, notes: null, expiresAt: null });
    expect(key).toMatchObject({ plan: "enterprise", limits, owner: null, notes: null, expiresAt: null });
  });

  test("201: the longest texts that are valid, counted in code points", async () => {
    const longest = {
      name: "🐈".repeat(100),
      owner: "🐈".repeat(200),
      notes: "🐈\n\t".repeat(666),
      labels: Array.from({ length: 20 }, (_, n) => "🐈".repeat(48) + String(n).padStart(2, "0")),
    };
    expect((await create(longest)).key).toMatchObject(longest);
  });
});

describe("getKey", () => {
  test("shows usage as the rate limiter counts it", async () => {
    const { key, secret } = await create();
    for (let i = 0; i < 3; i++) await service.call({ path: "/pets", key: secret });
    const shown = await service.ok(`/api/keys/${key.id}`);
    expect(shown["usage"]).toEqual({
      minute: { used: 3, limit: 60, resetsAt: "2026-11-15T12:01:00.000Z" },
      day: { used: 3, limit: 1_000, resetsAt: "2026-11-16T12:00:00.000Z" },
    });
  });

  test("times are those of the machine's clock, also after it was set, forward or back", async () => {
    const { key, secret } = await create();
    await service.call({ path: "/pets", key: secret });
    service.clock.advance(5_000);
    for (const byMs of [3_600_000, -7_200_000, 3_600_000]) {
      service.clock.step(byMs);
      const resetsAt = service.clock.timeIn(55_000);
      const { usage } = await service.ok(`/api/keys/${key.id}`);
      expect(usage).toMatchObject({ minute: { used: 1, resetsAt } });
    }
  });
});

describe("updateKey", () => {
  test("changes the given fields and leaves the others", async () => {
    const { key } = await create({ owner: "a@example.com", notes: "old", labels: ["x"] });
    const body = { name: "renamed", owner: null, labels: ["y", "z"], plan: "pro", access: "read" };
    const changed = await service.ok(`PATCH /api/keys/${key.id}`, { body });
    expect(changed).toMatchObject({ ...body, notes: "old", limits: { perMinute: 300, perDay: 10_000 } });
    const { items } = await service.ok(`/api/audit?target=key:${key.id}&action=key.updated`);
    const actor = { kind: "admin API", name: "127.0.0.1" };
    const before = { name: "mobile app", owner: "a@example.com", plan: "free" };
    expect(items).toMatchObject([{ actor, before, after: { name: "renamed", owner: null, plan: "pro" } }]);
  });

  test("moves and removes the expiry", async () => {
    const { key } = await create();
    const patch = (expiresAt: string | null) =>
      service.ok(`PATCH /api/keys/${key.id}`, { body: { expiresAt } });
    expect(await patch("2026-12-01T00:00:00Z")).toMatchObject({ expiresAt: "2026-12-01T00:00:00.000Z" });
    expect(await patch(null)).toMatchObject({ expiresAt: null });
  });

  test("an Enterprise key keeps its limits with its plan, and can change them", async () => {
    const { key } = await create({ plan: "enterprise", limits: { perMinute: 1, perDay: 2 } });
    const limitsAfter = async (body: object) => (await change(`${key.id}`, body)).json["limits"];
    expect(await limitsAfter({ name: "x" })).toEqual({ perMinute: 1, perDay: 2 });
    expect(await limitsAfter({ limits: { perMinute: 3, perDay: 4 } })).toEqual({ perMinute: 3, perDay: 4 });
    expect(await limitsAfter({ plan: "pro" })).toEqual({ perMinute: 300, perDay: 10_000 });
  });

  test("409 key_not_active: an expired key, unless the change moves the expiry", async () => {
    const { key } = await create({ expiresAt: "2026-11-15T13:00:00Z" });
    service.clock.advance(3_600_000);
    const message = `Key ${key.id} expired at 2026-11-15T13:00:00.000Z and cannot be changed; a new expiry makes it valid again: petstore keys update ${key.id} --expires 30d.`;
    const error = { code: "key_not_active", message, status: 409 };
    for (const body of [{ plan: "pro" }, { access: "read" }])
      expect((await change(`${key.id}`, body)).json).toEqual(error);
    expect((await change(`${key.id}/rotate`)).status).toBe(409);
    expect((await change(`${key.id}`, { notes: "was for a trial" })).status).toBe(200);
    expect((await change(`${key.id}`, { plan: "pro", expiresAt: null })).json).toMatchObject({ plan: "pro" });
    expect((await change(`${key.id}/rotate`)).status).toBe(200);
  });

  test("409 key_not_active: a revoked key, except for what describes it", async () => {
    const { key } = await create();
    await change(`${key.id}/revoke`);
    for (const body of [{ plan: "pro" }, { access: "read" }, { expiresAt: null }])
      expect((await change(`${key.id}`, body)).json).toMatchObject({ code: "key_not_active" });
    expect((await change(`${key.id}`, { name: "old" })).json).toMatchObject({ name: "old" });
  });
});

describe("rotateKey", () => {
  test("responds with a new secret; the earlier one works until the overlap ends", async () => {
    const { key, secret } = await create();
    const rotated = await service.ok(`POST /api/keys/${key.id}/rotate`, { body: { overlapSeconds: 60 } });
    expect(rotated["overlapEndsAt"]).toBe("2026-11-15T12:01:00.000Z");
    expect(Object(rotated["key"])["secrets"]).toMatchObject([
      { validUntil: null },
      { validUntil: "2026-11-15T12:01:00.000Z" },
    ]);
    expect([await statusWith(secret), await statusWith(String(rotated["secret"]))]).toEqual([200, 200]);
    service.clock.advance(59_999);
    expect(await statusWith(secret)).toBe(200);
    expect((await service.ok(`/api/keys/${key.id}`))["secrets"]).toHaveLength(2);
    service.clock.advance(1);
    expect(await statusWith(secret)).toBe(401);
    expect((await service.ok(`/api/keys/${key.id}`))["secrets"]).toHaveLength(1);
  });

  test("without an overlap the earlier secret stops at once", async () => {
    const { key, secret } = await create();
    await service.ok(`POST /api/keys/${key.id}/rotate`, { body: NO_OVERLAP });
    expect(await statusWith(secret)).toBe(401);
    const found = await service.ok("POST /api/keys/find", { body: { secret } });
    expect(found["secretValidUntil"]).toBe("1970-01-01T00:00:00.000Z");
  });

  test("of the secrets of ten rotations at once without overlap, one works", async () => {
    const { key } = await create();
    const rotate = () => service.admin(`POST /api/keys/${key.id}/rotate`, { body: NO_OVERLAP });
    const rotated = await Promise.all(Array.from({ length: 10 }, rotate));
    const statuses = await Promise.all(rotated.map(({ json }) => statusWith(String(json["secret"]))));
    expect(statuses.toSorted()).toEqual([200, ...Array(9).fill(401)]);
  });

  test("without a body the overlap is a day", async () => {
    const { key } = await create();
    const { overlapEndsAt } = await service.ok(`POST /api/keys/${key.id}/rotate`);
    expect(overlapEndsAt).toBe("2026-11-16T12:00:00.000Z");
  });
});

describe("revokeKey", () => {
  test("requests with it are 401 at once, and a second time changes nothing", async () => {
    const { key, secret } = await create();
    expect(await statusWith(secret)).toBe(200);
    for (let i = 0; i < 2; i++, service.clock.advance(60_000)) {
      const revoked = await service.ok(`POST /api/keys/${key.id}/revoke`);
      expect(revoked).toMatchObject({ state: "revoked", revokedAt: "2026-11-15T12:00:00.000Z" });
      expect(await statusWith(secret)).toBe(401);
    }
  });

  test.each(["rotate", "unban"])(
    "409 key_not_active: a revoked key cannot be changed by %s",
    async (action) => {
      const { key } = await create();
      await service.ok(`POST /api/keys/${key.id}/revoke`);
      const { status, json } = await service.admin(`POST /api/keys/${key.id}/${action}`);
      expect([status, json["code"]]).toEqual([409, "key_not_active"]);
      const start = `Key ${key.id} was revoked at 2026-11-15T12:00:00.000Z and cannot be`;
      expect(json["message"]).toStartWith(start);
    },
  );
});

test("listBans has the keys that are banned now, and unbanKey ends a ban at once", async () => {
  await create({ name: "not banned" });
  const { key, secret } = await create({ plan: "enterprise", limits: { perMinute: 1, perDay: 10 } });
  for (let i = 0; i < 2; i++) await statusWith(secret);
  for (let i = 0; i < 10; i++) {
    service.clock.advance(2_000);
    await statusWith(secret);
  }
  const items = [{ id: key.id, state: "banned", bannedUntil: "2026-11-15T12:05:20.000Z" }];
  expect(await service.ok("/api/bans")).toMatchObject({ items, total: 1, nextCursor: null });
  expect(await namesOf("?state=banned")).toEqual(["mobile app"]);

  const unbanned = await service.ok(`POST /api/keys/${key.id}/unban`);
  expect(unbanned).toMatchObject({ state: "active", bannedUntil: null, strikes: 0 });
  expect(await service.ok("/api/bans")).toMatchObject({ items: [], total: 0 });
  expect((await service.call({ path: "/pets", key: secret })).json).toMatchObject({ code: "rate_limited" });
});

test("each change has one audit entry", async () => {
  const { key } = await create();
  await change(`${key.id}`, { name: "store" });
  const actions = ["rotate", "disable", "disable", "enable", "enable", "unban", "revoke", "revoke"];
  for (const action of actions) await change(`${key.id}/${action}`);
  const { items } = await service.ok(`/api/audit?target=key:${key.id}`);
  const recorded = ["created", "updated", "rolled", "disabled", "enabled", "revoked"];
  expect((items as { action: string }[]).map(({ action }) => action).toReversed()).toEqual(
    recorded.map((action) => `key.${action}`),
  );
});

describe("findKey", () => {
  test("finds the key of a secret, also if the key is revoked", async () => {
    const { key, secret } = await create();
    const find = () => service.ok("POST /api/keys/find", { body: { secret } });
    expect(await find()).toMatchObject({ id: key.id, state: "active" });
    await service.ok(`POST /api/keys/${key.id}/revoke`);
    expect(await find()).toMatchObject({ id: key.id, state: "revoked" });
  });

  test("404 key_not_found: the message tells what is wrong with the secret", async () => {
    for (const [secret, message] of [
      ["pet_live_mistyped", "This is not an API key; it is mistyped or incomplete."],
      [generateSecret("production"), "No key in production has this secret."],
      [generateSecret("staging"), "This is an API key of staging."],
    ]) {
      const { json } = await service.admin("POST /api/keys/find", { body: { secret } });
      expect(json).toEqual({ code: "key_not_found", message, status: 404 });
    }
  });
});

/** The stores' own tests have more of each. */
test("listKeys has filters, a search, orders and pages", async () => {
  await create({ name: "beta", plan: "pro", owner: "Eve@example.com", labels: ["EU"] });
  await create({ name: "Alpha", plan: "business", access: "read", labels: ["eu", "test"] });
  const { key, secret } = await create({ name: "gamma" });
  await service.ok(`POST /api/keys/${key.id}/revoke`);
  const expected: readonly [query: string, names: readonly string[]][] = [
    ["?plan=pro", ["beta"]],
    ["?access=read", ["Alpha"]],
    ["?state=revoked", ["gamma"]],
    ["?owner=eve@EXAMPLE.com", ["beta"]],
    ["?label=eu", ["beta", "Alpha"]],
    ["?label=eu&plan=business", ["Alpha"]],
    ["?search=TEST", ["test", "Alpha"]],
    [`?search=${secret.slice(9, 13)}`, ["gamma"]],
    ["?unusedSince=2026-11-15T12:00:00Z", []],
    ["?sort=name", ["Alpha", "beta", "test", "gamma"]],
    ["?sort=name&order=desc", ["test", "beta", "Alpha", "gamma"]],
    ["?order=desc&limit=2", ["Alpha", "beta"]],
    ["?revoked=exclude&sort=name", ["Alpha", "beta", "test"]],
    ["?revoked=exclude&state=revoked", ["gamma"]],
    ["?expiresBefore=2027-01-01T00:00:00Z", []],
  ];
  for (const [query, names] of expected) expect(await namesOf(query), query).toEqual([...names]);
  const { total, nextCursor } = await list("?sort=name&limit=3");
  expect([total, await namesOf(`?sort=name&limit=3&cursor=${nextCursor}`)]).toEqual([4, ["gamma"]]);
});

test("listKeys counts the revoked keys that it leaves out", async () => {
  for (const name of ["one", "two", "three"]) {
    const { key } = await create({ name, plan: "pro", expiresAt: "2026-12-01T00:00:00Z" });
    if (name !== "three") await service.ok(`POST /api/keys/${key.id}/revoke`);
  }
  expect(await list("?revoked=exclude&plan=pro")).toMatchObject({ total: 1, hidden: 2 });
  expect(await list("?revoked=exclude&search=tw")).toMatchObject({ total: 0, hidden: 1 });
  expect(await list("?revoked=include")).not.toHaveProperty("hidden");
  expect(await list("?revoked=exclude&state=active")).not.toHaveProperty("hidden");
  expect(await namesOf("?expiresBefore=2026-12-01T00:00:01Z")).toEqual(["three"]);
});
