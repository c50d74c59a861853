import { test } from "bun:test";
import type { Rejection } from "../../src/api/errors.ts";
import { ImportStore } from "../../src/archive/import-store.ts";
import type { TableStore } from "../../src/store/sql/table-store.ts";
import type { NewPet, OrderFilters, PetFilters } from "../../src/domain/pets-and-orders.ts";
import type { Stores } from "../../src/domain/ports/stores.ts";
import type { IdempotentRequest, ClientStore, WriteResult } from "../../src/domain/ports/pets-and-orders.ts";
import type { Page } from "../../src/domain/pages.ts";

/** Empty stores with data of their own. */
export interface OpenedStores extends Stores {
  /** What another process reads and imports. */
  readonly tables: TableStore;
  /** Selects 1 as `waits` if commits of the session wait for the disk, and 0 otherwise. */
  readonly selectWaits?: string;
  /** Lets time pass for the results of idempotent requests, on a database that counts it by its own clock. */
  pass?(ms: number): Promise<unknown>;
  /** Opens the same data once more, as another process does. */
  another(): Promise<Stores>;
  /** Closes the stores and opens them again on the same data. */
  reopen(): Promise<Stores>;
  /** Closes all of them and removes the data. */
  close(): Promise<void>;
}

export type OpenStores = () => Promise<OpenedStores>;

/** A test that runs on stores with data of their own. */
export type TestOn<Opened> = (
  name: string,
  work: (opened: Opened) => Promise<void>,
  timeoutMs?: number,
) => void;
export type TestCase = TestOn<OpenedStores>;

export function testsOn<Opened extends { close(): Promise<void> }>(
  open: () => Promise<Opened>,
): TestOn<Opened> {
  return (name, work, timeoutMs) => {
    const run = async () => {
      const opened = await open();
      await work(opened).finally(() => opened.close());
    };
    test(name, run, timeoutMs);
  };
}

/** The same stores, with an import of another process. */
export const withImports = (open: OpenStores) => async () => {
  const opened = await open();
  const shared = await opened.tables.share();
  const imports = new ImportStore(shared);
  const close = async () => {
    await shared[Symbol.asyncDispose]();
    await opened.close();
  };
  return { ...opened, imports, close };
};

/** The time of writes where any time will do. */
export const AT = Date.UTC(2026, 10, 15, 9, 30);
/** The key of orders where any key will do. */
export const KEY_ID = 1;
export const DAY_MS = 86_400_000;

/** An idempotent one. */
export const request: IdempotentRequest = {
  keyId: 1,
  idempotencyKey: "5c1f",
  fingerprint: "a".repeat(64),
};
export const rex: NewPet = { name: "Rex", categoryId: 7n, status: "available" };

type ValuesOf<Filters> = { readonly [Name in keyof Filters]-?: NonNullable<Filters[Name]> };
/** A value of every filter; a filter without one does not compile. */
export const PET_FILTER_VALUES: ValuesOf<PetFilters> = { categoryId: 7n, status: "sold" };
export const ORDER_FILTER_VALUES: ValuesOf<OrderFilters> = { status: "completed" };

/** No filter, each of them, and several together, each set with its name. */
export function filterSets<Filters extends object>(values: Filters): [name: string, set: Partial<Filters>][] {
  const sets: [string, unknown][][] = [[]];
  for (const entry of Object.entries(values)) sets.push(...sets.map((set) => [...set, entry]));
  // Each set has some of the values.
  return sets.map((set) => [
    set.map(([name]) => name).join(" and ") || "nothing",
    Object.fromEntries(set) as Partial<Filters>,
  ]);
}

/** The result of a write that succeeds. */
export function resultOf(result: WriteResult | Rejection): WriteResult {
  if ("code" in result) throw new Error(`rejected: ${result.code}`);
  return result;
}

export function rejectionCode(result: object): string | undefined {
  return "code" in result ? String(result.code) : undefined;
}

export async function addPet(store: ClientStore, pet: Partial<NewPet> = {}): Promise<bigint> {
  return resultOf(await store.createPet({ ...rex, ...pet }, AT)).id;
}

export function idsOf(page: Page<{ id: bigint }>): bigint[] {
  return page.items.map(({ id }) => id);
}
