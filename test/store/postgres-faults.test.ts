import { afterAll, afterEach, expect, test } from "bun:test";
import { Unavailable } from "../../src/contract/errors.ts";
import type { OpenedStore, Turn } from "../../src/store/postgres/index.ts";
import { openPostgres } from "../../src/store/postgres/index.ts";
import { AT, addPet, rex, written } from "../conformance/store-fixture.ts";
import { startPostgres } from "../../harness/postgres.ts";
import { place } from "./postgres-database.ts";

const DEADLINE_MS = 600;
/** The promise. On a busy machine some answers take longer, though they wait for nothing: hence the second. */
const AT_ONCE_MS = 50;
const WITHOUT_WAITING_MS = DEADLINE_MS / 2;
/** From the engine's return to the first answer. */
const BACK_WITHIN_MS = 1_000;

const server = await startPostgres();
afterEach(async () => {
  server.thaw();
  if (!server.isRunning) await server.restart();
});
afterAll(() => server.stop());

/** An instance that tells when it finds the engine down, and back. */
async function instance(options: { maxWaiting?: number } = {}) {
  const turns: Turn[] = [];
  let waiting = Promise.withResolvers<void>();
  const opened = await openPostgres(server.url, {
    deadlineMs: DEADLINE_MS,
    ...options,
    onTurn(turn) {
      turns.push(turn);
      waiting.resolve();
      waiting = Promise.withResolvers();
    },
  });
  return {
    ...opened,
    turns,
    async turned(state: Turn["state"]) {
      while (turns.at(-1)?.state !== state) await waiting.promise;
    },
    [Symbol.asyncDispose]: opened.close,
  };
}

/** How long it takes to be refused; anything but Unavailable is a fault of the test's subject. */
async function refusedAfterMs(work: () => unknown): Promise<number> {
  const before = performance.now();
  const failure = await Promise.try(work).then(
    () => new Error("it was answered"),
    (error: unknown) => error,
  );
  if (!(failure instanceof Unavailable)) throw failure;
  return performance.now() - before;
}

function expectAtOnce(times: readonly number[]): void {
  expect(Math.min(...times)).toBeLessThan(AT_ONCE_MS);
  expect(Math.max(...times)).toBeLessThan(WITHOUT_WAITING_MS);
}

/** So that nothing has to connect first: what hangs then is the query. */
async function warm({ store }: OpenedStore): Promise<bigint> {
  const [id = 0n, ...others] = await Promise.all(Array.from({ length: 10 }, () => addPet(store)));
  await Promise.all(others.map((other) => store.getPet(other)));
  await Promise.all(others.map((other) => store.placeOrder(other, AT)));
  return id;
}

const fiveTimes = <T>(work: T): T[] => Array.from({ length: 5 }, () => work);

/** Every way in. */
function everything({ store, keys }: OpenedStore): (() => unknown)[] {
  return [
    () => store.listPets({ limit: 20 }),
    () => store.getPet(1n),
    () => store.createPet(rex, AT),
    () => store.createPet(rex, AT, { keyId: 1, idempotencyKey: "k", fingerprint: "f" }),
    () => store.placeOrder(1n, AT),
    () => store.updateOrder(1n, "completed"),
    () => keys.findCredential("0".repeat(64)),
    () => keys.changesSince(0),
  ];
}

test("frozen: everything is refused within the deadline, then at once; it is back by itself after the thaw", async () => {
  await using shop = await instance();
  const id = await warm(shop);
  server.freeze();
  const first = await Promise.all(everything(shop).map(refusedAfterMs));
  expect(Math.max(...first)).toBeLessThan(DEADLINE_MS + WITHOUT_WAITING_MS);
  expectAtOnce(await Promise.all(everything(shop).map(refusedAfterMs)));
  const thawedAt = performance.now();
  server.thaw();
  await shop.turned("up");
  expect(performance.now() - thawedAt).toBeLessThan(BACK_WITHIN_MS);
  expect((await shop.store.getPet(id))?.name).toBe("Rex");
  await addPet(shop.store);
  expect(shop.turns.map(({ state }) => state)).toEqual(["down", "up"]);
});

test("frozen: what one principal has found out, authenticator of everything else need not wait for", async () => {
  await using shop = await instance();
  await warm(shop);
  server.freeze();
  await refusedAfterMs(() => shop.store.getPet(1n));
  // By then a connection of its own was not to be had either.
  await refusedAfterMs(() => shop.store.createPet(rex, AT));
  expectAtOnce(await Promise.all(everything(shop).map(refusedAfterMs)));
  server.thaw();
  await shop.turned("up");
  expect(shop.turns.map(({ state }) => state)).toEqual(["down", "up"]);
  await addPet(shop.store);
});

test("frozen before anything has connected: a connection is waited for no longer than a query", async () => {
  await using shop = await instance();
  server.freeze();
  const first = await Promise.all(everything(shop).map(refusedAfterMs));
  expect(Math.max(...first)).toBeLessThan(DEADLINE_MS + WITHOUT_WAITING_MS);
  server.thaw();
  await shop.turned("up");
});

test("frozen: past the queue's bound the next one is refused at once", async () => {
  await using shop = await instance({ maxWaiting: 10 });
  await warm(shop);
  server.freeze();
  const reads = Array.from({ length: 10 }, () => refusedAfterMs(() => shop.store.getPet(1n)));
  expectAtOnce(await Promise.all(fiveTimes(() => shop.store.getPet(1n)).map(refusedAfterMs)));
  // Reads leave writes their own places, and the other way round.
  const writes = Array.from({ length: 10 }, () => refusedAfterMs(() => shop.store.createPet(rex, AT)));
  expectAtOnce(await Promise.all(fiveTimes(() => shop.store.createPet(rex, AT)).map(refusedAfterMs)));
  expect(Math.min(...(await Promise.all([...reads, ...writes])))).toBeGreaterThan(WITHOUT_WAITING_MS);
  server.thaw();
  await shop.turned("up");
});

test("frozen and closed: closing does not wait longer than the deadline", async () => {
  const shop = await instance();
  await warm(shop);
  server.freeze();
  const refused = Promise.all(everything(shop).map(refusedAfterMs));
  const before = performance.now();
  await shop.close();
  expect(performance.now() - before).toBeLessThan(DEADLINE_MS + WITHOUT_WAITING_MS);
  await refused;
  server.thaw();
});

test("killed: everything is refused at once; it is back by itself after the restart, with all that was answered", async () => {
  await using shop = await instance();
  const ids = [await addPet(shop.store), await addPet(shop.store)];
  await server.kill();
  for (let round = 0; round < 3; round++) {
    const times: number[] = [];
    for (const work of everything(shop)) times.push(await refusedAfterMs(work));
    expectAtOnce(times);
  }
  await server.restart();
  const restartedAt = performance.now();
  await shop.turned("up");
  expect(performance.now() - restartedAt).toBeLessThan(BACK_WITHIN_MS);
  for (const id of ids) expect((await shop.store.getPet(id))?.id).toBe(id);
  expect(await addPet(shop.store)).toBeGreaterThan(ids[1] ?? 0n);
});

test("killed in the middle of writes: with an Idempotency-Key each is done once, however often it is repeated", async () => {
  await using shop = await instance();
  await shop.store.createPet(rex, AT);
  const before = (await everyId(shop)).length;
  const restarted = Promise.withResolvers<void>();
  let refusals = 0;
  const answers = Array.from({ length: 1_000 }, async (_, i) => {
    const idempotentRequest = { keyId: 2, idempotencyKey: `kill ${i}`, fingerprint: "f" };
    for (;;) {
      try {
        return written(await shop.store.createPet({ ...rex, name: `${i}` }, AT, idempotentRequest)).id;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        refusals++;
        await restarted.promise;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  });
  await Promise.race(answers);
  await server.kill();
  await server.restart();
  restarted.resolve();
  const ids = await Promise.all(answers);
  expect(refusals).toBeGreaterThan(0);
  expect(new Set(ids).size).toBe(1_000);
  expect((await everyId(shop)).length - before).toBe(1_000);
});

async function everyId({ store }: OpenedStore): Promise<bigint[]> {
  const { items } = await store.listPets({ limit: 10_000 });
  return items.map(({ id }) => id);
}

test("a server that restarts between two requests costs nobody a request", async () => {
  await using shop = await instance();
  const id = await addPet(shop.store);
  await server.restart();
  expect((await shop.store.getPet(id))?.id).toBe(id);
  expect(shop.turns).toEqual([]);
});

test("a lock that somebody holds refuses the writes that need it, in time, and nothing else", async () => {
  await using at = await place(server.url);
  await using shop = await instance();
  const petId = await addPet(shop.store);
  await at.sql.begin(async (tx) => {
    await tx`LOCK TABLE orders`;
    expect(await refusedAfterMs(() => shop.store.placeOrder(petId, AT))).toBeLessThan(DEADLINE_MS);
    expect((await shop.store.getPet(petId))?.status).toBe("available");
    await addPet(shop.store);
  });
  written(await shop.store.placeOrder(petId, AT));
  expect(shop.turns).toEqual([]);
});

test("more orders at once than can be placed in time: the rest are refused, and the pools is not taken for down", async () => {
  await using at = await place(server.url);
  await using shop = await instance();
  const petId = await warm(shop);
  await at.sql.begin(async (tx) => {
    await tx`LOCK TABLE orders`;
    const orders = Array.from({ length: 20 }, () => refusedAfterMs(() => shop.store.placeOrder(petId, AT)));
    expect(Math.max(...(await Promise.all(orders)))).toBeLessThan(DEADLINE_MS + WITHOUT_WAITING_MS);
    expect(await addPet(shop.store)).toBeGreaterThan(petId);
  });
  written(await shop.store.placeOrder(petId, AT));
  expect(
    (await shop.store.listOrders({ limit: 100 })).items.filter((order) => order.petId === petId),
  ).toHaveLength(1);
  expect(shop.turns).toEqual([]);
});

test("no answer before the commit: while nothing can be committed writes are refused, and reads go on", async () => {
  await using at = await place(server.url);
  await using shop = await instance();
  const petId = await warm(shop);
  await at.sql.unsafe(`
    CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS
      'BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT OR UPDATE ON pets DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION gate()`);
  await at.sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(4711)`;
    const writes = [
      () => shop.store.createPet(rex, AT),
      () => shop.store.createPet(rex, AT, { keyId: 3, idempotencyKey: "unsure", fingerprint: "f" }),
      () => shop.store.placeOrder(petId, AT),
    ].map(refusedAfterMs);
    expect((await shop.store.getPet(petId))?.status).toBe("available");
    await Promise.all(writes);
    expect((await shop.store.getPet(petId))?.status).toBe("available");
  });
  await shop.turned("up");
  await at.sql`DROP FUNCTION gate CASCADE`;
  await addPet(shop.store);
});

test("an instance that stops in the middle of a transaction does not hold up the others for long", async () => {
  await using shop = await instance();
  const petId = await addPet(shop.store);
  const { Pools } = await import("../../src/store/postgres/pools.ts");
  const paused = new Pools(server.url, { deadlineMs: DEADLINE_MS });
  const locked = Promise.withResolvers<void>();
  const never = paused.writes.transaction(async (tx) => {
    await tx`SELECT FROM pets WHERE id = ${petId} FOR UPDATE`;
    locked.resolve();
    await new Promise(() => {});
  });
  await locked.promise;
  const waited = await refusedAfterMs(() => never);
  expect(waited).toBeLessThan(DEADLINE_MS);
  written(await shop.store.placeOrder(petId, AT));
  await paused.close();
});

test("a mistake in a statement is no fault of the pools", async () => {
  await using shop = await instance();
  const failure = await shop.store.createPet({ ...rex, name: "" }, AT).catch((error: unknown) => error);
  expect(failure).not.toBeInstanceOf(Unavailable);
  expect(String(failure)).toContain("violates check constraint");
  expect(shop.turns).toEqual([]);
});
