import { afterAll, afterEach, expect, test } from "bun:test";
import { Unavailable } from "../../../src/api/errors.ts";
import type { StateChange } from "../../../src/domain/ports/stores.ts";
import { Pools } from "../../../src/store/postgres/pools.ts";
import { Primary } from "../../../src/store/postgres/primary.ts";
import { openPostgres, type PostgresStores } from "../../../src/store/postgres/open-postgres.ts";
import { AT, KEY_ID, addPet, rex, resultOf } from "../../conformance/store-fixture.ts";
import { BY, storedSecret } from "../../key-store-arguments.ts";
import { startPostgres } from "../../../trials/harness/postgres.ts";
import { databaseAt } from "./postgres-database.ts";
import { untilAvailable } from "../../timing.ts";

/** The timeout of stores whose PostgreSQL does not respond. */
const TIMEOUT_MS = 1_000;
/** The timeout of stores whose PostgreSQL responds, on a machine that may be busy. */
const PATIENT = { timeoutMs: 4_000 };

const server = await startPostgres();
afterEach(async () => {
  server.thaw();
  if (!server.isRunning) await server.restart();
});
afterAll(() => server.stop());

/** Stores that record their state changes. */
async function openStores(options: { maxQueued?: number; timeoutMs?: number } = {}) {
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

/**
 * Resolves when the work is rejected as Unavailable; every other outcome fails the test. `expect(…).rejects` would hold
 * up this process until then, and the calls would follow one another.
 */
async function rejected(work: () => unknown): Promise<void> {
  const outcome = await Promise.try(work).catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(Unavailable);
}

const STEP_MS = 10;

/** Rejects after so much time of this process: however long another one had the core, it counts as one step. */
async function passed(ms: number): Promise<never> {
  for (let step = 0; step < ms; step += STEP_MS) await Bun.sleep(STEP_MS);
  throw new Error(`it took more than ${ms} ms`);
}

const within = (ms: number, work: Promise<unknown>) => Promise.race([work, passed(ms)]);
const rejectedWithin = (ms: number, calls: readonly (() => unknown)[]) =>
  within(ms, Promise.all(calls.map(rejected)));
const rejectedAtOnce = (calls: readonly (() => unknown)[]) => rejectedWithin(TIMEOUT_MS / 4, calls);

/** Opens all connections, so that a query hangs and not the connection. */
function connectAll({ clientStore, operatorPetStore }: PostgresStores): Promise<bigint> {
  return untilAvailable(async () => {
    const [id = 0n, ...others] = await Promise.all(Array.from({ length: 10 }, () => addPet(clientStore)));
    await Promise.all(others.map((other) => operatorPetStore.getPet(other)));
    await Promise.all(others.map((other) => clientStore.placeOrder({ keyId: KEY_ID, petId: other }, AT)));
    return id;
  });
}

const times = <T>(count: number, work: T): T[] => Array.from({ length: count }, () => work);

/** Every method of the stores. */
function allCalls({ clientStore, operatorPetStore, keys }: PostgresStores): (() => unknown)[] {
  return [
    () => operatorPetStore.listPets({ limit: 20 }),
    () => operatorPetStore.getPet(1n),
    () => clientStore.createPet(rex, AT),
    () => clientStore.createPet(rex, AT, { keyId: 1, idempotencyKey: "k", fingerprint: "f" }),
    () => clientStore.placeOrder({ keyId: KEY_ID, petId: 1n }, AT),
    () => clientStore.updateOrder({ keyId: KEY_ID, id: 1n, status: "completed" }, AT),
    () => keys.findCredential("0".repeat(64)),
    () => keys.changesSince(0),
  ];
}

test("by default, calls are rejected after 2,000 ms, and more than 4,096 in a queue at once", async () => {
  const pools = new Pools(new Primary(server.url));
  expect(pools).toMatchObject({ timeoutMs: 2_000, maxQueued: 4_096 });
  await pools.close();
});

const SETTINGS = [
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "synchronous_commit",
  "default_transaction_isolation",
  "enable_seqscan",
  "plan_cache_mode",
  "jit",
];

test("PostgreSQL ends what takes too long before this process gives up", async () => {
  const opened = new Pools(new Primary(server.url), PATIENT);
  const { reads, creates, orders, writes, lookups, limits, operatorReads } = opened;
  const pools = { reads, creates, orders, writes, lookups, limits, operatorReads };
  const settings = Object.entries(pools).map(async ([name, pool]) => {
    const rows = await pool.query((sql) =>
      sql.unsafe(`SELECT ${SETTINGS.map((setting) => `current_setting('${setting}')`).join(", ")}`).values(),
    );
    return [name, rows.flat().join(", ")];
  });
  const common = "read committed, off, force_generic_plan, off";
  expect(Object.fromEntries(await Promise.all(settings))).toEqual({
    reads: `2s, 500ms, 1s, on, ${common}`,
    creates: `2s, 1500ms, 1s, on, ${common}`,
    orders: `2s, 500ms, 1s, on, ${common}`,
    writes: `2s, 500ms, 1s, on, ${common}`,
    lookups: `2s, 500ms, 1s, on, ${common}`,
    limits: `2s, 1500ms, 1s, off, ${common}`,
    operatorReads: `10s, 500ms, 1s, on, ${common}`,
  });
  await opened.close();
});

test("frozen: one call is rejected within the timeout, then all at once; after the thaw the store recovers by itself", async () => {
  await using stores = await openStores();
  const id = await connectAll(stores);
  stores.changes.length = 0;
  server.freeze();
  await rejectedWithin(2 * TIMEOUT_MS, [() => stores.operatorPetStore.getPet(1n)]);
  // By the end of this one a probe has failed as well, and the pools that have waited for nothing know of it.
  await rejectedWithin(2 * TIMEOUT_MS, [() => stores.clientStore.createPet(rex, AT)]);
  await rejectedAtOnce(allCalls(stores));
  // An outage reports each of its causes.
  expect(new Set(stores.changes.map(({ state }) => state))).toEqual(new Set(["down"]));
  server.thaw();
  await stores.reached("up");
  expect((await untilAvailable(async () => stores.operatorPetStore.getPet(id)))?.name).toBe("Rex");
  await untilAvailable(() => addPet(stores.clientStore));
});

test("frozen before the first connection: connecting is bounded by the same timeout", async () => {
  await using stores = await openStores();
  server.freeze();
  await rejectedWithin(2 * TIMEOUT_MS, allCalls(stores));
  server.thaw();
  await stores.reached("up");
});

test("frozen: a query that finds the queue full is rejected at once, and close does not wait for the others for longer than the timeout", async () => {
  const stores = await openStores({ maxQueued: 10 });
  await connectAll(stores);
  server.freeze();
  const read = () => stores.operatorPetStore.getPet(1n);
  const create = () => stores.clientStore.createPet(rex, AT);
  const reads = Promise.all(times(10, read).map(rejected));
  await rejectedAtOnce(times(5, read));
  // Reads and writes have queues of their own.
  const creates = Promise.all(times(10, create).map(rejected));
  await rejectedAtOnce(times(5, create));
  await within(2 * TIMEOUT_MS, stores.close());
  await Promise.all([reads, creates]);
});

test("killed: every call is rejected at once; after the restart the store recovers by itself, with all committed writes", async () => {
  await using stores = await openStores(PATIENT);
  const ids = [await addPet(stores.clientStore), await addPet(stores.clientStore)];
  await server.kill();
  for (let round = 0; round < 2; round++) {
    for (const work of allCalls(stores)) await rejectedWithin(PATIENT.timeoutMs / 4, [work]);
  }
  await server.restart();
  await stores.reached("up");
  for (const id of ids) expect((await stores.operatorPetStore.getPet(id))?.id).toBe(id);
  expect(await addPet(stores.clientStore)).toBeGreaterThan(ids[1] ?? 0n);
});

test("a restart of the server between two requests fails none of them", async () => {
  await using stores = await openStores(PATIENT);
  const id = await addPet(stores.clientStore);
  await server.restart();
  expect((await stores.operatorPetStore.getPet(id))?.id).toBe(id);
  expect(stores.changes).toEqual([]);
});

test("while another session holds a lock of the orders, they are rejected in time; pets and keys can be changed, and the server does not count as down", async () => {
  await using database = databaseAt(server.url);
  await using stores = await openStores({ timeoutMs: 2_000 });
  const { clientStore, operatorPetStore, keys } = stores;
  const petId = await connectAll(stores);
  const { id } = await keys.createKey({ name: "shop", plan: "free", createdAt: AT }, storedSecret(1), BY);
  const order = () => clientStore.placeOrder({ keyId: KEY_ID, petId }, AT);
  await database.sql.begin(async (tx) => {
    await tx`LOCK TABLE orders`;
    const rejections = rejectedWithin(4_000, times(20, order));
    await Bun.sleep(STEP_MS);
    // What waited for the lock would be rejected.
    await keys.updateKey(id, { revokedAt: AT }, BY);
    expect(await addPet(clientStore)).toBeGreaterThan(petId);
    expect((await operatorPetStore.getPet(petId))?.status).toBe("available");
    await rejections;
  });
  resultOf(await order());
  const { items } = await clientStore.listOrders(KEY_ID, { limit: 100 });
  expect(items.filter((each) => each.petId === petId)).toHaveLength(1);
  expect(stores.changes).toEqual([]);
});

test("no write resolves before its commit: while commits block, writes are rejected and reads succeed", async () => {
  await using database = databaseAt(server.url);
  await using stores = await openStores();
  const petId = await connectAll(stores);
  await database.sql.unsafe(`
    CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT OR UPDATE ON pets DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`);
  await database.sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(4711)`;
    const writes = [
      () => stores.clientStore.createPet(rex, AT),
      () => stores.clientStore.createPet(rex, AT, { keyId: 3, idempotencyKey: "blocked", fingerprint: "f" }),
      () => stores.clientStore.placeOrder({ keyId: KEY_ID, petId }, AT),
    ].map(rejected);
    const readPet = () => untilAvailable(async () => stores.operatorPetStore.getPet(petId));
    expect((await readPet())?.status).toBe("available");
    await Promise.all(writes);
    expect((await readPet())?.status).toBe("available");
  });
  await stores.reached("up");
  await database.sql`DROP FUNCTION wait_at_commit CASCADE`;
  await untilAvailable(() => addPet(stores.clientStore));
});

test("a server that is paused in the middle of a transaction blocks the others for less than the timeout", async () => {
  await using stores = await openStores(PATIENT);
  const petId = await addPet(stores.clientStore);
  const paused = new Pools(new Primary(server.url), PATIENT);
  const locked = Promise.withResolvers<void>();
  const transaction = paused.writes.transaction(async (tx) => {
    await tx`SELECT FROM pets WHERE id = ${petId} FOR UPDATE`;
    locked.resolve();
    await new Promise(() => {});
  });
  await locked.promise;
  await rejectedWithin(PATIENT.timeoutMs / 2, [() => transaction]);
  resultOf(await stores.clientStore.placeOrder({ keyId: KEY_ID, petId }, AT));
  await paused.close();
});

test("a pet that another session has locked delays its own orders only", async () => {
  await using database = databaseAt(server.url);
  await using stores = await openStores(PATIENT);
  const { clientStore, operatorPetStore } = stores;
  // Their orders, each within its bound, take less than the time after which those of the locked pet are rejected.
  const addPets = () => Promise.all(Array.from({ length: 5 }, () => addPet(clientStore)));
  const place = (petId: bigint) => clientStore.placeOrder({ keyId: KEY_ID, petId }, AT);
  const [locked, ordered, others] = [await addPet(clientStore), await addPet(clientStore), await addPets()];
  const { id: orderId } = resultOf(await place(ordered));

  const waiting = await database.sql.begin(async (tx) => {
    await tx`SELECT FROM pets WHERE id IN (${locked}, ${ordered}) FOR UPDATE`;
    const writes = [
      ...Array.from({ length: 20 }, () => place(locked)),
      clientStore.updateOrder({ keyId: KEY_ID, id: orderId, status: "completed" }, AT),
      operatorPetStore.updatePet(locked, { name: "Mia" }, BY),
    ];
    const results = Promise.allSettled(writes);
    const isOver = results.then(() => "over");
    for (const petId of others) resultOf(await Promise.race([place(petId), passed(PATIENT.timeoutMs / 8)]));
    expect(await Promise.race([isOver, "waiting"])).toBe("waiting");
    return { results };
  });
  const results = (await waiting.results).map((result) => {
    if (result.status === "rejected") throw result.reason;
    return "code" in result.value ? result.value.code : "done";
  });
  expect(results.filter((result) => result === "done")).toHaveLength(3);
  expect(results.filter((result) => result === "pet_not_available")).toHaveLength(19);
  expect((await operatorPetStore.getPet(ordered))?.status).toBe("sold");
  expect(stores.changes).toEqual([]);
});

test("an error in a statement is not Unavailable, and the server does not count as down", async () => {
  await using stores = await openStores(PATIENT);
  const failure = await stores.clientStore
    .createPet({ ...rex, name: "" }, AT)
    .catch((error: unknown) => error);
  expect(failure).not.toBeInstanceOf(Unavailable);
  expect(String(failure)).toContain("violates check constraint");
  expect(stores.changes).toEqual([]);
});

test("a process that stands still in a transaction has lost it, and does it again", async () => {
  const pools = new Pools(await Primary.of(server.url), PATIENT);
  let attempts = 0;
  const found = await pools.writes.transaction(async (tx) => {
    attempts++;
    await tx`CREATE TABLE stood_still (n int8)`;
    await tx`INSERT INTO stood_still VALUES (${attempts})`;
    // The server ends a transaction in which nothing happens for a quarter of the timeout.
    if (attempts === 1) Bun.sleepSync(1_500);
    return await tx<{ n: bigint }[]>`SELECT n FROM stood_still`;
  });
  expect([attempts, [...found]]).toEqual([2, [{ n: 2n }]]);
  await pools.close();
});
