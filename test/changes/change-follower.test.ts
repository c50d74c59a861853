import { expect, test } from "bun:test";
import { ChangeReader } from "../../src/changes/change-reader.ts";
import { PolicyReads } from "../../src/changes/policy-reads.ts";
import type { ApiKey } from "../../src/domain/api-keys.ts";
import type { Policy } from "../../src/domain/policy.ts";
import type { ChangedKey, StoredChanges } from "../../src/domain/ports/keys.ts";
import { followSilently } from "../auth/open-authenticator.ts";
import { useFakeTimers } from "../fake-timers.ts";
import { TestClock } from "../test-clock.ts";

useFakeTimers();

const policyOf = (name: string) => ({ name }) as unknown as Policy;
const changedKey = (kind: ChangedKey["kind"], id: number): ChangedKey => ({
  kind,
  key: { id } as Partial<ApiKey> as ApiKey,
});

test("each poll applies what the database shows that the one before did not", async () => {
  const clock = new TestClock();
  const events: unknown[] = [];
  let stored: StoredChanges = { revision: 5, timeline: "1 a", changed: [], hasQuestions: false };
  let isPolicyReadable = true;
  const authenticator = { keysChanged: (ids: unknown) => void events.push({ keys: ids }) };
  const reader = await ChangeReader.open({
    keys: {
      changesSince(revision) {
        events.push(`since ${revision}`);
        return stored;
      },
    },
    authenticator,
    clock,
  });
  expect(events.splice(0)).toEqual([`since ${Number.MAX_SAFE_INTEGER}`]);
  const follower = followSilently({
    reader,
    authenticator,
    clock,
    rateLimiter: { unban: ({ id }, agoMs) => void events.push(`unban ${id}, ${agoMs} ms ago`) },
    readPolicy() {
      if (!isPolicyReadable) throw new Error("cut off");
      return policyOf(`of revision ${stored.revision}`);
    },
    applyPolicy: (policy) => void events.push(policy),
    followStore: () => void events.push("store"),
    onChanges: (keys) => void (keys.length > 0 && events.push({ others: keys.map(({ id }) => id) })),
    onReplacement: (replacement) => void events.push(replacement),
    onUnreadable: (error) => void events.push(String(error)),
    onReadable: () => void events.push("readable"),
    onUnban: (id) => void events.push(`unbanned ${id}`),
  });
  const removeListener = follower.onQuestions(() => events.push("question"));
  const poll = async (change: Partial<StoredChanges> = {}) => {
    stored = { ...stored, changed: [], hasQuestions: false, ...change };
    clock.advance(100);
    await follower.applyNow();
    return events.splice(0);
  };
  const policy = (revision: number) => policyOf(`of revision ${revision}`);

  expect(await poll()).toEqual(["store", "since 5", policy(5)]);
  expect(await poll()).toEqual(["store", "since 5"]);
  const changed = [changedKey("unban", 4), changedKey("key", 3)];
  expect(await poll({ revision: 7, changed })).toEqual([
    "store",
    "since 5",
    { keys: [4, 3] },
    { others: [3] },
    policy(7),
    "unban 4, 100 ms ago",
    "unbanned 4",
  ]);
  expect(await poll({ revision: 8 })).toEqual(["store", "since 7", { keys: [] }, policy(8)]);
  expect(await poll({ hasQuestions: true })).toEqual(["store", "since 8", "question"]);
  expect(await poll({ timeline: "2 b" })).toEqual([
    "store",
    "since 8",
    { keys: "all" },
    { revision: 8, revisionBefore: 8 },
    policy(8),
  ]);
  expect(await poll({ revision: 6 })).toEqual([
    "store",
    "since 8",
    { keys: "all" },
    { revision: 6, revisionBefore: 8 },
    policy(6),
  ]);
  removeListener();
  isPolicyReadable = false;
  expect(await poll({ revision: 9, hasQuestions: true })).toEqual([
    "store",
    "since 6",
    { keys: [] },
    "Error: cut off",
  ]);
  isPolicyReadable = true;
  expect(await poll()).toEqual(["store", "since 9", policy(9), "readable"]);
  follower.close();
});

test("a policy that is read late undoes no later one, and one that changed meanwhile is read again", async () => {
  const reads: PromiseWithResolvers<Policy>[] = [];
  const applied: Policy[] = [];
  const policies = new PolicyReads({
    readPolicy() {
      const read = Promise.withResolvers<Policy>();
      reads.push(read);
      return read.promise;
    },
    applyPolicy: (policy) => applied.push(policy),
  });
  expect(policies.isCurrent).toBeFalse();
  const readings = [policies.read()];
  policies.mayHaveChanged();
  readings.push(policies.read(), policies.read());
  policies.mayHaveChanged();
  const [first, second, third] = reads;
  second?.resolve(policyOf("second"));
  await readings[1];
  expect(policies.isCurrent).toBeFalse();
  first?.resolve(policyOf("first"));
  third?.resolve(policyOf("third"));
  await Promise.all(readings);
  expect(applied).toEqual([policyOf("second"), policyOf("third")]);
  expect(policies.isCurrent).toBeFalse();
  const last = policies.read();
  reads[3]?.resolve(policyOf("last"));
  await last;
  expect(policies.isCurrent).toBeTrue();
  expect(applied.at(-1)).toEqual(policyOf("last"));
});
