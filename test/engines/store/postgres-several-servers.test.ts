import type { SQL } from "bun";
import { expect, test } from "bun:test";
import { requestName } from "../../../src/store/idempotency.ts";
import { LOCK_SPACE } from "../../../src/store/postgres/locks.ts";
import {
  addPet,
  AT,
  DAY_MS,
  KEY_ID,
  rejectionCode,
  request,
  resultOf,
  rex,
} from "../../conformance/store-fixture.ts";
import { BY, storedSecret } from "../../key-store-arguments.ts";
import { until } from "../../timing.ts";
import { createDatabase, emptyDatabase, makeOlder } from "./postgres-database.ts";

test("the URL names the database, whatever PGDATABASE is", async () => {
  await using database = await createDatabase();
  const before = process.env.PGDATABASE;
  process.env.PGDATABASE = "template1";
  try {
    await database.open();
  } finally {
    if (before === undefined) delete process.env.PGDATABASE;
    else process.env.PGDATABASE = before;
  }
  const [{ exists }] = await database.sql`SELECT to_regclass('pets') IS NOT NULL AS exists`;
  expect(exists).toBe(true);
});

test("identifiers become visible in ascending order: a reader that continues after the last one misses none", async () => {
  await using database = await emptyDatabase();
  const writers = await Promise.all([database.open(), database.open(), database.open()]);
  const reader = (await database.open()).operatorPetStore;
  let isOver = false;
  const writing = Promise.all(
    writers.flatMap(({ clientStore }, w) =>
      Array.from({ length: 8 }, async (_, writer) => {
        for (let n = 0; n < 10; n++) {
          const idempotent = { ...request, idempotencyKey: `${w} ${writer} ${n}` };
          await (n % 3 === 0 ? clientStore.createPet(rex, AT, idempotent) : clientStore.createPet(rex, AT));
        }
      }),
    ),
  ).finally(() => (isOver = true));
  const seen: bigint[] = [];
  for (let last = false; !last;) {
    last = isOver;
    const page = await reader.listPets({ limit: 1000, after: seen.at(-1) ?? 0n });
    seen.push(...page.items.map(({ id }) => id));
  }
  await writing;
  expect(seen).toHaveLength(3 * 8 * 10);
});

test("idempotency_conflict: a request that is in progress on another server is not waited for", async () => {
  await using database = await emptyDatabase();
  const [first, second] = await Promise.all([database.open(), database.open()]);
  const petId = await addPet(first.clientStore);
  const place = ({ clientStore }: typeof first) =>
    clientStore.placeOrder({ keyId: KEY_ID, petId }, AT, request);
  const pending = await database.sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${LOCK_SPACE}, 'orders'::regclass::oid::int)`;
    const result = place(first);
    await until(() => isLockAwaited(database.sql), 5_000);
    expect(rejectionCode(await place(second))).toBe("idempotency_conflict");
    return { result };
  });
  const result = resultOf(await pending.result);
  expect(await place(second)).toEqual({ ...result, replayed: true });
});

async function isLockAwaited(sql: SQL): Promise<boolean> {
  const waiting = await sql`
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return waiting.length > 0;
}

test("environments in one database are separate: identifiers start at 1 in each, and neither waits for the other", async () => {
  await using database = await createDatabase();
  const [production, staging] = await Promise.all([
    database.open({ schema: "production" }),
    database.open({ schema: "staging" }),
  ]);
  await database.sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${LOCK_SPACE}, 'production.pets'::regclass::oid::int)`;
    await tx`SELECT pg_advisory_xact_lock(hashtextextended(
      ${requestName("createPet", request)}, 'production.attempts'::regclass::oid::int8))`;
    expect(rejectionCode(await production.clientStore.createPet(rex, AT, request))).toBe(
      "idempotency_conflict",
    );
    expect(await addPet(staging.clientStore)).toBe(1n);
    expect(resultOf(await staging.clientStore.createPet(rex, AT, request)).id).toBe(2n);
  });
  const created = resultOf(await production.clientStore.createPet(rex, AT, request));
  expect(created).toMatchObject({ id: 1n, replayed: false });
  await production.keys.createKey({ name: "shop", plan: "free", createdAt: AT }, storedSecret(0), BY);
  expect(await staging.keys.findCredential("0".repeat(64))).toBeUndefined();
});

test("expired records are deleted, and the others remain", async () => {
  await using database = await emptyDatabase();
  const { clientStore, close } = await database.open();
  for (const key of ["old", "older", "recent"])
    await clientStore.createPet(rex, AT, { ...request, idempotencyKey: key });
  await close();
  await makeOlder(database, DAY_MS - 60_000);
  await database.sql`UPDATE attempts SET created_at = created_at - 60000 WHERE idempotency_key <> 'recent'`;
  const later = await database.open();
  await later.clientStore.createPet(rex, AT, { ...request, idempotencyKey: "new" });
  await later.close();
  const records = await database.sql`SELECT idempotency_key AS key FROM attempts ORDER BY created_at`;
  expect([...records]).toEqual([{ key: "recent" }, { key: "new" }]);
});

test("expired records are deleted a thousand at a time, with one in 101 writes of each kind", async () => {
  await using database = await emptyDatabase();
  await database.sql`
    INSERT INTO attempts (operation, key_id, idempotency_key, fingerprint, resource_id, body, created_at)
    SELECT 'createPet', 9, n::text, 'f', 1, '{}', 0 FROM generate_series(1, 3500) AS n`;
  const left = async () =>
    Number((await database.sql`SELECT count(*) AS count FROM attempts WHERE created_at = 0`)[0].count);
  const write = async (from: number, count: number) => {
    const { clientStore, close } = await database.open();
    const create = (n: number) =>
      clientStore.createPet(rex, AT, { ...request, idempotencyKey: `${from + n}` });
    const { id: petId } = resultOf(await create(0));
    await Promise.all(Array.from({ length: count - 1 }, (_, i) => create(i + 1)));
    await close();
    return petId;
  };
  await write(0, 101);
  expect(await left()).toBe(2_500);
  const petId = await write(200, 102);
  expect(await left()).toBe(500);
  const { clientStore, close } = await database.open();
  await clientStore.placeOrder({ keyId: KEY_ID, petId }, AT, request);
  await close();
  expect(await left()).toBe(0);
});

test("a result is kept for 24 hours of the database's clock, however far the clocks of servers are apart", async () => {
  await using database = await emptyDatabase();
  const servers = await Promise.all(
    [-9, -1, 0, 1, 9].map(async (days) => {
      const now = () => Date.now() + days * DAY_MS;
      const { clientStore } = await database.open({ retentionNow: now });
      return { now, clientStore };
    }),
  );
  for (const [i, { now, clientStore }] of servers.entries()) {
    const own = { ...request, idempotencyKey: `${i}` };
    const pet = resultOf(await clientStore.createPet({ ...rex, name: `Pet ${i}` }, now(), own));
    const order = resultOf(await clientStore.placeOrder({ keyId: KEY_ID, petId: pet.id }, now(), own));
    await makeOlder(database, DAY_MS - 60_000);
    for (const { clientStore: other, now: at } of servers) {
      expect(await other.createPet(rex, at(), own)).toEqual({ ...pet, replayed: true });
      const placed = await other.placeOrder({ keyId: KEY_ID, petId: pet.id }, at(), own);
      expect(placed).toEqual({ ...order, replayed: true });
    }
  }
  await makeOlder(database, 60_000);
  // The clock of the third server is right.
  const { clientStore } = servers[2] ?? {};
  const last = { ...request, idempotencyKey: `${servers.length - 1}` };
  expect(resultOf(await (clientStore?.createPet(rex, AT, last) ?? Promise.reject())).replayed).toBe(false);
});
