import type { Rejection } from "../../src/contract/errors.ts";
import type { NewPet } from "../../src/contract/resources.ts";
import type { PetJsonSource } from "../../src/http/pet-json.ts";
import type { OperatorStore, Page, Store, WriteResult } from "../../src/domain/ports.ts";

/** An empty store with data of its own. */
export interface OpenedStore {
  readonly store: Store;
  readonly operators: OperatorStore;
  readonly petJson: PetJsonSource;
  /** Closes the store and opens it again on the same data. */
  reopen(): Promise<Store>;
  /** Closes the open store and removes its data. */
  close(): Promise<void>;
}

export type OpenStore = () => Promise<OpenedStore>;
/** Makes a test that runs on an empty store. */
export type WithStore = (work: (store: Store, opened: OpenedStore) => Promise<void>) => () => Promise<void>;

/** The time of writes where any time will do. */
export const AT = Date.UTC(2026, 10, 15, 9, 30);
/** The key of orders where any key will do. */
export const KEY_ID = 1;
export const DAY_MS = 86_400_000;

export const rex: NewPet = { name: "Rex", categoryId: 7n, status: "available" };

/** The result of a write that succeeds. */
export function resultOf(result: WriteResult | Rejection): WriteResult {
  if ("code" in result) throw new Error(`rejected: ${result.code}`);
  return result;
}

export function rejectionCode(result: object): string | undefined {
  return "code" in result ? String(result.code) : undefined;
}

export async function addPet(store: Store, pet: Partial<NewPet> = {}): Promise<bigint> {
  return resultOf(await store.createPet({ ...rex, ...pet }, AT)).id;
}

export function idsOf(page: Page<{ id: bigint }>): bigint[] {
  return page.items.map(({ id }) => id);
}
