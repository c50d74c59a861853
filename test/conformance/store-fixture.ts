import type { Rejection } from "../../src/contract/errors.ts";
import type { NewPet } from "../../src/contract/resources.ts";
import type { PetJsonSource } from "../../src/http/pet-json.ts";
import type { Page, Store, WriteResult } from "../../src/domain/ports.ts";

/** A store on a place of its own that holds nothing yet. */
export interface OpenedStore {
  readonly store: Store;
  readonly petJson: PetJsonSource;
  /** Closes it and opens another on the same data. */
  reopen(): Promise<Store>;
  /** Closes whichever is open, and removes the data. */
  close(): Promise<void>;
}

export type OpenStore = () => Promise<OpenedStore>;
/** Makes a test of a case: runs it on a store of its own. */
export type WithStore = (work: (store: Store, opened: OpenedStore) => Promise<void>) => () => Promise<void>;

/** An instant for writes where it does not matter. */
export const AT = Date.UTC(2026, 10, 15, 9, 30);
export const DAY_MS = 86_400_000;

export const rex: NewPet = { name: "Rex", categoryId: 7n, status: "available" };

export function written(answer: WriteResult | Rejection): WriteResult {
  if ("code" in answer) throw new Error(`refused: ${answer.code}`);
  return answer;
}

/** The code of a refusal, or undefined. */
export function refusalOf(answer: object): string | undefined {
  return "code" in answer ? String(answer.code) : undefined;
}

export async function addPet(store: Store, pet: Partial<NewPet> = {}): Promise<bigint> {
  return written(await store.createPet({ ...rex, ...pet }, AT)).id;
}

export function idsOf(page: Page<{ id: bigint }>): bigint[] {
  return page.items.map(({ id }) => id);
}
