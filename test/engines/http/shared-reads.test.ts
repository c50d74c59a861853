import { expect, test } from "bun:test";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { startService } from "../../service.ts";
import { startStallingProxy } from "../../../trials/harness/stalling-proxy.ts";

test("a list in open windows takes one round trip to PostgreSQL", async () => {
  await using proxy = await startStallingProxy(new URL(await postgresUrl()));
  const { call, stop } = await startService({ databaseUrl: proxy.url });
  // The first one connects, opens the windows and prepares the statements.
  for (let i = 0; i < 2; i++) await call({ path: "/pets" });
  const roundTripMs = 100;
  proxy.delay(roundTripMs);
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const startedAt = performance.now();
    expect(await call({ path: "/pets" })).toMatchObject({ status: 200 });
    times.push(performance.now() - startedAt);
  }
  expect(Math.min(...times)).toBeWithin(roundTripMs - 5, 2 * roundTripMs - 5);
  proxy.delay(0);
  await stop();
});

test("each of the requests that share a response has its own usage, and the same page with another query its own link", async () => {
  const { call, newKey, stop } = await startService({ databaseUrl: await postgresUrl() });
  for (let i = 0; i < 21; i++)
    await call({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } });
  const { secret } = await newKey({ limits: { perMinute: 1_000, perDay: 1_000 } });
  const paths = Array.from({ length: 30 }, (_, i) => (i % 2 === 0 ? "/pets?limit=20" : "/pets"));
  const responses = await Promise.all(paths.map((path) => call({ path, key: secret })));
  const remaining = responses.map(({ headers }) => Number(headers.get("x-ratelimit-remaining")));
  expect(new Set(remaining).size).toBe(30);
  for (const [i, { headers }] of responses.entries()) {
    expect(headers.get("link")?.includes("limit=20")).toBe(i % 2 === 0);
  }
  await stop();
});

test("the ETag of a page changes when a next page appears", async () => {
  const { call, newPet, stop } = await startService({ databaseUrl: await postgresUrl() });
  await newPet();
  const path = "/pets?limit=1";
  const etag = (await call({ path })).headers.get("etag") ?? "";
  const headers = { "If-None-Match": etag };
  expect((await call({ path, headers })).status).toBe(304);
  await newPet();
  const { status, headers: received } = await call({ path, headers });
  expect(status).toBe(200);
  expect(received.get("link")).toContain('rel="next"');
  await stop();
});
