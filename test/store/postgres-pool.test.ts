import { SQL } from "bun";
import { expect, test } from "bun:test";
import { OutcomeUnknown, Overloaded, Unavailable } from "../../src/api/errors.ts";
import { ConnectionPool, type ConnectionPoolOptions } from "../../src/store/postgres/connection-pool.ts";
import { advance, settle, useFakeTimers } from "../fake-timers.ts";

useFakeTimers();

const serverError = (errno: string) =>
  new SQL.PostgresError(`error ${errno}`, { code: "ERR_POSTGRES_SERVER_ERROR", errno });
const clientError = (name: string) =>
  new SQL.PostgresError(name.toLowerCase(), { code: `ERR_POSTGRES_${name}` });
const CLOSED = clientError("CONNECTION_CLOSED");

/** A pool whose connections begin a transaction when `begun` resolves, and that records what happens. */
function openPool({ writes = true, ...options }: Partial<ConnectionPoolOptions> & { writes?: boolean } = {}) {
  const events: unknown[] = [];
  const state = { begun: Promise.resolve(), failure: undefined as Error | undefined, standby: false };
  let connections = 0;
  const pool = new ConnectionPool({
    timeoutMs: 1_000,
    maxQueued: 2,
    probeEveryMs: 200,
    onStateChange: (change) => events.push(change),
    onResponse: (ms) => events.push(`${ms} ms`),
    onProbeFailure: (cause) => events.push(`probe: ${cause}`),
    newConnections() {
      const name = `connections ${++connections}`;
      const connection = { name, release: () => events.push("released") };
      return {
        name,
        begin: async (work: (tx: unknown) => unknown) => work((await state.begun, connection)),
        reserve: () => state.begun.then(() => connection),
        close: async ({ timeout }: { timeout: number }) =>
          void events.push(timeout === 0 ? `closed ${name}` : "waited for queries"),
      } as never;
    },
    async probe() {
      if (state.failure) throw state.failure;
    },
    confirm: () => undefined,
    ...(writes && {
      async waitsForStandby() {
        events.push("asked for standbys");
        return state.standby;
      },
    }),
    ...options,
  });
  return { pool, events, state, takeEvents: () => events.splice(0) };
}

const after = (ms: number, error?: unknown) => async () => {
  await Bun.sleep(ms);
  if (error !== undefined) throw error;
  return "done";
};
const atOnce = async () => "done";
const never = () => new Promise<never>(() => {});

/** What becomes of the work in so much time. */
async function outcome(ms: number, work: Promise<unknown>): Promise<unknown> {
  let found: unknown = "waiting";
  const set = (value: unknown) => void (found = value);
  work.then(set, set);
  for (let passed = 0; passed < ms; passed += 50) await advance(Math.min(50, ms - passed));
  await settle();
  return found;
}

const unavailable = (reason: string) => expect.objectContaining({ message: `PostgreSQL: ${reason}` });
const down = (cause: unknown) => ({ state: "down", cause });
const late = (ms: number) => expect.objectContaining({ message: `no response within ${ms} ms` });

test("a query without a response ends at the timeout, the next ones fail at once, and probes every 200 ms find the end", async () => {
  const { pool, takeEvents, state } = openPool();
  expect(await outcome(10, pool.query(after(10)))).toBe("done");
  expect(takeEvents()).toEqual(["10 ms"]);
  state.failure = new Error("refused");
  const lost = pool.query(never);
  expect(await outcome(999, lost)).toBe("waiting");
  const error = await outcome(1, lost);
  expect(error).toEqual(unavailable("no response within 1000 ms"));
  expect(error).not.toBeInstanceOf(OutcomeUnknown);
  expect(takeEvents()).toEqual([
    "asked for standbys",
    "closed connections 1",
    down(late(1_000)),
    "probe: Error: refused",
  ]);
  const rejected = await outcome(0, pool.query(atOnce));
  expect(rejected).toBeInstanceOf(Unavailable);
  expect(rejected).toMatchObject({ message: "PostgreSQL is down", cause: late(1_000) });
  expect(pool.queueLength).toBe(0);
  // The first of several causes counts.
  pool.leave(new Error("replaced"));
  await outcome(199, Promise.resolve());
  expect(takeEvents()).toEqual([]);
  await advance(1);
  expect(takeEvents()).toEqual(["probe: Error: refused"]);
  state.failure = undefined;
  await advance(200);
  expect(takeEvents()).toEqual([{ state: "up", afterMs: 400 }]);
  await advance(1_000);
  expect(
    await outcome(
      0,
      pool.query(async (sql) => Reflect.get(sql, "name")),
    ),
  ).toBe("connections 2");
  expect(takeEvents()).toEqual(["0 ms"]);
});

test("as many queries wait as the queue has room for", async () => {
  const { pool } = openPool();
  const waiting = [pool.query(after(100)), pool.query(after(100))];
  expect(pool.queueLength).toBe(2);
  const rejected = await outcome(0, pool.query(atOnce));
  expect(rejected).toBeInstanceOf(Overloaded);
  expect(rejected).toMatchObject({ message: "the queue for PostgreSQL is full (2 queries)" });
  expect(await outcome(100, Promise.all(waiting))).toEqual(["done", "done"]);
  expect(await outcome(0, pool.query(atOnce))).toBe("done");
});

test("a pool that closes waits for what it has accepted, takes nothing more and reports no end of an outage", async () => {
  const { pool, takeEvents } = openPool();
  const accepted = [pool.query(after(300)), pool.query(after(200))];
  const closing = pool.close();
  expect(await outcome(0, pool.query(atOnce))).toMatchObject({ message: "the store is closed" });
  pool.reportUnreachable(new Error("refused"));
  pool.leave(new Error("replaced"));
  expect(await outcome(299, closing)).toBe("waiting");
  expect(takeEvents()).toEqual(["200 ms"]);
  expect(await outcome(1, closing)).toBeUndefined();
  expect(await Promise.all(accepted)).toEqual(["done", "done"]);
  expect(takeEvents()).toEqual(["300 ms", "closed connections 1"]);

  const { pool: other } = openPool();
  const last = other.query(after(100));
  expect(await outcome(99, other.close())).toBe("waiting");
  expect(await outcome(1, last)).toBe("done");

  // One closes in the middle of a probe, and one before the next.
  for (const ms of [50, 150]) {
    let probes = 0;
    const failing = openPool({ probe: async () => void (await after(100, `probe ${++probes}`)()) });
    failing.pool.leave(new Error("replaced"));
    await advance(ms);
    await failing.pool.close();
    failing.takeEvents();
    await advance(1_000);
    expect([probes, failing.takeEvents()]).toEqual([1, []]);
  }
});

test("a report that the server is unreachable counts unless a response came within half of the timeout", async () => {
  const { pool, takeEvents } = openPool();
  expect(await outcome(0, pool.query(atOnce))).toBe("done");
  await advance(499);
  pool.reportUnreachable(new Error("refused"));
  expect(takeEvents()).toEqual(["0 ms"]);
  await advance(1);
  pool.reportUnreachable(new Error("refused"));
  expect(takeEvents()).toEqual(["closed connections 1", down(new Error("refused"))]);
  await settle();
  expect(takeEvents()).toEqual([{ state: "up", afterMs: 0 }]);
});

test("a server that responds is left, and work on it has an unknown outcome", async () => {
  const { pool, takeEvents } = openPool();
  const work = pool.query(after(100));
  pool.leave(new Error("replaced"));
  const error = await outcome(100, work);
  expect(error).toBeInstanceOf(OutcomeUnknown);
  expect(error).toMatchObject({ message: "the connections to PostgreSQL were replaced" });
  expect(takeEvents().slice(0, 2)).toEqual(["closed connections 1", down(new Error("replaced"))]);
});

test("a response is used only after a comparison that is due", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { pool } = openPool({ confirm: () => promise });
  const work = pool.query(async () => "done");
  expect(await outcome(100, work)).toBe("waiting");
  resolve();
  expect(await outcome(0, work)).toBe("done");
});

test.each(["transaction", "onConnection"] as const)(
  "%s: half of the timeout is for its begin, and half for the rest",
  async (method) => {
    const { pool, state, takeEvents } = openPool();
    const quick = pool[method](after(499));
    expect(await outcome(499, quick)).toBe("done");
    expect(takeEvents()).toEqual([...(method === "onConnection" ? ["released"] : []), "499 ms"]);
    const lost = pool[method](never);
    expect(await outcome(499, lost)).toBe("waiting");
    const error = await outcome(1, lost);
    expect(error).toBeInstanceOf(OutcomeUnknown);
    expect(error).toEqual(unavailable("no response within 500 ms"));
    expect(takeEvents()).toContainEqual(down(late(500)));
    await advance(1_000);

    const { promise, resolve } = Promise.withResolvers<void>();
    state.begun = promise;
    let hasBegun = false;
    const waiting = pool[method](async () => void (hasBegun = true));
    expect(await outcome(499, waiting)).toBe("waiting");
    const notBegun = await outcome(1, waiting);
    expect(notBegun).not.toBeInstanceOf(OutcomeUnknown);
    expect(notBegun).toEqual(unavailable("no response within 500 ms"));
    resolve();
    await settle();
    expect(hasBegun).toBeFalse();
  },
);

test("a transaction that cannot begin does not count as an outage while other queries have responses", async () => {
  const { pool, state, takeEvents } = openPool({ maxQueued: 9 });
  state.begun = never();
  const transaction = pool.transaction(async () => {});
  await advance(1);
  expect(await outcome(0, pool.query(atOnce))).toBe("done");
  takeEvents();
  expect(await outcome(499, transaction)).toEqual(unavailable("no response within 500 ms"));
  expect(takeEvents()).toEqual(["asked for standbys"]);
  const next = pool.transaction(async () => {});
  await outcome(500, next);
  expect(takeEvents()).toContainEqual(down(late(500)));
});

test("a transaction that the server ends because it stood still is run once more", async () => {
  const { pool, takeEvents } = openPool();
  let attempts = 0;
  const idled = async () => {
    if (++attempts % 3 !== 0) throw serverError("25P03");
    return attempts;
  };
  expect(await outcome(0, pool.transaction(idled))).toEqual(unavailable("error 25P03"));
  expect(attempts).toBe(2);
  expect(await outcome(0, pool.transaction(idled))).toBe(3);
  const deadlock = () => Promise.reject((attempts++, serverError("40P01")));
  expect(await outcome(0, pool.transaction(deadlock))).toEqual(unavailable("error 40P01"));
  expect(attempts).toBe(4);
  expect(takeEvents()).toEqual(["0 ms", "0 ms", "0 ms", "0 ms"]);
});

test("a transaction whose connection is lost has an unknown outcome, one that the server rejects has none", async () => {
  const { pool, takeEvents, state } = openPool();
  const lost = await outcome(50, pool.transaction(after(50, CLOSED)));
  expect(lost).toBeInstanceOf(OutcomeUnknown);
  expect(lost).toEqual(unavailable("connection_closed"));
  expect(takeEvents()).toEqual([]);
  const error = serverError("23505");
  expect(await outcome(50, pool.transaction(after(50, error)))).toBe(error);
  expect(takeEvents()).toEqual(["50 ms"]);
  state.begun = Promise.reject(CLOSED);
  const notBegun = await outcome(0, pool.transaction(atOnce));
  expect(notBegun).toEqual(unavailable("connection_closed"));
  expect(notBegun).not.toBeInstanceOf(OutcomeUnknown);
});

test("a write that fails after more than 100 ms asks whether commits wait for a standby", async () => {
  const locked = serverError("55P03");
  for (const [ms, error, isAsked] of [
    [100, locked, false],
    [101, locked, true],
    [101, CLOSED, true],
    [101, serverError("57014"), false],
    [101, new Unavailable("PostgreSQL", { cause: locked }), true],
  ] as const) {
    const { pool, takeEvents } = openPool();
    await advance(200);
    expect(await outcome(ms, pool.query(after(ms, error)))).toBeInstanceOf(Unavailable);
    expect(takeEvents().includes("asked for standbys")).toBe(isAsked);
  }
  const reads = openPool({ writes: false });
  expect(await outcome(1_000, reads.pool.query(never))).toEqual(unavailable("no response within 1000 ms"));
});

test("while commits wait for a standby, a write fails, its lost connections are replaced, and the server is not down", async () => {
  const { pool, takeEvents, state } = openPool();
  state.standby = true;
  const locked = await outcome(101, pool.query(after(101, serverError("55P03"))));
  expect(locked).toEqual(unavailable("commits wait for a synchronous standby (error 55P03)"));
  expect(takeEvents()).toEqual(["101 ms", "asked for standbys"]);
  const lost = await outcome(500, pool.transaction(never));
  expect(lost).toBeInstanceOf(OutcomeUnknown);
  expect(lost).toEqual(unavailable("commits wait for a synchronous standby (no response within 500 ms)"));
  expect(takeEvents()).toEqual(["asked for standbys", "closed connections 1"]);
  const both = [pool.query(never), pool.query(never)];
  await outcome(1_000, Promise.allSettled(both));
  // They share the connections, which are replaced once.
  expect(takeEvents()).toEqual(["asked for standbys", "asked for standbys", "closed connections 2"]);
});

const OUTCOMES: readonly [error: Error, outcome: "down" | "unavailable" | "as it is"][] = [
  [serverError("08006"), "unavailable"],
  [serverError("25001"), "down"],
  [serverError("25006"), "down"],
  [serverError("25P02"), "as it is"],
  [serverError("28P01"), "down"],
  [serverError("3D000"), "down"],
  [serverError("40P01"), "unavailable"],
  [serverError("42501"), "unavailable"],
  [serverError("42P01"), "as it is"],
  [serverError("53300"), "unavailable"],
  [serverError("55000"), "down"],
  [serverError("55P03"), "unavailable"],
  [serverError("57014"), "unavailable"],
  [serverError("57P03"), "down"],
  [serverError("58030"), "unavailable"],
  [serverError("F0000"), "down"],
  [serverError("23505"), "as it is"],
  [CLOSED, "unavailable"],
  [clientError("CONNECTION_REFUSED"), "down"],
  [clientError("CONNECTION_TIMEOUT"), "down"],
  [clientError("TLS_NOT_AVAILABLE"), "down"],
  [clientError("UNSUPPORTED_AUTHENTICATION_METHOD"), "down"],
  [clientError("SYNTAX_ERROR"), "as it is"],
  [Object.assign(new Error("expired"), { code: "CERT_HAS_EXPIRED", errno: 0 }), "down"],
  [Object.assign(new Error("a code alone"), { code: "E" }), "as it is"],
  [new Error("Unable to access caFile path: /ca.pem"), "down"],
  [new TypeError("a bug"), "as it is"],
];

test("an error shows that the server is down, that the same query can succeed later, or a fault", async () => {
  const found = OUTCOMES.map(async ([error]) => {
    const { pool, events } = openPool();
    const thrown = await outcome(
      0,
      pool.query(() => Promise.reject(error)),
    );
    const isDown = events.some((event) => event !== "0 ms");
    return [error, isDown ? "down" : thrown === error ? "as it is" : "unavailable"];
  });
  expect(await Promise.all(found)).toEqual(OUTCOMES.map(([error, fate]) => [error, fate]));
});
