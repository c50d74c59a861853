import { PET_STATUSES, type PetFilters } from "../../src/domain/resources.ts";

/*
 * What the tests of both databases share that measure how much a page of a list reads. The data are as skewed as data
 * of a shop become: half of the pets are in one category and sold, and few of the others are not.
 */

export const PETS = 20_000;

/** Inserts the pets; `numbers` is a table with the numbers `n` from 1 to PETS. */
export const insertPets = (numbers: string) => `INSERT INTO pets (name, category_id, status)
  SELECT 'Rex', CASE WHEN n % 2 = 1 THEN 1 ELSE n % 90 END,
    CASE WHEN n % 2 = 1 OR n % 50 > 0 THEN 'sold' WHEN n % 100 = 0 THEN NULL ELSE 'available' END
  FROM ${numbers}`;

/** For each filter, values that half of the rows have, few and none; a filter without values does not compile. */
type ValuesOf<Filters> = { readonly [Name in keyof Filters]-?: readonly NonNullable<Filters[Name]>[] };

const PET_VALUES: ValuesOf<PetFilters> = { categoryId: [1n, 40n, 77n, 5_000n], status: PET_STATUSES };

/** Every set of the filters, with each of their values. */
function combinations<Filters extends object>(values: ValuesOf<Filters>): readonly Partial<Filters>[] {
  const sets: [string, unknown][][] = [[]];
  for (const [name, some] of Object.entries<readonly unknown[]>(values)) {
    const given = some.flatMap((value) => sets.map((set) => set.concat([[name, value]])));
    sets.push(...given);
  }
  // Each set has some of the filters.
  return sets.map((set) => Object.fromEntries(set) as Partial<Filters>);
}

/** The pages of pets that are measured: with every combination of filters, from the start, the middle and the end. */
export const PET_QUERIES = [0n, 10_000n, BigInt(PETS) - 10n].flatMap((after) =>
  combinations(PET_VALUES).map((filters) => Object.assign(filters, { after, limit: 5 })),
);
