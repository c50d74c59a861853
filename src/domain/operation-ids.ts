/** The operations of the public API, in the order of lists. */
export const OPERATION_IDS = [
  "listPets",
  "createPet",
  "getPet",
  "listOrders",
  "placeOrder",
  "getOrder",
  "updateOrder",
  "getKey",
] as const;
export type OperationId = (typeof OPERATION_IDS)[number];

/** The operations that accept an Idempotency-Key. The table of operations says the same (the type check). */
export type IdempotentOperation = Extract<OperationId, "createPet" | "placeOrder">;

/** Operators see which keys still call deprecated operations. */
export const DEPRECATED_OPERATIONS: readonly OperationId[] = ["getPet"];
