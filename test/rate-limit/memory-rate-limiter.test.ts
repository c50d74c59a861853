import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_BAN } from "../../src/domain/rate-limit.ts";
import { openUsageStore } from "../../src/store/sqlite/usage-store.ts";
import { rateLimiterConformance, STARTS_AT } from "../conformance/rate-limiter.ts";
import { address, key } from "../subjects.ts";
import { openOn, openOnMaps } from "./open-memory.ts";

const folder = mkdtempSync(join(tmpdir(), "petstore-rate-limiter-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
const openOnFiles = openOn(() => {
  const path = join(folder, `${files++}.db`);
  return () => openUsageStore(path);
});

test("the usage of an address survives a restart", async () => {
  const opened = await openOnFiles({ ban: DEFAULT_BAN, startsAt: STARTS_AT });
  const limits = { perMinute: 60, perDay: 1_000 };
  for (let i = 0; i < 7; i++) await opened.rateLimiter.decide(address("192.0.2.7"), limits);
  const before = await opened.rateLimiter.usage(address("192.0.2.7"));
  await opened.restart();
  expect(await opened.rateLimiter.usage(address("192.0.2.7"))).toEqual(before);
  expect(await opened.rateLimiter.decide(address("192.0.2.7"), limits)).toMatchObject({ remaining: 52 });
  await opened.close();
});

test("the keys that are banned now are known, also after a restart, and until the ban ends or is lifted", async () => {
  const ban = { ...DEFAULT_BAN, strikes: 1, graceMs: 0 };
  const opened = await openOnFiles({ ban, startsAt: STARTS_AT });
  const limits = { perMinute: 1, perDay: 9 };
  for (const id of [1, 2, 3]) {
    for (let i = 0; i < 3; i++, opened.advance(1)) await opened.rateLimiter.decide(key(id), limits);
  }
  await opened.rateLimiter.decide(key(4), limits);
  expect(opened.rateLimiter.bannedKeys()).toEqual([1, 2, 3]);
  await opened.rateLimiter.unban(key(2), 0);
  expect(opened.rateLimiter.bannedKeys()).toEqual([1, 3]);
  await opened.restart();
  expect(opened.rateLimiter.bannedKeys()).toEqual([1, 3]);
  opened.advance(300_000 - 4);
  expect(opened.rateLimiter.bannedKeys()).toEqual([3]);
  opened.advance(10);
  expect(opened.rateLimiter.bannedKeys()).toEqual([]);
  await opened.close();
});

rateLimiterConformance("in process", openOnMaps);
rateLimiterConformance("in process, on SQLite", openOnFiles);
