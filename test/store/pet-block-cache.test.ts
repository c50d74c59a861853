import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { INT64_MIN } from "../../src/api/json.ts";
import { encodePet, type PetStatus } from "../../src/domain/resources.ts";
import { withEtag } from "../../src/api/etag.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/store.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** Three complete blocks and the beginning of a fourth. */
const PETS = 220;
const NAMES = [
  "Rex",
  'Q"uote\\',
  '\\"\n\u2028\u007f/<',
  "Ünï",
  "猫",
  "🐈‍⬛ and more",
  ',{"id":7,',
  '"},{"id":',
];

type Step =
  | { kind: "create"; name: string }
  | { kind: "order"; id: number }
  | { kind: "correct"; id: number; name: string; status: PetStatus | null }
  | { kind: "delete"; id: number }
  | { kind: "end"; order: number; status: "completed" | "cancelled" }
  | { kind: "list"; after: number; limit: number; status: PetStatus | undefined }
  | { kind: "get"; id: number };

/** SQLite encodes names as JSON itself. */
const name = fc.oneof(
  fc.constantFrom(...NAMES),
  fc.string({ unit: "binary", minLength: 1, maxLength: 30 }).filter((text) => !text.includes("\0")),
);
const id = fc.integer({ min: -1, max: PETS + 20 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("create"), name }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("order"), id }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("correct"),
      id,
      name,
      status: fc.constantFrom("available", "sold", null),
    }),
  },
  // The last pets, so that most blocks stay complete.
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("delete"), id: fc.integer({ min: 190, max: 260 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("end"),
      order: fc.integer({ min: 1, max: 40 }),
      status: fc.constantFrom("completed", "cancelled"),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("list"),
      after: fc.integer({ min: 0, max: PETS + 20 }),
      limit: fc.integer({ min: 1, max: 100 }),
      status: fc.constantFrom(undefined, undefined, "available", "pending", "sold"),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("get"), id }) },
) as fc.Arbitrary<Step>;

test("cached pets equal those of the table after any sequence of reads and writes", async () => {
  using folder = temporaryFolder();
  const stores = openSqlite(folder.path("store.db"));
  const { store, petJson, close } = stores;
  await Promise.all(
    Array.from({ length: PETS }, (_, i) =>
      store.createPet(
        { name: `${NAMES[i % NAMES.length]} ${i}`, categoryId: BigInt(i), status: "available" },
        0,
      ),
    ),
  );
  let wasFilled = false;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      for (const each of steps) {
        await run(stores, each);
        wasFilled ||= petJson.cachedBytes > 0;
      }
    }),
    { numRuns: 60 },
  );
  expect(wasFilled).toBe(true);
  await close();
}, 30_000);

const by = { actor: { kind: "console" }, at: 0 } as const;

async function run({ store, operators, petJson }: SqliteStores, step: Step): Promise<void> {
  switch (step.kind) {
    case "correct":
      await operators.updatePet(BigInt(step.id), { name: step.name, status: step.status }, by);
      return;
    case "delete":
      await operators.deletePet(BigInt(step.id), by);
      return;
    case "create":
      await store.createPet({ name: step.name, categoryId: INT64_MIN }, 0);
      return;
    case "order":
      await store.placeOrder({ keyId: 1, petId: BigInt(step.id) }, 0);
      return;
    case "end":
      await store.updateOrder(1, BigInt(step.order), step.status);
      return;
    case "get": {
      const pet = await store.getPet(BigInt(step.id));
      const id = step.id % 2 ? step.id : BigInt(step.id);
      expect(petJson.get(id)).toEqual(pet && withEtag(encodePet(pet)));
      return;
    }
    case "list": {
      const { status, limit } = step;
      const query = { after: BigInt(step.after), limit, ...(status && { status }) };
      const { items, hasMore } = await store.listPets(query);
      expect(petJson.list(query)).toMatchObject({
        json: `[${items.map(encodePet).join(",")}]`,
        last: items.at(-1)?.id,
        hasMore,
      });
    }
  }
}

/** A store with so many pets of the same name, inserted behind the port. */
async function storeWith(pets: number, { name, path }: { name: string; path: string }) {
  await openSqlite(path).close();
  using database = new Database(path);
  database.run(
    `INSERT INTO pets (name, category_id)
     WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${pets}) SELECT ?, i FROM n`,
    [name],
  );
  return openSqlite(path);
}

test("a block that lacks a pet is read from the table, and only its absence is cached", async () => {
  using folder = temporaryFolder();
  const path = folder.path("store.db");
  await (await storeWith(130, { name: "Rex", path })).close();
  const database = new Database(path);
  database.run("DELETE FROM pets WHERE id = 30");
  database.close();

  const { petJson, close } = openSqlite(path);
  for (let i = 0; i < 4; i++) {
    expect(petJson.list({ after: 20n, limit: 20 }).last).toBe(41n);
    expect(petJson.get(30)).toBeUndefined();
    expect(petJson.get(31)?.json).toStartWith('{"id":31,');
  }
  expect(petJson.cachedBytes).toBe(400);
  await close();
});

test("the cache holds at most 16 MiB", async () => {
  using folder = temporaryFolder();
  const options = { name: "x".repeat(1_000), path: folder.path("store.db") };
  const { petJson, close } = await storeWith(20_000, options);
  for (let after = 0; after < 20_000; after += 64) {
    for (let times = 0; times < 2; times++) petJson.list({ after: BigInt(after), limit: 64 });
  }
  expect(petJson.cachedBytes).toBeLessThanOrEqual(16_777_216);
  expect(petJson.cachedBytes).toBeGreaterThan(16_600_000);
  await close();
});

test("pets requested once, in any number, do not enter the cache", async () => {
  using folder = temporaryFolder();
  const { petJson, close } = await storeWith(20_000, { name: "Rex", path: folder.path("store.db") });
  for (let id = 1; id <= 20_000; id += 64) petJson.get(id);
  expect(petJson.cachedBytes).toBe(0);
  petJson.get(19_905);
  expect(petJson.cachedBytes).toBeGreaterThan(0);
  await close();
});
