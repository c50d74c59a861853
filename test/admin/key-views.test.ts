import { expect, test } from "bun:test";
import type { ApiKey } from "../../src/domain/api-keys.ts";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import { newQuota, type Quota } from "../../src/domain/rate-limit.ts";
import { KeyViews, type KeyViewServices } from "../../src/operator/handlers/key-views.ts";
import { formatTime } from "../../src/text/formatting.ts";
import { TestClock } from "../test-clock.ts";

const clock = new TestClock();
const NOW = clock.now();
const MINUTE = 60_000;

const keyOf = (id: number, more: Partial<ApiKey> = {}): ApiKey => ({
  id,
  name: `key ${id}`,
  plan: "free",
  access: "write",
  labels: [],
  createdAt: 0,
  ...more,
});
const used = (minute: number, day: number, more: Partial<Quota> = {}): Quota => {
  const quota = newQuota();
  Object.assign(quota.minute, { used: minute, openedAt: NOW - 1, strikes: minute });
  Object.assign(quota.day, { used: day, openedAt: NOW - 1, strikes: day });
  return Object.assign(quota, more);
};
const banned = (forMs: number) =>
  used(0, 0, { bannedAt: NOW - 1, bannedUntil: NOW + forMs, lastBanMs: forMs + 1 });

/** The views of keys with these quotas; the rate limiter knows whom it has banned, or the audit trail does. */
function viewsOf(quotas: Record<number, Quota>, { keys = [] as ApiKey[], ...more } = {}) {
  const asked: unknown[] = [];
  const monitor = { isAvailable: true };
  const services = {
    clock,
    policy: { current: DEFAULT_POLICY },
    limiterMonitor: monitor,
    rateLimiter: {
      quota: async ({ id }: { id: number }) => quotas[id],
      bannedKeys: () => Object.keys(quotas).map(Number),
    },
    keys: {
      getKeys: async (ids: readonly number[]) =>
        ids.map((id) => keys.find((each) => each.id === id) ?? keyOf(id)),
      listSecrets: async () => new Map(),
    },
    usageHistory: { lastUsed: async () => new Map() },
    audit: {
      async listAudit(query: object) {
        asked.push(query);
        return { items: [7, 7, 8].map((id) => ({ target: { kind: "key", id: BigInt(id) } })) };
      },
    },
    ...more,
  };
  return { views: new KeyViews(services as unknown as KeyViewServices), monitor, asked };
}

test("banned keys are listed by the ends of their bans, without those that are revoked or whose ban is over", async () => {
  const quotas = { 5: banned(2), 6: banned(1), 4: banned(2), 3: banned(0), 2: banned(9) };
  const { views } = viewsOf(quotas, { keys: [keyOf(2, { revokedAt: NOW })] });
  const { items, total } = await views.banned(2);
  expect([items.map(({ id }) => id), total]).toEqual([[6, 4], 3]);
  expect(items[0]).toMatchObject({ state: "banned", bannedUntil: formatTime(NOW + 1) });
});

test("if the rate limiter does not know whom it has banned, the audit trail of the longest ban does", async () => {
  const bannedKeys = () => undefined;
  const quota = async () => banned(1);
  const { views, asked } = viewsOf({}, { rateLimiter: { quota, bannedKeys } } as object);
  expect((await views.banned(10)).items.map(({ id }) => id)).toEqual([7, 8]);
  const since = NOW - DEFAULT_POLICY.ban.maxLengthMs;
  expect(asked).toEqual([{ action: "key.banned", since, limit: 10_000 }]);
});

test("a key shows its windows and the larger number of strikes, or neither while they cannot be read", async () => {
  const { views, monitor } = viewsOf({ 1: used(3, 9), 2: used(4, 0) });
  const day = { used: 9, limit: 1_000, resetsAt: formatTime(NOW - 1 + 24 * 60 * MINUTE) };
  expect(await views.view(keyOf(1))).toMatchObject({
    usage: { minute: { used: 3, limit: 60, resetsAt: formatTime(NOW - 1 + MINUTE) }, day },
    strikes: 9,
  });
  expect(await views.view(keyOf(2))).toMatchObject({
    usage: { day: { used: 0, resetsAt: null } },
    strikes: 4,
  });
  expect(await views.view(keyOf(3))).toMatchObject({ usage: { minute: { used: 0 } }, strikes: 0 });
  monitor.isAvailable = false;
  expect(await views.view(keyOf(1))).toMatchObject({ usage: null, strikes: null, state: "active" });
  expect(await views.banned(9)).toEqual({ items: [], total: 0 });
});

test("the share of a key is that of the window that is fuller, of its own limits if it has any", async () => {
  const limits = { perMinute: 4, perDay: 10 };
  const { views } = viewsOf({ 1: used(6, 9), 2: used(3, 9) }, { keys: [keyOf(2, { limits })] });
  const plans = { 1: "free", 2: "enterprise", 3: null, 4: "pro" } as const;
  const totals = Object.entries(plans).map(([id, plan]) => ({ keyId: Number(id), plan }));
  expect(await views.windowsOf(totals)).toEqual([
    { id: 1, usedToday: 9, percent: 10 },
    { id: 2, usedToday: 9, percent: 90 },
    { id: 4, usedToday: 0, percent: 0 },
  ]);
});
