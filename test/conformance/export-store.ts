import { describe, expect, test } from "bun:test";
import type { Pet } from "../../src/domain/resources.ts";
import { type ExportStore, type ImportStore } from "../../src/domain/data-transfer.ts";
import type { KeyStore, Store, UsageHistoryStore } from "../../src/domain/ports.ts";
import { HOUR_MS, startOf } from "../../src/domain/usage-history.ts";
import { addPet, AT, withOpened } from "./store-fixture.ts";

/** Empty stores with data of their own, and an export of another process. */
export interface OpenedExportStore {
  readonly exports: ExportStore;
  readonly imports: ImportStore;
  readonly store: Store;
  readonly keys: KeyStore;
  readonly usageHistory: UsageHistoryStore;
  close(): Promise<void>;
}

async function all<T>(pages: AsyncIterable<readonly T[]>): Promise<T[]> {
  const items: T[] = [];
  for await (const page of pages) items.push(...page);
  return items;
}

/** More than a page of either database. */
const PETS = 12_000;

async function addPets(imports: ImportStore): Promise<void> {
  const rows = Array.from({ length: PETS }, (_, i) => ({ name: `pet ${i + 1}`, categoryId: 1n }));
  await imports.beginImport({ fingerprint: "f", source: "-", options: "", startedAt: AT });
  const progressAfter = () => ({
    rows: PETS,
    added: PETS,
    replaced: 0,
    skipped: 0,
    rejected: 0,
    rejectsBytes: 0,
  });
  const commit = { fingerprint: "f", rowsBefore: 0, progressAfter };
  await imports.importPets({ rows, onConflict: "reject", commit });
}

/** What every ExportStore does, on whatever database. */
export function exportStoreConformance(name: string, open: () => Promise<OpenedExportStore>): void {
  const withStores = withOpened(open);
  describe(`${name} as an ExportStore`, () => {
    test(
      "every pet is exported once, as it was when the export began, whatever is written meanwhile",
      withStores(async ({ exports, imports, store }) => {
        await addPets(imports);
        const pets: Pet[] = [];
        for await (const page of exports.pets()) {
          pets.push(...page);
          await addPet(store);
          await store.placeOrder({ keyId: 1, petId: BigInt(PETS) }, AT);
        }
        expect(pets.map(({ id }) => id)).toEqual(Array.from({ length: PETS }, (_, i) => BigInt(i + 1)));
        expect(pets.at(-1)).toEqual({ id: BigInt(PETS), name: `pet ${PETS}`, categoryId: 1n });
        expect((await all(exports.pets())).length).toBeGreaterThan(PETS);
      }),
    );

    test(
      "an export that is left early leaves the database free for the next one",
      withStores(async ({ exports, imports, store }) => {
        await addPets(imports);
        for await (const page of exports.pets()) {
          expect(page.length).toBeLessThan(PETS);
          break;
        }
        await addPet(store);
        expect(await all(exports.pets())).toHaveLength(PETS + 1);
      }),
    );

    test(
      "orders have their key, and keys have their secrets",
      withStores(async ({ exports, store, keys }) => {
        const by = { actor: { kind: "command line" }, at: AT } as const;
        const secret = (digit: string) => ({ hash: digit.repeat(64), hint: `pet_live_${digit}…` });
        const key = await keys.createKey({ name: "app", plan: "free", createdAt: AT }, secret("a"), by);
        await keys.addSecret(key.id, { ...secret("b"), overlapEndsAt: AT + 5 }, by);
        const other = await keys.createKey({ name: "b", plan: "pro", createdAt: AT }, secret("c"), by);
        const petId = await addPet(store);
        await store.placeOrder({ keyId: key.id, petId }, AT);
        const createdAt = new Date(AT).toISOString();
        expect(await all(exports.orders())).toEqual([
          { id: 1n, petId, status: "placed", createdAt, keyId: key.id },
        ]);
        expect(await all(exports.keys())).toEqual([
          {
            key,
            secrets: [
              { ...secret("a"), createdAt: AT, validUntil: AT + 5 },
              { ...secret("b"), createdAt: AT },
            ],
          },
          { key: other, secrets: [{ ...secret("c"), createdAt: AT }] },
        ]);
      }),
    );

    test(
      "usage is exported by hour and by day, a row per operation",
      withStores(async ({ exports, usageHistory }) => {
        const hour = startOf("hour", AT);
        for (const [sequence, start] of [hour, hour + HOUR_MS].entries()) {
          const byOperation = [{ operation: "listPets", admitted: 2, errors: 1 }] as const;
          const counts = { admitted: 3, limited: 1, banned: 0, errors: 1, byOperation, lastUsedAt: AT };
          const keys = [
            { keyId: 1, ...counts },
            { keyId: 2, ...counts },
          ];
          await usageHistory.addUsage({ writer: "w", sequence: sequence + 1, hour: start, keys });
        }
        const hours = await all(exports.usage("hour"));
        expect(hours).toHaveLength(8);
        expect(hours[0]).toEqual({
          keyId: 1,
          start: hour,
          operation: "listPets",
          admitted: 2,
          limited: 0,
          banned: 0,
          errors: 1,
        });
        const days = await all(exports.usage("day"));
        expect(days.map(({ keyId, operation, admitted }) => [keyId, operation, admitted])).toEqual([
          [1, "listPets", 4],
          [1, "none", 2],
          [2, "listPets", 4],
          [2, "none", 2],
        ]);
      }),
    );
  });
}
