import { expect, test } from "bun:test";
import { DEFAULT_BAN, newUsage, type Usage } from "../../src/domain/rate-limit.ts";
import { GivenRequests } from "../../src/rate-limit/valkey/given-requests.ts";
import { Ledger } from "../../src/rate-limit/valkey/ledger.ts";
import type { KeySubject } from "../../src/rate-limit/valkey/script.ts";

const FREE = { perMinute: 60, perDay: 1_000 };
const NOW = 1_000_000;
const key = (id: number): KeySubject => ({ kind: "key", id });

function used(count: number): Usage {
  const window = { openedAt: NOW, used: count, firstRejectedAt: -1, strikes: 0 };
  return { ...newUsage(), minute: { ...window }, day: { ...window } };
}

const decide = (ledger: Ledger, id: number, servers = 1, now = NOW) =>
  ledger.decide({ subject: key(id), limits: FREE }, { servers, now }, "new");

test("50,000 keys are known; the oldest is forgotten first, and has its whole limit again", () => {
  const ledger = new Ledger({ ban: DEFAULT_BAN });
  for (let id = 0; id <= 50_000; id++) ledger.learn(key(id), used(50), 0);
  expect(ledger.size).toBe(50_000);
  expect(decide(ledger, 1)).toMatchObject({ remaining: 9 });
  expect(decide(ledger, 0)).toMatchObject({ remaining: 59 });
});

test("keys with something to report are forgotten last, and an unban never", () => {
  const ledger = new Ledger({ ban: DEFAULT_BAN, maxKeys: 100 });
  for (let id = 0; id < 10; id++) ledger.unban(key(id), NOW);
  for (let id = 10; id < 20; id++) decide(ledger, id);
  for (let id = 20; id < 200; id++) ledger.learn(key(id), used(1), 0);
  expect(ledger.size).toBe(100);
  /** Valkey does not reply. */
  const reported = () => {
    const reports = ledger.reports([], 10_000, NOW);
    for (const report of reports) ledger.notReported(report);
    return new Set(reports.map(({ subject }) => subject.id));
  };
  expect(reported().size).toBe(20);
  for (let id = 200; id < 1_000; id++) decide(ledger, id);
  expect(ledger.size).toBe(100);
  for (let id = 0; id < 10; id++) expect(reported()).toContain(id);
  for (let id = 2_000; id < 2_300; id++) ledger.unban(key(id), NOW);
  expect([...reported()].filter((id) => id < 10 || id >= 2_000)).toHaveLength(310);
});

test("what was reported counts for the share until the ledger is settled, and not twice after it", () => {
  const ledger = new Ledger({ ban: DEFAULT_BAN });
  ledger.learn(key(1), used(20), 0);
  for (let left = 9; left >= 0; left--) expect(decide(ledger, 1, 4)).toMatchObject({ remaining: left });
  const reports = ledger.reports([], 32, NOW);
  expect(reports).toMatchObject([{ minute: { openedAt: NOW, used: 10 } }]);
  for (const report of reports) ledger.reported(report, used(30), 0);
  expect(ledger.hasReports).toBe(false);
  expect(decide(ledger, 1, 4)).toMatchObject({ outcome: "limited" });
  ledger.settle();
  expect(decide(ledger, 1, 1)).toMatchObject({ remaining: 29 });
  expect(ledger.usage(key(1), NOW)).toMatchObject({ minute: { used: 31 } });
});

test("requests of an outage belong to the window that Valkey had opened, and end with it", () => {
  const ledger = new Ledger({ ban: DEFAULT_BAN });
  ledger.learn(key(1), used(20), 0);
  for (let i = 0; i < 5; i++) decide(ledger, 1, 1, NOW + 59_000);
  expect(decide(ledger, 1, 1, NOW + 59_000)).toMatchObject({ remaining: 34 });
  expect(decide(ledger, 1, 1, NOW + 60_000)).toMatchObject({ remaining: 59 });
});

test("of a key that still has something to report, what Valkey has counted does not count twice", () => {
  const ledger = new Ledger({ ban: DEFAULT_BAN });
  for (let i = 0; i < 10; i++) decide(ledger, 1);
  const reports = ledger.reports([], 32, NOW);
  decide(ledger, 1);
  for (const report of reports) ledger.reported(report, used(10), 0);
  ledger.settle();
  expect(decide(ledger, 1)).toMatchObject({ remaining: 60 - 12 });
});

test("what Valkey replies before it knows of a ban or an unban of this server changes neither", () => {
  const ledger = new Ledger({ ban: DEFAULT_BAN });
  const banned = () => ({ ...used(60), bannedAt: NOW, bannedUntil: NOW + 60_000 });
  ledger.learn(key(1), banned(), 0);
  ledger.unban(key(1), NOW + 1);
  for (let i = 0; i <= 60; i++) decide(ledger, 2);
  const later = NOW + 2_000;
  for (let i = 0; i < 10; i++) decide(ledger, 2, 1, later);
  expect(decide(ledger, 2, 1, later)).toMatchObject({ outcome: "banned" });
  ledger.learn(key(1), banned(), 0);
  ledger.learn(key(2), used(60), 0);
  ledger.settle();
  expect(decide(ledger, 1, 1, later)).toMatchObject({ outcome: "limited" });
  expect(decide(ledger, 2, 1, later)).toMatchObject({ outcome: "banned" });
});

test("a day of requests, reports and replies takes 200 buckets at most", () => {
  const given = new GivenRequests(60_000);
  for (let now = 0; now < 86_400_000; now += 777) {
    given.add(now, now % 2 === 0 ? "new" : "counted");
    given.expire(now);
    if (now % 5 === 0) given.mark("new", "sent");
    if (now % 3 === 0) given.mark("sent", "counted");
    if (given.bucketCount > 200) throw new Error(`${given.bucketCount} buckets`);
  }
  expect(given.count("new", "sent", "counted")).toBeWithin(77, 80);
});
