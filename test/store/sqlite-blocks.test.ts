import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { encodePet } from "../../src/contract/resources.ts";
import type { PetStatus } from "../../src/contract/resources.ts";
import { tagged } from "../../src/etag.ts";
import { type OpenedStore, openStore } from "../../src/store/sqlite/index.ts";
import { temporaryFolder } from "./folder.ts";

/** Three whole blocks and the beginning of a fourth. */
const ANIMALS = 220;
const NAMES = ["Rex", 'Q"uote\\', "Ünï", "猫", "🐈‍⬛ and more", ',{"id":7,', '"},{"id":'];

type Step =
  | { kind: "create"; name: string }
  | { kind: "order"; id: number }
  | { kind: "end"; order: number; status: "completed" | "cancelled" }
  | { kind: "list"; after: number; limit: number; status: PetStatus | undefined }
  | { kind: "get"; id: number };

const id = fc.integer({ min: -1, max: ANIMALS + 20 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("create"), name: fc.constantFrom(...NAMES) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("order"), id }) },
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
      after: fc.integer({ min: 0, max: ANIMALS + 20 }),
      limit: fc.integer({ min: 1, max: 100 }),
      status: fc.constantFrom(undefined, undefined, "available", "pending", "sold"),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("get"), id }) },
) as fc.Arbitrary<Step>;

test("pets out of blocks are what the table holds, after any sequence of reads and writes", async () => {
  const folder = temporaryFolder();
  const opened = openStore(folder.path("store.db"));
  const { store, close } = opened;
  await Promise.all(
    Array.from({ length: ANIMALS }, (_, i) =>
      store.createPet(
        { name: `${NAMES[i % NAMES.length]} ${i}`, categoryId: BigInt(i), status: "available" },
        0,
      ),
    ),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      for (const each of steps) await take(opened, each);
    }),
    { numRuns: 60 },
  );
  await close();
  folder.remove();
}, 30_000);

async function take({ store, petJson }: OpenedStore, step: Step): Promise<void> {
  switch (step.kind) {
    case "create":
      await store.createPet({ name: step.name, categoryId: 1n }, 0);
      return;
    case "order":
      await store.placeOrder(BigInt(step.id), 0);
      return;
    case "end":
      await store.updateOrder(BigInt(step.order), step.status);
      return;
    case "get": {
      const pet = await store.getPet(BigInt(step.id));
      const id = step.id % 2 ? step.id : BigInt(step.id);
      expect(await petJson.get(id)).toEqual(pet && tagged(encodePet(pet)));
      return;
    }
    case "list": {
      const { status, limit } = step;
      const query = { after: BigInt(step.after), limit, ...(status && { status }) };
      const { items, more } = await store.listPets(query);
      expect(await petJson.list(query)).toMatchObject({
        json: `[${items.map(encodePet).join(",")}]`,
        last: items.at(-1)?.id,
        more,
      });
    }
  }
}

test("a block that lacks a pet is read from the table", async () => {
  const folder = temporaryFolder();
  const { store, close } = openStore(folder.path("store.db"));
  const add = () => store.createPet({ name: "Rex", categoryId: 1n }, 0);
  await Promise.all(Array.from({ length: 130 }, add));
  await close();
  const { Database } = await import("bun:sqlite");
  const database = new Database(folder.path("store.db"));
  database.run("DELETE FROM pets WHERE id = 30");
  database.close();

  const again = openStore(folder.path("store.db"));
  const { petJson } = again;
  for (let i = 0; i < 4; i++) {
    const page = await petJson.list({ after: 20n, limit: 20 });
    expect(page?.last).toBe(41n);
    expect(await petJson.get(30)).toBeUndefined();
    expect((await petJson.get(31))?.json).toStartWith('{"id":31,');
  }
  await again.close();
  folder.remove();
});
