/*
 * The figures in the comments of src/store and src/runtime/bounded-cache.ts: `npx bun bench/store.ts`, about a minute.
 * Every comparison alternates between its sides, and prints the median processor time of a call.
 */

import { join } from "node:path";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { median } from "../trials/harness/statistics.ts";
import { andThen } from "../src/runtime/awaitable.ts";
import { type Connection } from "../src/store/sqlite/connection.ts";
import { openDatabase } from "../src/store/sqlite/database.ts";
import { SQLITE_MIGRATIONS } from "../src/store/sql/migration-steps.ts";
import { SqlitePetJson } from "../src/store/sqlite/pet-json.ts";
import { encodePet } from "../src/domain/pets-and-orders.ts";
import { SqliteClientStore } from "../src/store/sqlite/client-store.ts";
import { compare } from "./cpu-time.ts";

const ROUNDS = 7;
const directory = temporaryDirectory("bench-store");

function databaseWith(pets: number): Connection {
  const options = {
    migrations: SQLITE_MIGRATIONS,
    synchronous: "FULL",
    cacheKiB: 16_384,
    busyTimeoutMs: 0,
  } as const;
  const connection = openDatabase(join(directory, `${pets}.db`), options);
  connection.exec(`INSERT INTO pets (name, category_id, status)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${pets})
    SELECT 'pet ' || i, i % 1000, iif(i % 2, 'sold', NULL) FROM n`);
  return connection;
}

const randomUpTo = (max: number) => Math.floor(Math.random() * max);
const randomPage = (pets: number) => ({ after: BigInt(randomUpTo(pets - 20)), limit: 20 });

function compareBlockCache(connection: Connection, pets: number): void {
  const variants = {
    "with cache": new SqlitePetJson(connection),
    "without filter": new SqlitePetJson(connection, { repeats: { isRepeat: () => true } }),
    "without cache": new SqlitePetJson(connection, { repeats: { isRepeat: () => false } }),
  };
  const each = (work: (petJson: SqlitePetJson) => void) =>
    Object.fromEntries(Object.entries(variants).map(([name, petJson]) => [name, () => work(petJson)]));
  const count = pets.toLocaleString("en");
  compare(
    `a random pet of ${count}`,
    each((petJson) => petJson.get(1 + randomUpTo(pets))),
  );
  compare(
    `a random page of ${count}`,
    each((petJson) => petJson.list(randomPage(pets))),
  );
}

function compareChanges(connection: Connection, pets: number): void {
  const sideWith = (change: (petJson: SqlitePetJson) => void) => {
    const petJson = new SqlitePetJson(connection);
    return (call: number) => {
      if (call % 100 === 0) change(petJson);
      petJson.get(1 + randomUpTo(pets));
    };
  };
  compare("a random pet, one change in 100 requests", {
    "removes its block": sideWith((petJson) => petJson.petChanged(BigInt(1 + randomUpTo(pets)))),
    "removes all blocks": sideWith((petJson) => petJson.everythingChanged()),
  });
}

function comparePages(connection: Connection, pets: number): void {
  const store = new SqliteClientStore(connection);
  const petJson = new SqlitePetJson(connection, { repeats: { isRepeat: () => false } });
  compare("the JSON of a page", {
    "joined by SQLite": () => petJson.list(randomPage(pets)),
    "encoded row by row": () =>
      andThen(store.operatorPetStore.listPets(randomPage(pets)), ({ items }) =>
        items.map(encodePet).join(","),
      ),
  });
}

function compareChecks(connection: Connection): void {
  const insertInto = (name: string, check: string) => {
    connection.exec(
      `CREATE TEMP TABLE ${name} (id INTEGER PRIMARY KEY, name TEXT, status TEXT CHECK (${check})) STRICT`,
    );
    const insert = connection.prepared(`INSERT INTO ${name} (name, status) VALUES ('Rex', ?)`);
    return () => void insert.run("sold");
  };
  const sides = {
    "CHECK with OR": insertInto("ors", "status = 'available' OR status = 'pending' OR status = 'sold'"),
    "CHECK with IN": insertInto("ins", "status IN ('available', 'pending', 'sold')"),
  };
  connection.transaction(() => compare("an insert", sides));
}

async function compareGroupCommit(connection: Connection): Promise<void> {
  const store = new SqliteClientStore(connection);
  const create = () => store.createPet({ name: "Rex", categoryId: 7n }, 0);
  const times = { together: [] as number[], alone: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    await Promise.all(Array.from({ length: 32 }, create));
    const middle = performance.now();
    for (let i = 0; i < 32; i++) await create();
    times.together.push(middle - start);
    times.alone.push(performance.now() - middle);
  }
  const ms = (each: number[]) => `${median(each).toFixed(2)} ms`;
  console.log(`32 durable creates: in one transaction ${ms(times.together)}, in 32 ${ms(times.alone)}`);
}

/** What 32 new pets of as many categories cost, which enter the index of categories later or at once. */
function compareRecentPets(connection: Connection): void {
  const insert = "INSERT INTO pets (name, category_id, status, is_recent) VALUES ('Rex', ?, 'available', ?)";
  const index = `UPDATE pets SET is_recent = NULL
    WHERE id > (SELECT recent_after FROM pet_revision) AND is_recent IS NOT NULL`;
  const move = "UPDATE pet_revision SET recent_after = (SELECT max(id) FROM pets)";
  let category = 0;
  const create = (isRecent: 1 | null) => (call: number) =>
    connection.transaction(() => {
      for (let i = 0; i < 32; i++) connection.run(insert, 10 + (category++ % 90), isRecent);
      if (call % 32 === 0) for (const sql of [index, move]) connection.run(sql);
    });
  connection.run(move);
  compare("32 new pets of 90 categories", { "1,024 at a time": create(1), "at once": create(null) }, 192);
}

for (const pets of [100_000, 1_000_000]) {
  const connection = databaseWith(pets);
  compareBlockCache(connection, pets);
  if (pets === 100_000) {
    compareChanges(connection, pets);
    comparePages(connection, pets);
    compareChecks(connection);
    compareRecentPets(connection);
    await compareGroupCommit(connection);
  }
  connection.close();
}
process.exit(0);
