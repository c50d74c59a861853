import { expect, test } from "bun:test";
import { startRegularWork } from "../../src/background/regular-work.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";
import { TestClock } from "../test-clock.ts";

useFakeTimers();

const TEN_MINUTES_MS = 600_000;

function start(retentionMs: number | null) {
  const deleted: number[] = [];
  const deletedUsage: number[] = [];
  const announced: [until: number, by: object][] = [];
  const events: string[] = [];
  const calls = { deleted, deletedUsage, announced, events };
  const server = { ...calls, failure: undefined as Error | undefined };
  const fail = () => {
    if (server.failure) throw server.failure;
    return false;
  };
  const work = startRegularWork({
    stores: {
      usageHistory: { deleteOldUsage: async (now) => fail() || deletedUsage.push(now) < 0 },
      audit: { deleteAudit: async (before) => fail() || deleted.push(before) < 0 },
      keys: { announceExpiries: async (...args) => fail() || announced.push(args) < 0 },
    },
    auditRetentionMs: retentionMs,
    retentionNow: () => 5_000,
    clock: new TestClock(),
    log: { event: (name: string) => void events.push(name) },
  });
  return { server, work };
}

test("audit entries are deleted at the age that this server is started with", async () => {
  const { server, work } = start(3_000);
  await advance(100);
  expect(server.deleted).toEqual([2_000]);
  await work.close();
});

test("no audit entry is deleted if they are kept forever", async () => {
  const { server, work } = start(null);
  await advance(100);
  await advance(1_000);
  expect(server).toMatchObject({ deleted: [], events: [] });
  await work.close();
});

test("usage is deleted by the time that is trusted, and keys are announced that expire within seven days", async () => {
  const { server, work } = start(null);
  await advance(100);
  expect(server.deletedUsage).toEqual([5_000]);
  const { time: at } = new TestClock();
  expect(server.announced).toMatchObject([[at + 7 * 86_400_000, { at, actor: { kind: "server" } }]]);
  await work.close();
  await advance(TEN_MINUTES_MS);
  expect([server.deletedUsage.length, server.announced.length]).toEqual([1, 1]);
});

test("a failure is logged, and the next attempt follows ten minutes later", async () => {
  const { server, work } = start(3_000);
  server.failure = new Error("disk full");
  await advance(100);
  expect(server.deleted).toEqual([]);
  expect(server.events.toSorted()).toEqual([
    "audit.delete-failed",
    "key.expiry-not-announced",
    "usage-history.delete-failed",
  ]);
  server.failure = undefined;
  await advance(TEN_MINUTES_MS);
  expect(server.deleted).toEqual([2_000]);
  await work.close();
});
