import { expect, test } from "bun:test";
import { BY } from "../key-store-arguments.ts";
import { remainingOf, useService } from "../service.ts";

const service = await useService();
const FREE = { plan: "free", limits: undefined as never } as const;
const getKey = (key: string) => service.call({ path: "/key", key });

/** The time of a window that closes so much later, rounded up to a second. */
const closing = (afterMs: number) =>
  new Date(Math.ceil((service.clock.now() + afterMs) / 1000) * 1000).toISOString();

test("getKey 200: the key and both windows, with this request counted", async () => {
  const { id, secret } = await service.newKey({ ...FREE, name: "mobile app" });
  const day = closing(86_400_000);
  await service.call({ path: "/pets", key: secret });
  service.clock.advance(60_000);
  const minute = closing(60_000);
  const { json, headers } = await getKey(secret);
  expect(json).toEqual({
    id,
    name: "mobile app",
    plan: "free",
    access: "write",
    expiresAt: null,
    minute: { limit: 60, remaining: 59, resetAt: minute },
    day: { limit: 1_000, remaining: 998, resetAt: day },
  });
  expect(headers.get("x-ratelimit-remaining")).toBe("59");
  expect(Number(headers.get("x-ratelimit-reset")) * 1000).toBe(Date.parse(minute));
  expect(headers.get("cache-control")).toBe("private, no-cache");
});

test("getKey 200: a read-only Enterprise key that expires, and its name after a change", async () => {
  const limits = { perMinute: 5, perDay: 3 };
  const expiresAt = service.clock.now() + 3_600_000;
  const { id, secret } = await service.newKey({ access: "read", limits, expiresAt });
  await getKey(secret);
  await service.app.keys.updateKey(id, { name: "renamed" }, BY);
  expect((await getKey(secret)).json).toMatchObject({
    name: "renamed",
    plan: "enterprise",
    access: "read",
    expiresAt: new Date(expiresAt).toISOString(),
    minute: { limit: 5, remaining: 3 },
    day: { limit: 3, remaining: 1 },
  });
});

test("getKey 200: each request has another ETag, because each counts", async () => {
  const { secret } = await service.newKey(FREE);
  const first = await getKey(secret);
  const etag = first.headers.get("etag") ?? "";
  const second = await service.call({ path: "/key", key: secret, headers: { "If-None-Match": etag } });
  expect(second.status).toBe(200);
  expect(second.headers.get("etag")).not.toBe(etag);
  expect(remainingOf(second)).toBe(remainingOf(first) - 1);
});

test.each([
  [{ perMinute: 1, perDay: 1_000 }, 0, "the limit is 1 request a minute. Retry after 60 seconds."],
  [{ perMinute: 60, perDay: 1 }, 0, "the limit is 1 request a day. Retry after 86400 seconds."],
  [{ perMinute: 1, perDay: 1 }, 0, "the limit is 1 request a day. Retry after 86400 seconds."],
  [{ perMinute: 1, perDay: 2 }, 86_399_000, "the limit is 1 request a minute. Retry after 60 seconds."],
])("rate_limited 429: the message names the window to wait for (%#)", async (limits, waitMs, message) => {
  const { secret } = await service.newKey({ limits });
  await getKey(secret);
  service.clock.advance(waitMs);
  if (waitMs > 0) await getKey(secret);
  const { json } = await getKey(secret);
  expect(json).toEqual({ code: "rate_limited", message: `Too many requests: ${message}`, status: 429 });
});
