import { keyId } from "./key-options.ts";
import type { Option, Options } from "./parse-options.ts";
import { categoryId, newPetStatus, orderId, orderStatus, petId, petName, petStatus } from "./pet-types.ts";
import { integer } from "./value-types.ts";

const limit = {
  type: integer({ min: 1, max: 1_000 }),
  default: 50,
  help: "Maximum number of rows",
} as const satisfies Option;

/** Options of `petstore pets list`. */
export const PET_LIST_OPTIONS = {
  status: { type: petStatus, help: "Only pets with this status" },
  after: { type: petId, help: "Only pets with a greater ID" },
  limit,
} as const satisfies Options;

/** Options of `petstore pets update`. */
export const PET_UPDATE_OPTIONS = {
  name: { type: petName, help: "New name" },
  category: { type: categoryId, help: "New category" },
  status: { type: newPetStatus, help: "New status; none removes it" },
} as const satisfies Options;

/** Options of `petstore orders list`. */
export const ORDER_LIST_OPTIONS = {
  status: { type: orderStatus, help: "Only orders with this status" },
  key: { type: keyId, help: "Only orders of this key" },
  pet: { type: petId, help: "Only orders for this pet" },
  before: { type: orderId, help: "Only orders with a smaller ID" },
  limit,
} as const satisfies Options;
