import type { SQL } from "bun";
import { expect, test } from "bun:test";
import { Overloaded, Unavailable } from "../../../src/api/errors.ts";
import type { TaggedJson } from "../../../src/api/hash.ts";
import { encodePet } from "../../../src/domain/resources.ts";
import type { PostgresPetJson } from "../../../src/store/postgres/pet-json.ts";
import type { PostgresStores } from "../../../src/store/postgres/store.ts";
import { addPet, AT, KEY_ID, resultOf, rex } from "../../conformance/store-fixture.ts";
import { BY } from "../../key-store-arguments.ts";
import { createDatabase, emptyDatabase } from "./postgres-database.ts";

test.each([
  ["pets", ({ petJson }: PostgresStores, i: number) => petJson.get(i + 1)],
  [
    "different pages",
    ({ petJson }: PostgresStores, i: number) => petJson.list({ after: BigInt(i), limit: 9 }),
  ],
  ["equal pages", ({ petJson }: PostgresStores) => petJson.list({ limit: 100, status: "sold" })],
])("300 reads of %s that arrive together take 3 statements: at most 128 share one", async (_, read) => {
  await using database = await emptyDatabase();
  let responses = 0;
  const stores = await database.open({ onResponse: () => responses++ });
  await Promise.all(Array.from({ length: 300 }, (_, i) => read(stores, i)));
  expect(responses).toBe(3);
});

test("each of the reads that share a statement gets its own result", async () => {
  await using database = await emptyDatabase();
  const { store, petJson } = await database.open();
  const statuses = ["sold", "available", undefined] as const;
  for (let i = 0; i < 40; i++) {
    const status = statuses[i % 3];
    await store.createPet({ name: `${i}`, categoryId: 7n, ...(status && { status }) }, AT);
  }
  const reads = Array.from({ length: 400 }, async (_, i) => {
    const id = BigInt(i % 45);
    const pet = await store.getPet(id);
    expect((await petJson.get(Number(id)))?.json).toBe(pet && encodePet(pet));
    const status = statuses[i % 3];
    const query = { after: id, limit: 1 + (i % 7), ...(status && { status }) };
    const { items, hasMore } = await store.listPets(query);
    const json = `[${items.map(encodePet).join(",")}]`;
    expect(await petJson.list(query)).toMatchObject({ json, last: items.at(-1)?.id, hasMore });
  });
  await Promise.all(reads);
});

test("more reads than the queue has room for are rejected at once, and the others succeed", async () => {
  await using database = await emptyDatabase();
  const { store, petJson } = await database.open({ maxQueued: 10 });
  await addPet(store);
  const outcomes = await Promise.allSettled(Array.from({ length: 15 }, () => petJson.get(1)));
  expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual(
    Array.from(outcomes, (_, i) => i < 10),
  );
  expect(outcomes[10]).toMatchObject({ reason: new Overloaded("the queue is full (10)") });
});

/** Reads on every server what a step has changed. */
async function expectOnAll(servers: readonly PostgresStores[], id: bigint, json: string | undefined) {
  for (const { petJson } of servers) {
    const [pet, page, first, chosen] = await Promise.all([
      petJson.get(Number(id)),
      petJson.list({ after: id - 1n, limit: 1 }),
      petJson.list({ limit: 100 }),
      petJson.list({ ids: [id], limit: 20 }),
    ]);
    expect(pet?.json).toBe(json);
    expect(chosen.json).toBe(`[${json ?? ""}]`);
    if (json !== undefined) {
      expect(page.json).toBe(`[${json}]`);
      expect(first.json).toContain(json);
    } else expect(first.json).not.toContain(`{"id":${id},`);
  }
}

test("what one server or psql has committed, every server shows at once, and never what was rolled back", async () => {
  await using database = await emptyDatabase();
  const servers = [await database.open(), await database.open()] as const;
  const [{ store }, { corrections }] = servers;
  const { sql } = database;
  for (let round = 0; round < 10; round++) {
    const id = await addPet(store);
    const pet = { ...rex, id };
    await expectOnAll(servers, id, encodePet(pet));
    resultOf(await store.placeOrder({ keyId: KEY_ID, petId: id }, AT));
    await expectOnAll(servers, id, encodePet({ ...pet, status: "pending" }));
    await corrections.updatePet(id, { name: "Max" }, BY);
    await expectOnAll(servers, id, encodePet({ ...pet, name: "Max", status: "pending" }));
    await sql`UPDATE pets SET name = 'Ada', status = NULL WHERE id = ${id}`;
    const ada = encodePet({ id, name: "Ada", categoryId: rex.categoryId });
    await expectOnAll(servers, id, ada);
    await sql
      .begin(async (tx) => {
        await tx`UPDATE pets SET name = 'Eve' WHERE id = ${id}`;
        await expectOnAll(servers, id, ada);
        throw new Error("rolled back");
      })
      .catch(() => {});
    await expectOnAll(servers, id, ada);
    const other = await addPet(servers[1].store);
    await corrections.deletePet(other, BY);
    await expectOnAll(servers, other, undefined);
  }
  await sql`TRUNCATE pets, orders RESTART IDENTITY`;
  await expectOnAll(servers, 1n, undefined);
  await sql.unsafe(
    "SET session_replication_role = replica; INSERT INTO pets (name, category_id) VALUES ('Ada', 1)",
  );
  await expectOnAll(servers, 1n, '{"id":1,"name":"Ada","categoryId":1}');
});

test("all pets of a page are from one moment", async () => {
  await using database = await emptyDatabase();
  const { store, petJson } = await database.open();
  const ids = [await addPet(store), await addPet(store)];
  const writing = (async () => {
    for (let version = 0; version < 200; version++) {
      await database.sql`UPDATE pets SET name = ${`${version}`} WHERE id <= 2`;
    }
  })();
  for (let round = 0; round < 20; round++) {
    const pages = await Promise.all([
      ...Array.from({ length: 150 }, () => petJson.list({ ids, limit: 20 })),
      petJson.list({ limit: 2 }),
    ]);
    for (const { json } of pages) {
      const [one, two] = JSON.parse(json);
      expect(one.name).toBe(two.name);
    }
  }
  await writing;
});

const PETS = 12;
const WRITES_PER_PET = 120;
const READERS = 24;
const ROUNDS_PER_READER = 20;

/**
 * The history of one pet: its name is the number of the last write. A write that fails may have been committed or not,
 * so it counts as begun, and not as acknowledged.
 */
class History {
  #begun = 0;
  #acknowledged = 0;
  #seen = 0;

  async write(work: (version: number) => Promise<unknown>): Promise<void> {
    const version = ++this.#begun;
    if (await succeeds(() => work(version))) this.#acknowledged = version;
  }

  /** A read may not be older than what was acknowledged or read before it began. */
  async read(work: () => Promise<{ json: string } | undefined>): Promise<boolean> {
    const oldest = Math.max(this.#acknowledged, this.#seen);
    let json = "";
    if (!(await succeeds(async () => (json = (await work())?.json ?? "")))) return false;
    const version = Number(/"name":"(\d+)"/.exec(json)?.[1]);
    expect(version).toBeGreaterThanOrEqual(oldest);
    expect(version).toBeLessThanOrEqual(this.#begun);
    this.#seen = Math.max(this.#seen, version);
    return true;
  }
}

async function succeeds(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    return false;
  }
}

/** Returns how many connections it has killed. */
async function killConnections(sql: SQL, isOver: () => boolean): Promise<number> {
  let killed = 0;
  while (!isOver()) {
    await Bun.sleep(15 * Math.random());
    const rows = await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = 'petstore' AND datname = current_database() ORDER BY random() LIMIT 1`;
    killed += rows.length;
  }
  return killed;
}

test("three servers whose connections are killed at random: no read is older than what was acknowledged or read before it", async () => {
  await using database = await createDatabase();
  const servers = await Promise.all([database.open(), database.open(), database.open()]);
  const serverAt = (i: number) => servers[i % 3] ?? servers[0];
  const histories: { id: bigint; history: History }[] = [];
  for (let i = 0; i < PETS; i++) {
    histories.push({ id: await addPet(serverAt(i).store, { name: "0" }), history: new History() });
  }
  let isOver = false;
  const killing = killConnections(database.sql, () => isOver);
  const updating = histories.map(async ({ id, history }, pet) => {
    for (let n = 0; n < WRITES_PER_PET; n++) {
      await history.write((version) =>
        serverAt(pet + n).corrections.updatePet(id, { name: `${version}` }, BY),
      );
    }
  });
  const created = new Set<bigint>();
  const creating = servers.map(async ({ store }) => {
    for (let n = 0; n < WRITES_PER_PET; n++) {
      await succeeds(async () => created.add(await addPet(store, { name: "0" })));
    }
  });
  let reads = 0;
  const ways: ((petJson: PostgresPetJson, id: bigint) => Promise<TaggedJson | undefined>)[] = [
    (petJson, id) => petJson.get(id),
    (petJson, id) => petJson.list({ after: id - 1n, limit: 1 }),
    (petJson, id) => petJson.list({ ids: [id], limit: 20 }),
  ];
  const readPet = async ({ id, history }: (typeof histories)[number], { petJson }: PostgresStores) => {
    for (const read of ways) {
      if (await history.read(() => read(petJson, id))) reads++;
      else await Bun.sleep(1);
    }
    const acknowledged = [...created].at(-1) ?? id;
    await succeeds(async () => expect(await petJson.get(acknowledged)).toBeDefined());
  };
  const reading = Array.from({ length: READERS }, async (_, reader) => {
    for (let n = reader; n < reader + ROUNDS_PER_READER; n++) {
      for (const pet of histories.slice(n % PETS)) await readPet(pet, serverAt(reader));
    }
  });
  await Promise.all([...updating, ...creating, ...reading]);
  isOver = true;
  expect(await killing).toBeGreaterThan(10);
  expect(reads).toBeGreaterThan(1_000);
  const stored = await database.sql<{ id: bigint }[]>`SELECT id FROM pets`;
  const ids = new Set(stored.map(({ id }) => id));
  for (const id of created) expect(ids.has(id)).toBe(true);
}, 120_000);
