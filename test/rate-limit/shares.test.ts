import { expect, test } from "bun:test";
import { newQuota, type Quota } from "../../src/domain/rate-limit.ts";
import type { KeySubject } from "../../src/rate-limit/valkey/script.ts";
import { Shares } from "../../src/rate-limit/valkey/shares.ts";

const FREE = { perMinute: 60, perDay: 1_000 };
const NOW = 1_000_000;
const key = (id: number): KeySubject => ({ kind: "key", id });

function used(count: number, openedAt = NOW): Quota {
  const window = { openedAt, used: count, graceBeganAt: -1, strikes: 0 };
  return { ...newQuota(), minute: { ...window }, day: { ...window } };
}

const decide = (shares: Shares, id: number, servers = 1, now = NOW) =>
  shares.decide({ subject: key(id), limits: FREE }, { servers, now });

test("50,000 keys are known; the oldest is forgotten first, and has its whole limit again", () => {
  const shares = new Shares();
  for (let id = 0; id <= 50_000; id++) shares.learn(key(id), used(50), NOW);
  expect(shares.size).toBe(50_000);
  expect(decide(shares, 1)).toMatchObject({ remaining: 9 });
  expect(decide(shares, 0)).toMatchObject({ remaining: 59 });
});

test("keys with something to report are not forgotten, and after the outage there are 50,000 again", () => {
  const shares = new Shares();
  shares.unban(key(0), NOW);
  for (let id = 1; id < 50_100; id++) decide(shares, id);
  expect(shares.size).toBe(50_100);
  const reports = shares.takeReports([], Infinity, NOW);
  expect(reports).toHaveLength(50_100);
  for (let id = 60_000; id < 60_200; id++) shares.learn(key(id), used(1), NOW);
  expect(shares.size).toBe(50_000);
});

test("what is reported meanwhile belongs to the share, and is not reported twice", () => {
  const shares = new Shares();
  shares.learn(key(1), used(20), NOW);
  for (let left = 9; left >= 5; left--) expect(decide(shares, 1, 4)).toMatchObject({ remaining: left });
  const [report] = shares.takeReports([], 32, NOW);
  expect(report).toMatchObject({ minute: { openedAgoMs: 0, used: 5 }, day: { used: 5 } });
  expect(shares.hasReports).toBe(false);
  shares.learn(key(1), used(25), NOW);
  for (let left = 4; left >= 0; left--) expect(decide(shares, 1, 4)).toMatchObject({ remaining: left });
  expect(decide(shares, 1, 4)).toMatchObject({ outcome: "limited" });
  expect(shares.takeReports([], 32, NOW)).toMatchObject([{ minute: { used: 5 } }]);
  expect(shares.quota(key(1), NOW)).toMatchObject({ minute: { used: 30 } });
});

test("a report that was lost is made again, unless its window has closed", () => {
  const shares = new Shares();
  for (let i = 0; i < 3; i++) decide(shares, 1);
  const reports = shares.takeReports([], 32, NOW + 10);
  for (const report of reports) shares.putBack(report, NOW + 10);
  expect(shares.takeReports([], 32, NOW + 59_999)).toMatchObject([
    { minute: { openedAgoMs: 59_999, used: 3 }, day: { used: 3 } },
  ]);
  decide(shares, 1, 1, NOW + 60_000);
  for (const report of reports) shares.putBack(report, NOW + 10);
  expect(shares.takeReports([], 32, NOW + 60_000)).toMatchObject([
    { minute: { openedAgoMs: 0, used: 1 }, day: { used: 4 } },
  ]);
});

test("a request that Valkey counts late is not reported, and stays a part of the share", () => {
  const shares = new Shares();
  for (let i = 0; i < 10; i++) decide(shares, 1, 4);
  shares.countedLate(key(1), 4);
  shares.learn(key(1), used(4), NOW);
  expect(decide(shares, 1, 4)).toMatchObject({ remaining: 4 });
  expect(shares.takeReports([], 32, NOW)).toMatchObject([{ minute: { used: 7 } }]);
});
