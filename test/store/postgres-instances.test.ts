import type { SQL } from "bun";
import { expect, test } from "bun:test";
import type { IdempotentRequest } from "../../src/domain/ports.ts";
import { nameOf } from "../../src/store/idempotency.ts";
import { openPostgres } from "../../src/store/postgres/index.ts";
import { LOCK_SPACE } from "../../src/store/postgres/advisory-locks.ts";
import { MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { AT, addPet, DAY_MS, refusalOf, rex, written } from "../conformance/store-fixture.ts";
import { postgresUrl } from "../../harness/postgres.ts";
import { emptyPlace, place } from "./postgres-database.ts";

const idempotentRequest: IdempotentRequest = {
  keyId: 1,
  idempotencyKey: "5c1f",
  fingerprint: "a".repeat(64),
};

test("ten instances that start at once on an empty database take each step once, and all of them work", async () => {
  await using at = await place();
  const instances = await Promise.all(Array.from({ length: 10 }, () => at.open()));
  const steps = await at.sql<{ version: number }[]>`SELECT version FROM schema_migrations ORDER BY version`;
  expect(steps.map(({ version }) => version)).toEqual(MIGRATIONS.map(({ version }) => version));
  const ids = await Promise.all(instances.map(({ store }) => addPet(store)));
  expect(ids.map(Number).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test("a database that a newer release has changed is left alone", async () => {
  await using at = await place();
  await (await at.open()).close();
  await at.sql`INSERT INTO schema_migrations (version, name) VALUES (999, 'from the future')`;
  await expect(at.open()).rejects.toThrow(/a newer petstore made it \(schema 999/);
});

test("a step that fails leaves nothing behind", async () => {
  await using at = await place();
  await at.sql`CREATE TABLE orders (id int)`;
  await expect(at.open()).rejects.toThrow(/"orders" already exists/);
  const [{ exists }] = await at.sql`SELECT to_regclass('pets') IS NOT NULL AS exists`;
  expect(exists).toBe(false);
});

test("a database that cannot be opened is named, and its password is not", async () => {
  const url = new URL(await postgresUrl());
  url.pathname = "/nowhere";
  url.password = "hunter2";
  const failure = await openPostgres(url.href).catch((error: unknown) => error);
  expect(String(failure)).toContain(`cannot open the database ${url.host}/nowhere: `);
  expect(Bun.inspect(failure)).not.toContain("hunter2");
});

test("the address says which database, whatever PGDATABASE says", async () => {
  await using at = await place();
  const before = process.env.PGDATABASE;
  process.env.PGDATABASE = "template1";
  try {
    await at.open();
  } finally {
    if (before === undefined) delete process.env.PGDATABASE;
    else process.env.PGDATABASE = before;
  }
  const [{ exists }] = await at.sql`SELECT to_regclass('pets') IS NOT NULL AS exists`;
  expect(exists).toBe(true);
});

test("identifiers appear in their order: a follower who goes on after the last one misses none", async () => {
  await using at = await emptyPlace();
  const writers = await Promise.all([at.open(), at.open(), at.open()]);
  const follower = (await at.open()).store;
  let isOver = false;
  const written = Promise.all(
    writers.flatMap(({ store }, w) =>
      Array.from({ length: 8 }, async (_, pool) => {
        for (let n = 0; n < 25; n++) {
          const repeatable = { ...idempotentRequest, idempotencyKey: `${w} ${pool} ${n}` };
          await (n % 3 === 0 ? store.createPet(rex, AT, repeatable) : store.createPet(rex, AT));
        }
      }),
    ),
  ).finally(() => (isOver = true));
  const seen: bigint[] = [];
  for (let last = false; !last;) {
    last = isOver;
    const page = await follower.listPets({ limit: 1000, after: seen.at(-1) ?? 0n });
    seen.push(...page.items.map(({ id }) => id));
  }
  await written;
  expect(seen).toHaveLength(3 * 8 * 25);
});

test("of a repeated idempotentRequest on four instances at once one is done; the rest are told so or get its answer", async () => {
  await using at = await emptyPlace();
  const instances = await Promise.all(Array.from({ length: 4 }, () => at.open()));
  for (let round = 0; round < 20; round++) {
    const repeated = { ...idempotentRequest, idempotencyKey: `round ${round}` };
    const answers = await Promise.all(instances.map(({ store }) => store.createPet(rex, AT, repeated)));
    const done = answers.filter((answer) => refusalOf(answer) === undefined).map(written);
    expect(done.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(new Set(done.map(({ body }) => body)).size).toBe(1);
    for (const answer of answers) expect([undefined, "idempotency_conflict"]).toContain(refusalOf(answer));
  }
  expect((await instances[0]?.store.listPets({ limit: 100 }))?.items).toHaveLength(20);
});

test("idempotency_conflict: an idempotentRequest that runs on another instance is not waited for", async () => {
  await using at = await emptyPlace();
  const [first, second] = await Promise.all([at.open(), at.open()]);
  const petId = await addPet(first.store);
  const running = await at.sql.begin(async (tx) => {
    await tx`SELECT FROM pets WHERE id = ${petId} FOR UPDATE`;
    const answer = first.store.placeOrder(petId, AT, idempotentRequest);
    await someoneWaits(at.sql);
    expect(refusalOf(await second.store.placeOrder(petId, AT, idempotentRequest))).toBe(
      "idempotency_conflict",
    );
    return { answer };
  });
  const answer = written(await running.answer);
  expect(await second.store.placeOrder(petId, AT, idempotentRequest)).toEqual({ ...answer, replayed: true });
});

async function someoneWaits(sql: SQL): Promise<void> {
  for (;;) {
    const [{ n }] = await sql<[{ n: bigint }]>`SELECT count(*) AS n FROM pg_locks WHERE NOT granted`;
    if (n > 0n) return;
  }
}

test("one pet ordered on three instances at once is sold once, and its order ends once", async () => {
  await using at = await emptyPlace();
  const instances = await Promise.all([at.open(), at.open(), at.open()]);
  for (let round = 0; round < 10; round++) {
    const petId = await addPet(instances[0].store);
    const placed = await Promise.all(instances.map(({ store }) => store.placeOrder(petId, AT)));
    const [order, ...others] = placed.filter((answer) => refusalOf(answer) === undefined).map(written);
    expect(others).toEqual([]);
    const ended = await Promise.all(
      instances.map(({ store }, i) =>
        store.updateOrder(order?.id ?? 0n, i === 0 ? "completed" : "cancelled"),
      ),
    );
    expect(ended.map(refusalOf).filter((code) => code === "order_closed")).toHaveLength(2);
  }
});

test("environments that share a database do not meet: each counts from 1, and neither waits for the other", async () => {
  await using at = await place();
  const [production, staging] = await Promise.all([
    at.open({ schema: "production" }),
    at.open({ schema: "staging" }),
  ]);
  await at.sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${LOCK_SPACE}, 'production.pets'::regclass::oid::int)`;
    await tx`SELECT pg_advisory_xact_lock(hashtextextended(
      ${nameOf("createPet", idempotentRequest)}, 'production.attempts'::regclass::oid::int8))`;
    expect(refusalOf(await production.store.createPet(rex, AT, idempotentRequest))).toBe(
      "idempotency_conflict",
    );
    expect(await addPet(staging.store)).toBe(1n);
    expect(written(await staging.store.createPet(rex, AT, idempotentRequest)).id).toBe(2n);
  });
  expect(written(await production.store.createPet(rex, AT, idempotentRequest))).toMatchObject({
    id: 1n,
    replayed: false,
  });
  await production.keys.createKey({ name: "shop", plan: "free", createdAt: AT }, "0".repeat(64));
  expect(await staging.keys.findCredential("0".repeat(64))).toBeUndefined();
});

test("answers that have expired are removed, and those that have not stay", async () => {
  await using at = await emptyPlace();
  const { store, close } = await at.open();
  for (const key of ["old", "older"])
    await store.createPet(rex, AT, { ...idempotentRequest, idempotencyKey: key });
  await store.createPet(rex, AT + 1, { ...idempotentRequest, idempotencyKey: "young" });
  await close();
  const later = await at.open();
  await later.store.createPet(rex, AT + DAY_MS, { ...idempotentRequest, idempotencyKey: "new" });
  await later.close();
  const kept = await at.sql`SELECT idempotency_key AS key FROM attempts ORDER BY created_at`;
  expect([...kept]).toEqual([{ key: "young" }, { key: "new" }]);
});
