import { expect, test } from "bun:test";
import { BanRecorder } from "../../src/background/ban-recorder.ts";
import type { NewAuditEntry } from "../../src/domain/audit.ts";
import { silentLog } from "../../src/observe/log.ts";
import { advance, settle, useFakeTimers } from "../fake-timers.ts";

useFakeTimers();

const AT = Date.UTC(2026, 10, 15, 12);
const KEY = { id: 0, name: "shop", plan: "free", access: "write", labels: [], createdAt: 0 } as const;
const BAN = { bannedAt: AT, bannedUntil: AT + 300_000 };

/** Bans are written every quarter of a second. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) await advance(Math.min(250, ms - passed));
}

function setUp() {
  const entries: NewAuditEntry[] = [];
  const byKey = new Map<bigint | undefined, NewAuditEntry[]>();
  const events: [string, unknown][] = [];
  const database = { isAvailable: true, responds: true };
  const recorder = new BanRecorder({
    audit: {
      async recordAuditUnless({ action, target, since = 0, until = Infinity }, entry) {
        if (!database.isAvailable) throw new Error("away");
        const earlier = byKey.get(target?.id) ?? [];
        const isFound = earlier.some((each) => each.action === action && each.at >= since && each.at < until);
        if (!isFound) {
          entries.push(entry);
          byKey.set(target?.id, [...earlier, entry]);
        }
        if (!database.responds) throw new Error("no response");
        return !isFound;
      },
    },
    keys: { getKey: (id) => ({ ...KEY, id }) },
    log: { ...silentLog, event: (name: string, details?: unknown) => void events.push([name, details]) },
    server: "one",
  });
  return { recorder, entries, events, database, keyIds: () => entries.map(({ target }) => target?.id) };
}

test("a ban is logged, and written to the audit trail", async () => {
  const { recorder, entries, events } = setUp();
  recorder.record(7, BAN);
  await recorder.close();
  expect(entries).toEqual([
    {
      at: AT,
      actor: { kind: "server", name: "one" },
      action: "key.banned",
      target: { kind: "key", id: 7n },
      after: { name: "shop", owner: null, plan: "free", bannedUntil: "2026-11-15T12:05:00.000Z" },
    },
  ]);
  const details = { keyId: 7, bannedAt: "2026-11-15T12:00:00.000Z", bannedUntil: "2026-11-15T12:05:00.000Z" };
  expect([events, recorder.count]).toEqual([[["key.banned", details]], 1]);
});

test("bans during an outage of the database are written after it, in order and once", async () => {
  const { recorder, events, database, keyIds } = setUp();
  database.isAvailable = false;
  for (const keyId of [1, 2, 3]) recorder.record(keyId, BAN);
  await settle();
  await pass(3_000);
  expect(keyIds()).toEqual([]);
  database.isAvailable = true;
  await pass(1_000);
  expect(keyIds()).toEqual([1n, 2n, 3n]);
  database.isAvailable = false;
  recorder.record(4, BAN);
  await pass(1_000);
  database.isAvailable = true;
  await recorder.close();
  expect(keyIds()).toEqual([1n, 2n, 3n, 4n]);
  expect(events.map(([name]) => name).filter((name) => name !== "key.banned")).toEqual([
    "audit.write-failed",
    "audit.write-failed",
  ]);
});

test("a ban whose entry was stored without a response is recorded once", async () => {
  const { recorder, database, events, keyIds } = setUp();
  database.responds = false;
  recorder.record(1, BAN);
  await settle();
  await pass(1_000);
  expect(events.map(([name]) => name)).toEqual(["key.banned", "audit.write-failed"]);
  database.responds = true;
  // A ban after an unban is another one.
  recorder.record(1, { bannedAt: AT + 1_000, bannedUntil: AT + 601_000 });
  await pass(1_000);
  await recorder.close();
  expect(keyIds()).toEqual([1n, 1n]);
});

test("a stop tries once more, and logs how many bans are missing in the audit trail", async () => {
  const { recorder, events, database } = setUp();
  database.isAvailable = false;
  recorder.record(1, BAN);
  await settle();
  await recorder.close();
  expect(events.at(-1)).toEqual(["audit.bans-lost", { bans: 1 }]);
});

test("10,000 bans wait for the database, and no more", async () => {
  const { recorder, events, database, keyIds } = setUp();
  database.isAvailable = false;
  for (let keyId = 1; keyId <= 10_002; keyId++) recorder.record(keyId, BAN);
  await settle();
  database.isAvailable = true;
  await pass(4_000);
  expect(keyIds()).toHaveLength(10_000);
  await recorder.close();
  expect(events.at(-1)).toEqual(["audit.bans-lost", { bans: 2 }]);
});
