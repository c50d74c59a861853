import type { Stores } from "./ports.ts";

/** The stores that operations of operators use. */
export type OperatorStores = Pick<
  Stores,
  "petsAndOrders" | "operators" | "keys" | "policies" | "audit" | "usageHistory"
>;

/**
 * A database has its stores twice. Reads of `operatorReads` never delay those of clients, however many rows they search
 * or add up. Each sees what was acknowledged before it. They are bounded in number and time: beyond that they throw
 * Unavailable.
 */
export interface DatabaseStores extends Stores {
  readonly operatorReads: OperatorStores;
}
