import { expect, test } from "bun:test";
import {
  deliveredActions,
  hasFailedTooLong,
  isDelivered,
  shownWebhookUrl,
  type WebhookDelivery,
  withDelivery,
} from "../../src/domain/webhooks.ts";

const DAY_MS = 86_400_000;
const attempt = (id: number, at = 0): WebhookDelivery => ({
  id,
  type: "key.banned",
  at,
  status: 500,
  error: null,
  durationMs: 1,
});

test("an event is delivered by its name, by all of its kind, or with all events", () => {
  expect(deliveredActions(["key.banned", "*"])).toBeUndefined();
  expect([...(deliveredActions(["plan.*", "key.banned", "key"]) ?? [])]).toEqual([
    "key.banned",
    "plan.updated",
  ]);
});

test("operators see a hash for the path and the query of the URL, which may be secret", () => {
  expect(shownWebhookUrl("https://example.com/")).toBe("https://example.com/");
  for (const url of ["https://example.com/hook", "https://example.com/?token=1"])
    expect(shownWebhookUrl(url)).toMatch(/^https:\/\/example\.com\/… \(SHA-256 [0-9a-f]{8}\)$/);
});

test("any 2xx response accepts an event, and no other does", () => {
  expect([199, 200, 204, 299, 300, null].map((status) => isDelivered({ status }))).toEqual([
    false,
    true,
    true,
    true,
    false,
    false,
  ]);
});

test("of twenty attempts the last one is dropped, unless it is the first of the entry that is tried again", () => {
  const earlier = Array.from({ length: 20 }, (_, i) => attempt(20 - i));
  expect(withDelivery(attempt(20), earlier.slice(1))).toHaveLength(20);
  const idsAfter = (id: number) => withDelivery(attempt(id), earlier).map((each) => each.id);
  expect(idsAfter(21)).toEqual([21, ...earlier.slice(0, 19).map(({ id }) => id)]);
  expect(idsAfter(1)).toEqual([1, ...earlier.slice(0, 18).map(({ id }) => id), 1]);
});

test("an entry has failed for too long three days after its first attempt", () => {
  const attempts = [attempt(2, 4 * DAY_MS), attempt(1, 2 * DAY_MS), attempt(1, DAY_MS), attempt(0)];
  expect(hasFailedTooLong(1n, attempts, 4 * DAY_MS - 1)).toBeFalse();
  expect(hasFailedTooLong(1n, attempts, 4 * DAY_MS)).toBeTrue();
  expect(hasFailedTooLong(3n, attempts, 9 * DAY_MS)).toBeFalse();
});
