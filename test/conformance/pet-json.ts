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
import { withEtag } from "../../src/etag.ts";
import { AT, KEY_ID, type WithStores } from "./store-fixture.ts";

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

/** Every PetJsonSource returns, byte for byte, what the contract encodes. */
export function petJsonCases(withStores: WithStores): void {
  test(
    "pet JSON equals the encoded pets of the store, whatever their names, also after a change of status",
    withStores(async ({ store, petJson }) => {
      await expectAgreement(store, petJson, 5);
      await fc.assert(
        fc.asyncProperty(fc.array(pet, { minLength: 1, maxLength: 8 }), async (pets) => {
          const created = await Promise.all(pets.map((pet) => store.createPet(pet, AT)));
          await store.placeOrder({ keyId: KEY_ID, petId: idOf(created[0]) }, AT);
        }),
        { numRuns: 20 },
      );
      await expectAgreement(store, petJson, 7);
    }),
  );
}

const idOf = (result: object | undefined) => (result && "id" in result ? (result.id as bigint) : 0n);

/** Reads all pages from both. */
async function expectAgreement(store: Store, petJson: PetJsonSource, limit: number): Promise<void> {
  for (const status of [undefined, "available", "pending", "sold"] as const) {
    let after: bigint | undefined = 0n;
    while (after !== undefined) {
      const query: PageQuery<PetStatus> = { after, limit, ...(status && { status }) };
      const { items, hasMore } = await store.listPets(query);
      const last = items.at(-1)?.id;
      const json = `[${items.map(encodePet).join(",")}]`;
      expect(await petJson.list(query)).toMatchObject({ json, last, hasMore });
      for (const item of items) {
        const pet = withEtag(encodePet(item));
        expect(await petJson.get(item.id)).toStrictEqual(pet);
        expect(await petJson.get(Number(item.id))).toStrictEqual(pet);
      }
      after = hasMore ? last : undefined;
    }
  }
  expect(await petJson.get(-1)).toBeUndefined();
}
