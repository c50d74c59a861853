import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { PlanName } from "../../src/domain/plans.ts";
import { type Reply, type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const list = (key: string) => service.call({ path: "/pets?limit=1", key });
const triple = ({ headers }: Reply) =>
  ["limit", "remaining", "reset"].map((name) => Number(headers.get(`x-ratelimit-${name}`)));
const waitOf = ({ headers }: Reply) => Number(headers.get("retry-after"));
const isWithin = { free: [60, 1_000], pro: [300, 10_000], business: [1_000, 100_000] } as const;

async function newKey(plan: PlanName, limits?: { perMinute: number; perDay: number }): Promise<string> {
  const { secret } = await service.newKey({
    plan,
    ...(limits ? { limits } : { limits: undefined as never }),
  });
  return secret;
}

/** All at once. */
function storm(key: string, count: number): Promise<Reply[]> {
  return Promise.all(Array.from({ length: count }, () => list(key)));
}

describe("plans", () => {
  test("Free: of 2,000 requests at once exactly 60 are allowed", async () => {
    const key = await newKey("free");
    const replies = await storm(key, 2_000);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(60);
    expect(replies.filter(({ status }) => status === 429)).toHaveLength(1_940);
    const remaining = replies.filter(({ status }) => status === 200).map((reply) => triple(reply)[1]);
    expect(remaining.toSorted((a = 0, b = 0) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i));
  }, 20_000);

  for (const plan of ["pro", "business"] as const) {
    const [perMinute] = isWithin[plan];
    test(`${plan}: of 2,000 requests at once exactly ${perMinute} are allowed`, async () => {
      const replies = await storm(await newKey(plan), 2_000);
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(perMinute);
      expect(replies.filter(({ status }) => status === 429)).toHaveLength(2_000 - perMinute);
    }, 20_000);
  }

  test("Enterprise: of 2,000 requests at once exactly the key's own number are allowed", async () => {
    const replies = await storm(await newKey("enterprise", { perMinute: 777, perDay: 900 }), 2_000);
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(777);
  }, 20_000);

  test("any 429: the request after the last one allowed, and no other key notices", async () => {
    const key = await newKey("free");
    for (let i = 59; i >= 0; i--) expect(triple(await list(key)).slice(0, 2)).toEqual([60, i]);
    const refused = await list(key);
    expect(refused.json).toMatchObject({ code: "rate_limited", status: 429 });
    expect(triple(refused).slice(0, 2)).toEqual([60, 0]);
    expect((await list(await newKey("free"))).status).toBe(200);
  });

  test("any 429: a client that waits Retry-After always gets in", async () => {
    const key = await newKey("enterprise", { perMinute: 2, perDay: 3 });
    expect((await storm(key, 2)).every(({ status }) => status === 200)).toBe(true);
    service.clock.advance(12_345);
    const minute = await list(key);
    expect(waitOf(minute)).toBe(48);
    service.clock.advance(48_000);
    expect((await list(key)).status).toBe(200);
    const day = await list(key);
    expect([day.status, triple(day)[0]]).toEqual([429, 3]);
    service.clock.advance(waitOf(day) * 1_000);
    expect((await list(key)).status).toBe(200);
  });

  test("X-RateLimit-Reset: the second at which the window closes, rounded up, the same all through the window", async () => {
    const key = await newKey("free");
    service.clock.advance(1);
    const opened = service.clock.now();
    const resets = new Set<number | undefined>();
    for (let i = 0; i < 5; i++) {
      resets.add(triple(await list(key))[2]);
      service.clock.advance(777);
    }
    expect([...resets]).toEqual([Math.ceil((opened + 60_000) / 1000)]);
  });

  test("headers describe the day once fewer requests are left in it", async () => {
    const key = await newKey("enterprise", { perMinute: 5, perDay: 5 });
    expect(triple(await list(key)).slice(0, 2)).toEqual([5, 4]);
    expect(triple(await list(key))[2]).toBeGreaterThan(service.clock.now() / 1000 + 80_000);
  });

  test("changing the plan keeps the counts and takes effect within a second", async () => {
    const { id, secret } = await service.newKey({ plan: "free", limits: undefined as never });
    for (let i = 0; i < 10; i++) await list(secret);
    await service.app.keys.updateKey(id, { plan: "pro" });
    const changed = await eventually(
      () => list(secret),
      (reply) => triple(reply)[0] === 300,
    );
    expect(triple(changed)[1]).toBeLessThan(290);
  });

  test("a revoked key is refused within a second", async () => {
    const { id, secret } = await service.newKey();
    expect((await list(secret)).status).toBe(200);
    await service.app.keys.updateKey(id, { revokedAt: service.clock.now() });
    const reply = await eventually(
      () => list(secret),
      ({ status }) => status === 401,
    );
    expect(reply.json).toMatchObject({ code: "invalid_api_key" });
  });
});

describe("every answer carries the three headers", () => {
  const calls: [number, Parameters<Service["call"]>[0]][] = [
    [200, { path: "/pets" }],
    [201, { method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } }],
    [204, { method: "OPTIONS", path: "/pets" }],
    [304, { path: "/pets", headers: { "If-None-Match": "*" } }],
    [400, { method: "POST", path: "/pets", body: "{" }],
    [401, { path: "/pets", key: null }],
    [404, { path: "/pets/999" }],
    [404, { path: "/nothing" }],
    [405, { method: "DELETE", path: "/pets" }],
    [409, { method: "POST", path: "/store/orders", body: { petId: 2 } }],
    [413, { method: "POST", path: "/pets", body: "x".repeat(70_000) }],
    [415, { method: "POST", path: "/pets", body: "{}", headers: { "Content-Type": "text/plain" } }],
    [
      422,
      {
        method: "POST",
        path: "/pets",
        body: { name: "B", categoryId: 1 },
        headers: { "Idempotency-Key": "h" },
      },
    ],
  ];
  test("200, 201, 204, 304, 400, 401, 404, 405, 409, 413, 415, 422", async () => {
    const own = await startService();
    await own.call({
      method: "POST",
      path: "/pets",
      body: { name: "A", categoryId: 1 },
      headers: { "Idempotency-Key": "h" },
    });
    await own.call({ method: "POST", path: "/pets", body: { name: "S", categoryId: 1, status: "sold" } });
    for (const [status, call] of calls) {
      const reply = await own.call(call);
      expect([call.method, call.path, reply.status]).toEqual([call.method, call.path, status]);
      for (const name of ["limit", "remaining", "reset"])
        expect(reply.headers.get(`x-ratelimit-${name}`)).toMatch(/^\d+$/);
      expect(reply.headers.get("x-ratelimit-reset")).toMatch(/^\d{10}$/);
    }
    await own.stop();
  });
});

describe("the temporary ban", () => {
  async function exhausted(): Promise<{ key: string; id: number }> {
    const { id, secret: key } = await service.newKey({ limits: { perMinute: 1, perDay: 1_000 } });
    await list(key);
    expect((await list(key)).json).toMatchObject({ code: "rate_limited" });
    return { key, id };
  }

  test("any 429 key_banned: the tenth request sent on after the grace is itself answered as banned", async () => {
    const { key } = await exhausted();
    service.clock.advance(1_000);
    for (let i = 0; i < 50; i++) expect((await list(key)).json).toMatchObject({ code: "rate_limited" });
    service.clock.advance(1);
    for (let strike = 1; strike <= 9; strike++)
      expect((await list(key)).json).toMatchObject({ code: "rate_limited" });
    const banned = await list(key);
    expect(banned.json).toMatchObject({ code: "key_banned", status: 429 });
    expect(waitOf(banned)).toBe(300);
    expect(triple(banned).slice(1)).toEqual([0, Math.ceil((service.clock.now() + 300_000) / 1000)]);

    service.clock.advance(299_999);
    expect((await list(key)).json).toMatchObject({ code: "key_banned" });
    expect(waitOf(await list(key))).toBe(1);
    service.clock.advance(1);
    expect((await list(key)).status).toBe(200);
    expect((await list(service.key)).status).toBe(200);
  });

  test("a ban and the counts stand after a restart", async () => {
    const { key } = await exhausted();
    const half = await newKey("free");
    for (let i = 0; i < 20; i++) await list(half);
    service.clock.advance(1_001);
    for (let strike = 1; strike <= 10; strike++) await list(key);
    await service.restart();
    expect((await list(key)).json).toMatchObject({ code: "key_banned" });
    expect(triple(await list(half))[1]).toBe(39);
  });

  test("a ban that an operator lifts is over within a second", async () => {
    const { key, id } = await exhausted();
    service.clock.advance(1_001);
    for (let strike = 1; strike <= 10; strike++) await list(key);
    service.clock.advance(60_000);
    expect((await list(key)).json).toMatchObject({ code: "key_banned" });
    await service.app.keys.updateKey(id, { unbannedAt: service.clock.now() });
    await eventually(
      () => list(key),
      ({ status }) => status === 200,
    );
  });

  test("addresses are limited, never banned", async () => {
    const own = await startService();
    const knock = () => own.call({ path: "/pets", key: null });
    for (let i = 0; i < 300; i++) await knock();
    expect((await knock()).status).toBe(429);
    own.clock.advance(2_000);
    for (let i = 0; i < 30; i++) expect((await knock()).json).toMatchObject({ code: "rate_limited" });
    own.clock.advance(58_000);
    expect((await knock()).status).toBe(401);
    await own.stop();
  });
});

/** Asks again until the answer is as wanted; changes reach a server within a second. */
async function eventually(ask: () => Promise<Reply>, wanted: (reply: Reply) => boolean): Promise<Reply> {
  const started = performance.now();
  for (;;) {
    const reply = await ask();
    if (wanted(reply)) return reply;
    if (performance.now() - started > 1_000)
      throw new Error(`not within a second; last answer: ${reply.status} ${reply.text}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
