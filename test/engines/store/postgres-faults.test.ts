import { afterAll, afterEach, expect, test } from "bun:test";
import { Unavailable } from "../../../src/contract/errors.ts";
import type { StateChange } from "../../../src/store/state-change.ts";
import { Pools } from "../../../src/store/postgres/connections/pools.ts";
import { openPostgres, type PostgresStores } from "../../../src/store/postgres/postgres-store.ts";
import { AT, KEY_ID, addPet, rex, resultOf } from "../../conformance/store-fixture.ts";
import { startPostgres } from "../../../harness/postgres.ts";
import { databaseAt } from "./postgres-database.ts";

const TIMEOUT_MS = 600;
/** The bound of the fastest rejection, and of the slowest, which can be slower on a busy machine. */
const AT_ONCE_MS = 50;
const WITHOUT_WAITING_MS = TIMEOUT_MS / 2;
/** From the return of the server to the first response. */
const BACK_WITHIN_MS = 1_000;

const server = await startPostgres();
afterEach(async () => {
  server.thaw();
  if (!server.isRunning) await server.restart();
});
afterAll(() => server.stop());

/** An instance that records its state changes. */
async function openInstance(options: { maxQueued?: number } = {}) {
  const changes: StateChange[] = [];
  let waiting = Promise.withResolvers<void>();
  const opened = await openPostgres(server.url, {
    timeoutMs: TIMEOUT_MS,
    ...options,
    onStateChange(change) {
      changes.push(change);
      waiting.resolve();
      waiting = Promise.withResolvers();
    },
  });
  return {
    ...opened,
    changes,
    async reached(state: StateChange["state"]) {
      while (changes.at(-1)?.state !== state) await waiting.promise;
    },
    [Symbol.asyncDispose]: opened.close,
  };
}

/** How long it takes until the work is rejected as Unavailable; every other outcome fails the test. */
async function rejectedAfterMs(work: () => unknown): Promise<number> {
  const before = performance.now();
  const failure = await Promise.try(work).then(
    () => new Error("it succeeded"),
    (error: unknown) => error,
  );
  if (!(failure instanceof Unavailable)) throw failure;
  return performance.now() - before;
}

function expectAtOnce(times: readonly number[]): void {
  expect(Math.min(...times)).toBeLessThan(AT_ONCE_MS);
  expect(Math.max(...times)).toBeLessThan(WITHOUT_WAITING_MS);
}

/** Opens all connections, so that a query hangs and not the connection. */
async function connectAll({ store }: PostgresStores): Promise<bigint> {
  const [id = 0n, ...others] = await Promise.all(Array.from({ length: 10 }, () => addPet(store)));
  await Promise.all(others.map((other) => store.getPet(other)));
  await Promise.all(others.map((other) => store.placeOrder({ keyId: KEY_ID, petId: other }, AT)));
  return id;
}

const fiveTimes = <T>(work: T): T[] => Array.from({ length: 5 }, () => work);

/** Every method of the stores. */
function allCalls({ store, keys }: PostgresStores): (() => unknown)[] {
  return [
    () => store.listPets({ limit: 20 }),
    () => store.getPet(1n),
    () => store.createPet(rex, AT),
    () => store.createPet(rex, AT, { keyId: 1, idempotencyKey: "k", fingerprint: "f" }),
    () => store.placeOrder({ keyId: KEY_ID, petId: 1n }, AT),
    () => store.updateOrder(KEY_ID, 1n, "completed"),
    () => keys.findCredential("0".repeat(64)),
    () => keys.changesSince(0),
  ];
}

test("frozen: every call is rejected within the timeout, then at once; after the thaw the store recovers by itself", async () => {
  await using stores = await openInstance();
  const id = await connectAll(stores);
  server.freeze();
  const first = await Promise.all(allCalls(stores).map(rejectedAfterMs));
  expect(Math.max(...first)).toBeLessThan(TIMEOUT_MS + WITHOUT_WAITING_MS);
  expectAtOnce(await Promise.all(allCalls(stores).map(rejectedAfterMs)));
  const thawedAt = performance.now();
  server.thaw();
  await stores.reached("up");
  expect(performance.now() - thawedAt).toBeLessThan(BACK_WITHIN_MS);
  expect((await stores.store.getPet(id))?.name).toBe("Rex");
  await addPet(stores.store);
  expect(stores.changes.map(({ state }) => state)).toEqual(["down", "up"]);
});

test("frozen: after one call has timed out, the other pools reject at once", async () => {
  await using stores = await openInstance();
  await connectAll(stores);
  server.freeze();
  await rejectedAfterMs(() => stores.store.getPet(1n));
  // By now a probe has failed as well.
  await rejectedAfterMs(() => stores.store.createPet(rex, AT));
  expectAtOnce(await Promise.all(allCalls(stores).map(rejectedAfterMs)));
  server.thaw();
  await stores.reached("up");
  expect(stores.changes.map(({ state }) => state)).toEqual(["down", "up"]);
  await addPet(stores.store);
});

test("frozen before the first connection: connecting is bounded by the same timeout", async () => {
  await using stores = await openInstance();
  server.freeze();
  const first = await Promise.all(allCalls(stores).map(rejectedAfterMs));
  expect(Math.max(...first)).toBeLessThan(TIMEOUT_MS + WITHOUT_WAITING_MS);
  server.thaw();
  await stores.reached("up");
});

test("frozen: a query that finds the queue full is rejected at once", async () => {
  await using stores = await openInstance({ maxQueued: 10 });
  await connectAll(stores);
  server.freeze();
  const reads = Array.from({ length: 10 }, () => rejectedAfterMs(() => stores.store.getPet(1n)));
  expectAtOnce(await Promise.all(fiveTimes(() => stores.store.getPet(1n)).map(rejectedAfterMs)));
  // Reads and writes have queues of their own.
  const writes = Array.from({ length: 10 }, () => rejectedAfterMs(() => stores.store.createPet(rex, AT)));
  expectAtOnce(await Promise.all(fiveTimes(() => stores.store.createPet(rex, AT)).map(rejectedAfterMs)));
  expect(Math.min(...(await Promise.all([...reads, ...writes])))).toBeGreaterThan(WITHOUT_WAITING_MS);
  server.thaw();
  await stores.reached("up");
});

test("frozen, with default options: calls are rejected after 2,000 ms, and more than 4,096 in a queue at once", async () => {
  const stores = await openPostgres(server.url);
  await connectAll(stores);
  server.freeze();
  const reads = Array.from({ length: 4_096 }, () => rejectedAfterMs(() => stores.store.getPet(1n)));
  expect(await rejectedAfterMs(() => stores.store.getPet(1n))).toBeLessThan(WITHOUT_WAITING_MS);
  const times = await Promise.all(reads);
  expect(Math.min(...times)).toBeGreaterThan(1_900);
  expect(Math.max(...times)).toBeLessThan(3_000);
  await stores.close();
});

test("frozen: close does not wait longer than the timeout", async () => {
  const stores = await openInstance();
  await connectAll(stores);
  server.freeze();
  const rejected = Promise.all(allCalls(stores).map(rejectedAfterMs));
  const before = performance.now();
  await stores.close();
  expect(performance.now() - before).toBeLessThan(TIMEOUT_MS + WITHOUT_WAITING_MS);
  await rejected;
  server.thaw();
});

test("killed: every call is rejected at once; after the restart the store recovers by itself, with all committed writes", async () => {
  await using stores = await openInstance();
  const ids = [await addPet(stores.store), await addPet(stores.store)];
  await server.kill();
  for (let round = 0; round < 3; round++) {
    const times: number[] = [];
    for (const work of allCalls(stores)) times.push(await rejectedAfterMs(work));
    expectAtOnce(times);
  }
  await server.restart();
  const restartedAt = performance.now();
  await stores.reached("up");
  expect(performance.now() - restartedAt).toBeLessThan(BACK_WITHIN_MS);
  for (const id of ids) expect((await stores.store.getPet(id))?.id).toBe(id);
  expect(await addPet(stores.store)).toBeGreaterThan(ids[1] ?? 0n);
});

test("killed in the middle of writes: with an Idempotency-Key each pet is created once, however often it is repeated", async () => {
  await using stores = await openInstance();
  await stores.store.createPet(rex, AT);
  const before = (await allIds(stores)).length;
  const restarted = Promise.withResolvers<void>();
  let rejections = 0;
  const creations = Array.from({ length: 1_000 }, async (_, i) => {
    const request = { keyId: 2, idempotencyKey: `kill ${i}`, fingerprint: "f" };
    for (;;) {
      try {
        return resultOf(await stores.store.createPet({ ...rex, name: `${i}` }, AT, request)).id;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        rejections++;
        await restarted.promise;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  });
  await Promise.race(creations);
  await server.kill();
  await server.restart();
  restarted.resolve();
  const ids = await Promise.all(creations);
  expect(rejections).toBeGreaterThan(0);
  expect(new Set(ids).size).toBe(1_000);
  expect((await allIds(stores)).length - before).toBe(1_000);
});

async function allIds({ store }: PostgresStores): Promise<bigint[]> {
  const { items } = await store.listPets({ limit: 10_000 });
  return items.map(({ id }) => id);
}

test("a restart of the server between two requests fails none of them", async () => {
  await using stores = await openInstance();
  const id = await addPet(stores.store);
  await server.restart();
  expect((await stores.store.getPet(id))?.id).toBe(id);
  expect(stores.changes).toEqual([]);
});

test("a lock that another session holds rejects the writes that need it, in time, and nothing else", async () => {
  await using database = databaseAt(server.url);
  await using stores = await openInstance();
  const petId = await addPet(stores.store);
  await database.sql.begin(async (tx) => {
    await tx`LOCK TABLE orders`;
    expect(await rejectedAfterMs(() => stores.store.placeOrder({ keyId: KEY_ID, petId }, AT))).toBeLessThan(
      TIMEOUT_MS,
    );
    expect((await stores.store.getPet(petId))?.status).toBe("available");
    await addPet(stores.store);
  });
  resultOf(await stores.store.placeOrder({ keyId: KEY_ID, petId }, AT));
  expect(stores.changes).toEqual([]);
});

test("more orders than can be placed in time: the rest are rejected, and the server does not count as down", async () => {
  await using database = databaseAt(server.url);
  await using stores = await openInstance();
  const petId = await connectAll(stores);
  await database.sql.begin(async (tx) => {
    await tx`LOCK TABLE orders`;
    const orders = Array.from({ length: 20 }, () =>
      rejectedAfterMs(() => stores.store.placeOrder({ keyId: KEY_ID, petId }, AT)),
    );
    expect(Math.max(...(await Promise.all(orders)))).toBeLessThan(TIMEOUT_MS + WITHOUT_WAITING_MS);
    expect(await addPet(stores.store)).toBeGreaterThan(petId);
  });
  resultOf(await stores.store.placeOrder({ keyId: KEY_ID, petId }, AT));
  expect(
    (await stores.store.listOrders(KEY_ID, { limit: 100 })).items.filter((order) => order.petId === petId),
  ).toHaveLength(1);
  expect(stores.changes).toEqual([]);
});

test("no write resolves before its commit: while commits block, writes are rejected and reads succeed", async () => {
  await using database = databaseAt(server.url);
  await using stores = await openInstance();
  const petId = await connectAll(stores);
  await database.sql.unsafe(`
    CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT OR UPDATE ON pets DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`);
  await database.sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(4711)`;
    const writes = [
      () => stores.store.createPet(rex, AT),
      () => stores.store.createPet(rex, AT, { keyId: 3, idempotencyKey: "blocked", fingerprint: "f" }),
      () => stores.store.placeOrder({ keyId: KEY_ID, petId }, AT),
    ].map(rejectedAfterMs);
    expect((await stores.store.getPet(petId))?.status).toBe("available");
    await Promise.all(writes);
    expect((await stores.store.getPet(petId))?.status).toBe("available");
  });
  await stores.reached("up");
  await database.sql`DROP FUNCTION wait_at_commit CASCADE`;
  await addPet(stores.store);
});

test("an instance that is paused in the middle of a transaction blocks the others for less than the timeout", async () => {
  await using stores = await openInstance();
  const petId = await addPet(stores.store);
  const paused = new Pools(server.url, { timeoutMs: TIMEOUT_MS });
  const locked = Promise.withResolvers<void>();
  const transaction = paused.writes.transaction(async (tx) => {
    await tx`SELECT FROM pets WHERE id = ${petId} FOR UPDATE`;
    locked.resolve();
    await new Promise(() => {});
  });
  await locked.promise;
  const waited = await rejectedAfterMs(() => transaction);
  expect(waited).toBeLessThan(TIMEOUT_MS);
  resultOf(await stores.store.placeOrder({ keyId: KEY_ID, petId }, AT));
  await paused.close();
});

test("an error in a statement is not Unavailable, and the server does not count as down", async () => {
  await using stores = await openInstance();
  const failure = await stores.store.createPet({ ...rex, name: "" }, AT).catch((error: unknown) => error);
  expect(failure).not.toBeInstanceOf(Unavailable);
  expect(String(failure)).toContain("violates check constraint");
  expect(stores.changes).toEqual([]);
});
