import { expect, test } from "bun:test";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import { startRegularWork } from "../../src/background/regular-work.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";
import { TestClock } from "../test-clock.ts";

useFakeTimers();

const TEN_MINUTES_MS = 600_000;

function start(retentionMs: number | null) {
  const deleted: number[] = [];
  const events: string[] = [];
  const server = { isPolicyStored: true, deleted, events, failure: undefined as Error | undefined };
  const work = startRegularWork({
    stores: {
      usageHistory: { deleteOldUsage: async () => false },
      audit: {
        async deleteAudit(before) {
          if (server.failure) throw server.failure;
          deleted.push(before);
          return false;
        },
      },
      keys: { announceExpiries: async () => false },
    },
    policy: { current: { ...DEFAULT_POLICY, sharedValues: { "audit-retention": retentionMs } } },
    retentionNow: () => 5_000,
    isPolicyStored: () => server.isPolicyStored,
    clock: new TestClock(),
    log: { event: (name: string) => void events.push(name) },
  });
  return { server, work };
}

test("audit entries are deleted only when the time that this server is started with is stored", async () => {
  const { server, work } = start(3_000);
  server.isPolicyStored = false;
  await advance(100);
  expect(server.deleted).toEqual([]);
  server.isPolicyStored = true;
  await advance(TEN_MINUTES_MS);
  expect(server.deleted).toEqual([2_000]);
  await work.close();
});

test("no audit entry is deleted if they are kept forever", async () => {
  const { server, work } = start(null);
  await advance(100);
  expect(server).toMatchObject({ deleted: [], events: [] });
  await work.close();
});

test("a failure is logged, and the next attempt follows ten minutes later", async () => {
  const { server, work } = start(3_000);
  server.failure = new Error("disk full");
  await advance(100);
  expect(server).toMatchObject({ deleted: [], events: ["audit.delete-failed"] });
  server.failure = undefined;
  await advance(TEN_MINUTES_MS);
  expect(server.deleted).toEqual([2_000]);
  await work.close();
});
