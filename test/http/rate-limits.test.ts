import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { PlanName } from "../../src/domain/plans.ts";
import { type ApiResponse, type Service, startService } from "../service.ts";
import { BY } from "../key-store-arguments.ts";
import { sendRaw } from "./raw.ts";

let service: Service;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.stop());

const list = (key: string) => service.call({ path: "/pets?limit=1", key });
const rateLimitOf = ({ headers }: ApiResponse) =>
  ["limit", "remaining", "reset"].map((name) => Number(headers.get(`x-ratelimit-${name}`)));
const waitOf = ({ headers }: ApiResponse) => Number(headers.get("retry-after"));

async function newKey(plan: PlanName, limits?: { perMinute: number; perDay: number }): Promise<string> {
  const { secret } = await service.newKey({
    plan,
    ...(limits ? { limits } : { limits: undefined as never }),
  });
  return secret;
}

describe("plans", () => {
  test.each([
    ["free", 60, undefined],
    ["pro", 300, undefined],
    ["business", 1_000, undefined],
    ["enterprise", 77, { perMinute: 77, perDay: 90 }],
  ] as const)(
    "%s: of 50 requests too many at once, exactly %d are allowed",
    async (plan, allowed, limits) => {
      const key = await newKey(plan, limits);
      const responses = await Promise.all(Array.from({ length: allowed + 50 }, () => list(key)));
      expect(responses.filter(({ status }) => status === 429)).toHaveLength(50);
      const remaining = responses
        .filter(({ status }) => status === 200)
        .map((response) => rateLimitOf(response)[1] ?? -1);
      expect(remaining.toSorted((a, b) => a - b)).toEqual(Array.from({ length: allowed }, (_, i) => i));
    },
  );

  test("any 429: the request after the last allowed one; other keys are not affected", async () => {
    const key = await newKey("free");
    for (let i = 59; i >= 0; i--) expect(rateLimitOf(await list(key)).slice(0, 2)).toEqual([60, i]);
    const rejected = await list(key);
    expect(rejected.json).toEqual({
      code: "rate_limited",
      message: "Too many requests. Retry after 60 seconds.",
      status: 429,
    });
    expect(rateLimitOf(rejected).slice(0, 2)).toEqual([60, 0]);
    expect((await list(await newKey("free"))).status).toBe(200);
  });

  test("any 200: a request after Retry-After", async () => {
    const key = await newKey("enterprise", { perMinute: 2, perDay: 3 });
    for (let i = 0; i < 2; i++) expect((await list(key)).status).toBe(200);
    service.clock.advance(12_345);
    const minute = await list(key);
    expect(waitOf(minute)).toBe(48);
    service.clock.advance(48_000);
    expect((await list(key)).status).toBe(200);
    const day = await list(key);
    expect([day.status, rateLimitOf(day)[0]]).toEqual([429, 3]);
    service.clock.advance(waitOf(day) * 1_000);
    expect((await list(key)).status).toBe(200);
  });

  test("X-RateLimit-Reset: the second at which the window closes, rounded up, the same for the whole window", async () => {
    const key = await newKey("free");
    service.clock.advance(1);
    const opened = service.clock.now();
    const resets = new Set<number | undefined>();
    for (let i = 0; i < 5; i++) {
      resets.add(rateLimitOf(await list(key))[2]);
      service.clock.advance(777);
    }
    expect([...resets]).toEqual([Math.ceil((opened + 60_000) / 1000)]);
  });

  test("the headers describe the day if it has fewer requests left", async () => {
    const key = await newKey("enterprise", { perMinute: 5, perDay: 5 });
    expect(rateLimitOf(await list(key)).slice(0, 2)).toEqual([5, 4]);
    expect(rateLimitOf(await list(key))[2]).toBeGreaterThan(service.clock.now() / 1000 + 80_000);
  });

  test("a new plan keeps the usage and takes effect", async () => {
    const { id, secret } = await service.newKey({ plan: "free", limits: undefined as never });
    for (let i = 0; i < 10; i++) await list(secret);
    await service.app.keys.updateKey(id, { plan: "pro" }, BY);
    const changed = await eventually(
      () => list(secret),
      (response) => rateLimitOf(response)[0] === 300,
    );
    expect(rateLimitOf(changed)[1]).toBeLessThan(290);
  });

  test("a revoked key is rejected", async () => {
    const { id, secret } = await service.newKey();
    expect((await list(secret)).status).toBe(200);
    await service.app.keys.updateKey(id, { revokedAt: service.clock.now() }, BY);
    const response = await eventually(
      () => list(secret),
      ({ status }) => status === 401,
    );
    expect(response.json).toMatchObject({ code: "invalid_api_key" });
  });
});

test("a request that is not valid HTTP does not count", async () => {
  const remaining = async () => rateLimitOf(await list(service.key))[1];
  const before = Number(await remaining());
  const malformed = `GET /v1/pets HTTP/1.1\r\nHost:\r\nAuthorization: Bearer ${service.key}\r\n\r\n`;
  expect(await sendRaw(service.url, malformed)).toStartWith("HTTP/1.1 400 ");
  expect(await remaining()).toBe(before - 1);
});

describe("the temporary ban", () => {
  async function exhausted(): Promise<{ key: string; id: number }> {
    const { id, secret: key } = await service.newKey({ limits: { perMinute: 1, perDay: 1_000 } });
    await list(key);
    expect((await list(key)).json).toMatchObject({ code: "rate_limited" });
    return { key, id };
  }

  test("any 429 key_banned: the tenth strike bans the key for five minutes", async () => {
    const { key } = await exhausted();
    service.clock.advance(1_000);
    for (let i = 0; i < 50; i++) expect((await list(key)).json).toMatchObject({ code: "rate_limited" });
    service.clock.advance(1);
    for (let strike = 1; strike <= 9; strike++)
      expect((await list(key)).json).toMatchObject({ code: "rate_limited" });
    const banned = await list(key);
    expect(banned.json).toEqual({
      code: "key_banned",
      message:
        "This API key is temporarily banned because requests continued after a 429. Retry after 300 seconds.",
      status: 429,
    });
    expect(waitOf(banned)).toBe(300);
    expect(rateLimitOf(banned).slice(1)).toEqual([0, Math.ceil((service.clock.now() + 300_000) / 1000)]);

    service.clock.advance(299_999);
    expect((await list(key)).json).toMatchObject({ code: "key_banned" });
    const last = await list(key);
    expect(waitOf(last)).toBe(1);
    expect((last.json as { message: string }).message).toEndWith(" Retry after 1 second.");
    service.clock.advance(1);
    expect((await list(key)).status).toBe(200);
    expect((await list(service.key)).status).toBe(200);
  });

  test("any 429 key_banned: Retry-After of a repeated ban is twice as long, and waiting that long works", async () => {
    const { secret: key } = await service.newKey({ limits: { perMinute: 1, perDay: 1_000 } });
    for (const seconds of [300, 600, 1_200, 2_400, 2_400]) {
      expect((await list(key)).status).toBe(200);
      await list(key);
      service.clock.advance(1_001);
      for (let strike = 1; strike <= 9; strike++) await list(key);
      const banned = await list(key);
      expect([banned.json, waitOf(banned)]).toMatchObject([{ code: "key_banned" }, seconds]);
      expect(rateLimitOf(banned)[2]).toBe(Math.ceil(service.clock.now() / 1_000 + seconds));
      service.clock.advance(waitOf(banned) * 1_000);
    }
  });

  test("a restart keeps bans and usage", async () => {
    const { key } = await exhausted();
    const half = await newKey("free");
    for (let i = 0; i < 20; i++) await list(half);
    service.clock.advance(1_001);
    for (let strike = 1; strike <= 10; strike++) await list(key);
    await service.restart();
    expect((await list(key)).json).toMatchObject({ code: "key_banned" });
    expect(rateLimitOf(await list(half))[1]).toBe(39);
  });

  test("an unban takes effect", async () => {
    const { key, id } = await exhausted();
    service.clock.advance(1_001);
    for (let strike = 1; strike <= 10; strike++) await list(key);
    service.clock.advance(60_000);
    expect((await list(key)).json).toMatchObject({ code: "key_banned" });
    await service.app.keys.updateKey(id, { unbannedAt: service.clock.now() }, BY);
    await eventually(
      () => list(key),
      ({ status }) => status === 200,
    );
  });

  test("IP addresses are rate limited but never banned", async () => {
    const own = await startService();
    const call = () => own.call({ path: "/pets", key: null });
    for (let i = 0; i < 300; i++) await call();
    expect((await call()).status).toBe(429);
    own.clock.advance(2_000);
    for (let i = 0; i < 30; i++) expect((await call()).json).toMatchObject({ code: "rate_limited" });
    own.clock.advance(58_000);
    expect((await call()).status).toBe(401);
    await own.stop();
  });
});

/** Repeats a request until its response is as wanted. */
async function eventually(
  ask: () => Promise<ApiResponse>,
  wanted: (response: ApiResponse) => boolean,
): Promise<ApiResponse> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    const response = await ask();
    if (wanted(response)) return response;
    if (performance.now() > deadline)
      throw new Error(`the last response: ${response.status} ${response.text}`);
    await Bun.sleep(20);
  }
}
