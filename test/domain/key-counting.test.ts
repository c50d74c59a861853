import { expect, test } from "bun:test";
import { BanReporter, countAll } from "../../src/domain/key-counting.ts";
import { decide, newQuota } from "../../src/domain/rate-limit.ts";

const NOW = 1_800_000_000_000;
const limits = { perMinute: 2, perDay: 100 };
const rules = { strikes: 1, graceMs: 0, lengthMs: 1_000, maxLengthMs: 1_000 };

test("requests are counted in their order, after what another counter knew, and say which keys they have banned", () => {
  const known = newQuota();
  decide(known, limits, NOW);
  const quotas = new Map([1, 2].map((keyId) => [keyId, newQuota()]));
  const first = countAll(
    [1, 1, 1, 2, 3].map((keyId) => ({ keyId, limits })),
    quotas,
    NOW,
    rules,
  );
  expect(first.counted.map(({ decision: { outcome, remaining } }) => [outcome, remaining])).toEqual([
    ["allowed", 1],
    ["allowed", 0],
    ["limited", 0],
    ["allowed", 1],
    ["allowed", 1],
  ]);
  expect([first.banned.size, first.counted[0]?.quota]).toEqual([0, quotas.get(1)]);
  const second = countAll(
    [
      { keyId: 2, limits, known },
      { keyId: 4, limits, known },
      { keyId: 1, limits },
    ],
    quotas,
    NOW + 1,
    rules,
  );
  expect(second.counted.map(({ decision: { outcome, remaining } }) => [outcome, remaining])).toEqual([
    ["allowed", 0],
    ["allowed", 0],
    ["banned", 0],
  ]);
  expect([...second.banned]).toEqual([[1, quotas.get(1)]] as never);
});

test("each ban is reported once, as a new one or as an earlier one", () => {
  const reported: unknown[] = [];
  const reporter = new BanReporter({
    onBan: (keyId, { bannedUntil }) => reported.push(["new", keyId, bannedUntil]),
    onEarlierBan: (keyId, { bannedUntil }) => reported.push(["earlier", keyId, bannedUntil]),
  });
  for (const [keyId, bannedUntil] of [
    [1, 5],
    [1, 5],
    [1, 6],
    [2, 6],
  ] as const) {
    reporter.report(keyId, { bannedAt: 0, bannedUntil }, keyId === 1);
    reporter.report(keyId, { bannedAt: 0, bannedUntil }, false);
  }
  expect(reported).toEqual([
    ["new", 1, 5],
    ["new", 1, 6],
    ["earlier", 2, 6],
  ]);
});
