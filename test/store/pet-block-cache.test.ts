import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { INT64_MIN } from "../../src/api/json.ts";
import { encodePet, type PetStatus } from "../../src/domain/resources.ts";
import { withEtag } from "../../src/api/hash.ts";
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

/** SQLite encodes names as JSON itself. */
const name = fc.oneof(
  fc.constantFrom(...NAMES),
  fc.string({ unit: "binary", minLength: 1, maxLength: 30 }).filter((text) => !text.includes("\0")),
);
const id = fc.integer({ min: -1, max: PETS + 20 });
const by = { actor: { kind: "console" }, at: 0 } as const;

/** A read or a write, with its arguments for the report of a failure. */
interface Step {
  readonly given: object;
  run(stores: SqliteStores): Promise<unknown>;
}

function stepOf<Given extends object>(
  weight: number,
  given: { readonly [Name in keyof Given]: fc.Arbitrary<Given[Name]> },
  run: (stores: SqliteStores, given: Given) => Promise<unknown>,
): { weight: number; arbitrary: fc.Arbitrary<Step> } {
  const arbitrary = fc
    .record<Given>(given)
    .map((values) => ({ given: values, run: (stores: SqliteStores) => run(stores, values) }));
  return { weight, arbitrary };
}

const status = fc.constantFrom<PetStatus | undefined>(undefined, undefined, "available", "pending", "sold");
const after = fc.integer({ min: 0, max: PETS + 20 });
const limit = fc.integer({ min: 1, max: 100 });

const step = fc.oneof(
  stepOf(1, { name }, ({ store }, { name }) => store.createPet({ name, categoryId: INT64_MIN }, 0)),
  stepOf(2, { id }, ({ store }, { id }) => store.placeOrder({ keyId: 1, petId: BigInt(id) }, 0)),
  stepOf(
    1,
    { id, name, status: fc.constantFrom("available", "sold", null) },
    ({ corrections }, { id, ...change }) => corrections.updatePet(BigInt(id), change, by),
  ),
  // The last pets, so that most blocks stay complete.
  stepOf(1, { id: fc.integer({ min: 190, max: 260 }) }, ({ corrections }, { id }) =>
    corrections.deletePet(BigInt(id), by),
  ),
  stepOf(
    2,
    { order: fc.integer({ min: 1, max: 40 }), status: fc.constantFrom("completed", "cancelled") },
    ({ store }, { order, status }) => store.updateOrder({ keyId: 1, id: BigInt(order), status }, 0),
  ),
  stepOf(6, { after, limit, status }, async ({ store, petJson }, { after, limit, status }) => {
    const query = { after: BigInt(after), limit, ...(status && { status }) };
    const { items, hasMore } = await store.listPets(query);
    const json = `[${items.map(encodePet).join(",")}]`;
    expect(petJson.list(query)).toMatchObject({ json, last: items.at(-1)?.id, hasMore });
  }),
  stepOf(6, { id }, async ({ store, petJson }, { id }) => {
    const pet = await store.getPet(BigInt(id));
    expect(petJson.get(id % 2 ? id : BigInt(id))).toEqual(pet && withEtag(encodePet(pet)));
  }),
);

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
        await each.run(stores);
        wasFilled ||= petJson.cachedBytes > 0;
      }
    }),
    { numRuns: 60 },
  );
  expect(wasFilled).toBe(true);
  await close();
}, 30_000);

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
