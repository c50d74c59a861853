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

/** Operators see which keys still call deprecated operations. */
export const DEPRECATED_OPERATIONS: readonly OperationId[] = ["getPet"];
