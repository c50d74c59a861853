import type { ClientStore, Stores } from "./ports.ts";

/** The stores that operations of operators use. Of the pets, they only read. */
export interface OperatorStores extends Pick<
  Stores,
  "inventory" | "operators" | "keys" | "policies" | "audit" | "usageHistory"
> {
  readonly store: Pick<ClientStore, "listPets" | "getPet">;
}

/**
 * A database has its stores twice. Reads of `operatorReads` never delay those of clients, however many rows they search
 * or add up. Each sees what was acknowledged before it. They are bounded in number and time: beyond that they throw
 * Unavailable.
 */
export interface DatabaseStores extends Stores {
  readonly operatorReads: OperatorStores;
}
