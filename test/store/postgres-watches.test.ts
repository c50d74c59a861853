import { SQL } from "bun";
import { expect, test } from "bun:test";
import { Overloaded, Unavailable } from "../../src/api/errors.ts";
import { ReplacementWatch } from "../../src/store/postgres/replacement-watch.ts";
import { type Replication, requiredStandbys } from "../../src/store/postgres/replication.ts";
import { RowTransactions } from "../../src/store/postgres/row-transactions.ts";
import { StandbyWatch } from "../../src/store/postgres/standby-watch.ts";
import { advance, finish, useFakeTimers } from "../fake-timers.ts";

useFakeTimers();

const REPLICATION: Replication = {
  synchronousStandbyNames: "ANY 1 (a, b)",
  waitsForStandbys: true,
  connectedStandbys: [],
  waitingCommits: 0,
};

/** A watch of standbys. What it reads takes `ms`. */
function watchStandbys() {
  const changes: unknown[] = [];
  const state = { waitingCommits: 0, ms: 0, reads: 0, isDown: false };
  const watch = new StandbyWatch({
    async read() {
      state.reads++;
      if (state.ms > 0) await Bun.sleep(state.ms);
      if (state.isDown) throw new Unavailable("down");
      return { ...REPLICATION, waitingCommits: state.waitingCommits };
    },
    onChange: (change) => changes.push(change),
  });
  return { watch, changes, state };
}

test("commits wait for a standby from the first one that does, and PostgreSQL is asked twice a second until none does", async () => {
  const { watch, changes, state } = watchStandbys();
  await advance(100);
  expect(await watch.waits()).toBeFalse();
  state.waitingCommits = 1;
  expect(await watch.waits()).toBeTrue();
  const { synchronousStandbyNames, connectedStandbys } = REPLICATION;
  expect(changes).toEqual([{ state: "waiting", synchronousStandbyNames, connectedStandbys }]);
  expect(await watch.waits()).toBeTrue();
  expect(state.reads).toBe(2);
  await advance(499);
  expect(state.reads).toBe(2);
  await advance(1);
  state.isDown = true;
  await advance(500);
  expect(state.reads).toBe(4);
  expect(await watch.waits()).toBeTrue();
  state.isDown = false;
  state.waitingCommits = 0;
  await advance(500);
  expect(changes.slice(1)).toEqual([{ state: "released", afterMs: 1_500 }]);
  expect(await watch.waits()).toBeFalse();
  await advance(5_000);
  expect(state.reads).toBe(6);
  // A later outage is another one, and closing ends its checks.
  state.waitingCommits = 1;
  expect(await watch.waits()).toBeTrue();
  await watch.close();
  await advance(5_000);
  expect([state.reads, changes.length]).toEqual([7, 3]);
});

test("several writes ask PostgreSQL once about standbys, and wait 300 ms for that", async () => {
  const { watch, state } = watchStandbys();
  state.ms = 299;
  state.waitingCommits = 1;
  expect(await finish(Promise.all([watch.waits(), watch.waits()]))).toEqual([true, true]);
  expect(state.reads).toBe(1);
  await watch.close();
  const slow = watchStandbys();
  slow.state.ms = 301;
  slow.state.waitingCommits = 1;
  expect(await finish(slow.watch.waits())).toBeFalse();
  await advance(1);
  expect(await slow.watch.waits()).toBeTrue();
  await slow.watch.close();
  const down = watchStandbys();
  down.state.isDown = true;
  expect(await down.watch.waits()).toBeFalse();
  expect(down.changes).toEqual([]);
});

test.each<[setting: string, needed: number, candidates: number]>([
  ["*", 1, 3],
  ["a", 1, 1],
  ["b, C", 1, 1],
  ["2 (a, c, x)", 2, 2],
  ["ANY 2 (a, b, y)", 2, 1],
  ["first 3 (*)", 3, 3],
  [' ANY 1 ( "c d" , "say ""hi""" ) ', 1, 0],
  ['"A", "x""y"', 1, 2],
])(
  "of the setting %s, %i standbys are needed and %i are connected",
  (synchronousStandbyNames, needed, candidates) => {
    const connectedStandbys = ["A", "c", 'x"Y'];
    const found = { ...REPLICATION, synchronousStandbyNames, connectedStandbys };
    expect(requiredStandbys(found)).toEqual({ needed, candidates });
    expect(requiredStandbys({ ...found, waitsForStandbys: false })).toEqual({ needed: 0, candidates: 0 });
  },
);

/** A watch for a replaced primary. A comparison takes `ms`. */
function watchReplacements() {
  const state = { ms: 0, comparisons: 0, isOutage: false, cause: undefined as Error | undefined };
  const replaced: Error[] = [];
  const watch = new ReplacementWatch({
    async find() {
      state.comparisons++;
      await Bun.sleep(state.ms);
      return state.cause;
    },
    isOutage: () => state.isOutage,
    onReplaced: (cause) => replaced.push(cause),
  });
  return { watch, state, replaced };
}

test("other processes are asked once a second whether the primary was replaced, unless there is an outage", async () => {
  const { watch, state, replaced } = watchReplacements();
  await advance(999);
  expect(state.comparisons).toBe(0);
  await advance(1);
  expect(state.comparisons).toBe(1);
  state.isOutage = true;
  await advance(1);
  await advance(5_000);
  expect(state.comparisons).toBe(1);
  state.isOutage = false;
  state.cause = new Error("replaced");
  await advance(1_000);
  await advance(1);
  expect(state.comparisons).toBe(2);
  expect(replaced).toEqual([state.cause]);
  await watch.close();
  await advance(5_000);
  expect(state.comparisons).toBe(2);
});

test("a result is used up to 1,500 ms after the last comparison began; then another one comes first, for 400 ms", async () => {
  const { watch, state, replaced } = watchReplacements();
  await watch.close();
  await advance(1_500);
  expect(watch.compareIfDue()).toBeUndefined();
  await advance(1);
  state.ms = 399;
  state.cause = new Error("replaced");
  const both = [watch.compareIfDue(), watch.compareIfDue()];
  expect(both).toEqual([expect.any(Promise), expect.any(Promise)]);
  await finish(Promise.all(both));
  expect(state.comparisons).toBe(1);
  expect(replaced).toHaveLength(1);
  await advance(1_500 - 399);
  expect(watch.compareIfDue()).toBeUndefined();
  await advance(1);
  state.ms = 1_000;
  const late = watch.compareIfDue();
  let isOver = false;
  void late?.then(() => (isOver = true));
  await advance(399);
  expect(isOver).toBeFalse();
  await advance(1);
  expect(isOver).toBeTrue();
  expect(replaced).toHaveLength(1);
  await advance(600);
  expect(replaced).toHaveLength(2);
});

const LOCKED = new Unavailable("PostgreSQL: locked", {
  cause: new SQL.PostgresError("locked", { code: "ERR_POSTGRES_SERVER_ERROR", errno: "55P03" }),
});

function rowTransactions({ isWaiting = false } = {}) {
  const state = { attempts: 0, failures: Infinity, error: LOCKED as Error };
  const transactions = new RowTransactions(
    {
      async transaction(work) {
        if (++state.attempts <= state.failures) throw state.error;
        return work(null as never);
      },
    },
    { maxQueued: 2, timeoutMs: 1_000, waitsForStandby: async () => isWaiting },
  );
  return { transactions, state };
}

test("a transaction on a locked row is tried every 10 ms for half of the timeout", async () => {
  const { transactions, state } = rowTransactions();
  state.failures = 3;
  expect(await finish(transactions.run("pet 7", async () => "done"))).toBe("done");
  expect([state.attempts, performance.now()]).toEqual([4, 30]);
  state.failures = Infinity;
  const failure = (of: RowTransactions, row: string) =>
    finish(of.run(row, async () => "done").catch((error: unknown) => error));
  const locked = await failure(transactions, "pet 7");
  expect(locked).toBeInstanceOf(Unavailable);
  expect(locked).toMatchObject({ message: "the pet 7 is locked" });
  // The first attempt at 30 ms, the last one at 530 ms.
  expect(state.attempts).toBe(4 + 51);
  state.error = new Unavailable("PostgreSQL is down");
  expect(await failure(transactions, "pet 7")).toBe(state.error);
  expect(state.attempts).toBe(4 + 52);
  const waiting = rowTransactions({ isWaiting: true });
  expect(await failure(waiting.transactions, "order 7")).toMatchObject({
    message: "commits wait for a synchronous standby (the order 7 is locked)",
  });
});

test("the transactions of a row take turns, those of another row do not wait, and the queue has a bound", async () => {
  const { transactions, state } = rowTransactions();
  state.failures = 0;
  const order: string[] = [];
  const take = (name: string, ms: number) => async () => {
    order.push(`${name} begins`);
    await Bun.sleep(ms);
    order.push(`${name} ends`);
  };
  const run = (row: string, name: string, ms: number) => transactions.run(row, take(name, ms));
  const works = [run("pet 1", "first", 20), run("pet 1", "second", 20)];
  await expect(run("pet 2", "rejected", 1)).rejects.toThrow(new Overloaded("2 writes wait for locked rows"));
  await advance(20);
  works.push(run("pet 1", "third", 20));
  await finish(Promise.all(works.splice(0, 1)));
  await advance(20);
  works.push(run("pet 2", "other", 10));
  await finish(Promise.all(works));
  const expected = ["first", "second", "third begins", "other", "third ends"];
  expect(order).toEqual(
    expected.flatMap((name) => (name.includes(" ") ? name : [`${name} begins`, `${name} ends`])),
  );
});
