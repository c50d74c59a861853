import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { INT64_MAX, INT64_MIN } from "../../src/contract/json.ts";
import {
  encodePet,
  type NewPet,
  NewPet as NewPetSchema,
  type PetStatus,
} from "../../src/contract/resources.ts";
import { Invalid } from "../../src/contract/schema.ts";
import type { PageQuery, Store } from "../../src/domain/ports.ts";
import type { PetJsonSource } from "../../src/http/pet-json.ts";
import { tagged } from "../../src/etag.ts";
import { AT, type WithStore } from "./store-fixture.ts";

const pet: fc.Arbitrary<NewPet> = fc
  .record(
    {
      name: fc.oneof(
        fc.string({ unit: "binary", minLength: 1, maxLength: 30 }),
        fc.constant('\\"\n\u2028\u007f/<🐕'),
      ),
      categoryId: fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
      status: fc.constantFrom("available", "pending", "sold"),
    },
    { requiredKeys: ["name", "categoryId"] },
  )
  .filter((candidate) => !(NewPetSchema.read(candidate) instanceof Invalid)) as fc.Arbitrary<NewPet>;

/** A PetJsonSource returns to the byte what the contract encodes. */
export function petJsonCases(withStore: WithStore): void {
  test(
    "JSON pets are those of the listing, whatever their names, also after their status has changed",
    withStore(async (store, { petJson }) => {
      await expectAgreement(store, petJson, 5);
      await fc.assert(
        fc.asyncProperty(fc.array(pet, { minLength: 1, maxLength: 8 }), async (pets) => {
          const made = await Promise.all(pets.map((one) => store.createPet(one, AT)));
          await store.placeOrder(idOf(made[0]), AT);
        }),
        { numRuns: 20 },
      );
      await expectAgreement(store, petJson, 7);
    }),
  );
}

const idOf = (answer: object | undefined) => (answer && "id" in answer ? (answer.id as bigint) : 0n);

/** Walks through every listing both ways. */
async function expectAgreement(store: Store, petJson: PetJsonSource, limit: number): Promise<void> {
  for (const status of [undefined, "available", "pending", "sold"] as const) {
    let after: bigint | undefined = 0n;
    while (after !== undefined) {
      const query: PageQuery<PetStatus> = { after, limit, ...(status && { status }) };
      const { items, more } = await store.listPets(query);
      const last = items.at(-1)?.id;
      const json = `[${items.map(encodePet).join(",")}]`;
      expect(await petJson.list(query)).toMatchObject({ json, last, more });
      for (const item of items) {
        const pet = tagged(encodePet(item));
        expect(await petJson.get(item.id)).toStrictEqual(pet);
        expect(await petJson.get(Number(item.id))).toStrictEqual(pet);
      }
      after = more ? last : undefined;
    }
  }
  expect(await petJson.get(-1)).toBeUndefined();
}
