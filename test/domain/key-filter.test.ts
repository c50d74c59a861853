import { expect, test } from "bun:test";
import { type KeyFilter, matchesFilter } from "../../src/domain/key-filter.ts";
import type { KeyView } from "../../src/domain/key-view.ts";

const shop: KeyView = {
  id: 17,
  name: "Mobile App",
  owner: "Ann@example.com",
  notes: null,
  labels: ["internal", "EU"],
  plan: "pro",
  limits: { perMinute: 300, perDay: 10_000 },
  access: "read",
  state: "active",
  secrets: [{ hint: "pet_live_aB3d…x9Kq", createdAt: null, validUntil: null }],
  usage: null,
  strikes: null,
  bannedUntil: null,
  createdAt: "2026-11-01T00:00:00.000Z",
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: "2026-11-10T00:00:00.000Z",
};
const tenth = Date.parse("2026-11-10T00:00:00Z");

test.each<KeyFilter>([
  {},
  { plan: "pro", state: "active", access: "read" },
  { owner: "ann@EXAMPLE.com" },
  { labels: ["eu"] },
  { labels: ["eu", "internal"] },
  { unusedSince: tenth + 1 },
  { search: "mobile" },
  { search: " app " },
  { search: "EXAMPLE" },
  { search: "intern" },
  { search: "ab3d" },
  { search: "x9Kq" },
  { search: "17" },
])("matches %p", (filter) => {
  expect(matchesFilter(shop, filter)).toBe(true);
});

test.each<KeyFilter>([
  { plan: "free" },
  { state: "banned" },
  { access: "write" },
  { owner: "example.com" },
  { labels: ["e"] },
  { labels: ["eu", "us"] },
  { unusedSince: tenth },
  { search: "1" },
  { search: "B3d" },
  { search: "tablet" },
  { plan: "pro", search: "tablet" },
])("does not match %p", (filter) => {
  expect(matchesFilter(shop, filter)).toBe(false);
});

test("a key that was never used counts from its creation; one without an owner has none that matches", () => {
  const unused = { ...shop, lastUsedAt: null, owner: null };
  expect(matchesFilter(unused, { unusedSince: Date.parse("2026-11-01T00:00:00Z") })).toBe(false);
  expect(matchesFilter(unused, { unusedSince: Date.parse("2026-11-01T00:00:01Z") })).toBe(true);
  expect(matchesFilter(unused, { owner: "" })).toBe(false);
});
