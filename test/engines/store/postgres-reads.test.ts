import { expect, test } from "bun:test";
import { encodePet } from "../../../src/domain/pets-and-orders.ts";
import { POSTGRES_DIALECT } from "../../../src/store/postgres/dialect.ts";
import type { PostgresStores } from "../../../src/store/postgres/open-postgres.ts";
import { addPet, AT, KEY_ID, resultOf, rex } from "../../conformance/store-fixture.ts";
import { jsonObjectCases } from "../../conformance/json-object.ts";
import { BY } from "../../key-store-arguments.ts";
import { withServiceValues } from "../../pets.ts";
import { emptyDatabase } from "./postgres-database.ts";

jsonObjectCases(POSTGRES_DIALECT, async (sql) => {
  await using database = await emptyDatabase();
  return (await database.sql.unsafe<object[]>(sql)).flatMap((row) => Object.values(row));
});

test.each<[string, number, number, (stores: PostgresStores, i: number) => unknown]>([
  ["reads of pets", 128, 3, ({ petJson }, i) => petJson.get(i + 1)],
  ["reads of different pages", 128, 3, ({ petJson }, i) => petJson.list({ after: BigInt(i), limit: 9 })],
  ["reads of equal pages", 128, 3, ({ petJson }) => petJson.list({ limit: 100, status: "sold" })],
  ["lookups of keys", 64, 5, ({ keys }, i) => keys.findCredential(`${i}`.repeat(32))],
])(
  "of 300 %s that arrive together at most %i share a statement, so they take %i",
  async (_, __, statements, read) => {
    await using database = await emptyDatabase();
    let responses = 0;
    const stores = await database.open({ onResponse: () => responses++ });
    await Promise.all(Array.from({ length: 300 }, (_, i) => read(stores, i)));
    expect(responses).toBe(statements);
  },
);

test("each of the reads that share a statement gets its own result", async () => {
  await using database = await emptyDatabase();
  const { clientStore, operatorPetStore, petJson } = await database.open();
  const statuses = ["sold", "available", undefined] as const;
  for (let i = 0; i < 40; i++) {
    const status = statuses[i % 3];
    await clientStore.createPet({ name: `${i}`, categoryId: 7n, ...(status && { status }) }, AT);
  }
  const reads = Array.from({ length: 400 }, async (_, i) => {
    const id = BigInt(i % 45);
    const pet = await operatorPetStore.getPet(id);
    expect((await petJson.get(Number(id)))?.json).toBe(pet && encodePet(pet));
    const status = statuses[i % 3];
    const query = { after: id, limit: 1 + (i % 7), ...(status && { status }) };
    const { items, hasMore } = await operatorPetStore.listPets(query);
    const json = `[${items.map(encodePet).join(",")}]`;
    expect(await petJson.list(query)).toMatchObject({ json, last: items.at(-1)?.id, hasMore });
  });
  await Promise.all(reads);
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
  const [{ clientStore }, { operatorPetStore }] = servers;
  const { sql } = database;
  for (let round = 0; round < 10; round++) {
    const id = await addPet(clientStore);
    const pet = withServiceValues({ id, ...rex }, (await operatorPetStore.getPet(id)) ?? {});
    await expectOnAll(servers, id, encodePet(pet));
    resultOf(await clientStore.placeOrder({ keyId: KEY_ID, petId: id }, AT));
    await expectOnAll(servers, id, encodePet({ ...pet, status: "pending" }));
    await operatorPetStore.updatePet(id, { name: "Max" }, BY);
    await expectOnAll(servers, id, encodePet({ ...pet, name: "Max", status: "pending" }));
    await sql`UPDATE pets SET name = 'Ada', status = NULL WHERE id = ${id}`;
    const ada = encodePet(withServiceValues({ id, name: "Ada", categoryId: rex.categoryId }, pet));
    await expectOnAll(servers, id, ada);
    await sql
      .begin(async (tx) => {
        await tx`UPDATE pets SET name = 'Eve' WHERE id = ${id}`;
        await expectOnAll(servers, id, ada);
        throw new Error("rolled back");
      })
      .catch(() => {});
    await expectOnAll(servers, id, ada);
    const other = await addPet(servers[1].clientStore);
    await operatorPetStore.deletePet(other, BY);
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
  const { clientStore, petJson } = await database.open();
  const ids = [await addPet(clientStore), await addPet(clientStore)];
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
