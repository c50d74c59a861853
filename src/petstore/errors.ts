import { publicErrorTable } from "../public/errors.ts";

/** The error codes, each with its status. Within /v1 codes are added, never removed or given another status. */
export const ERRORS = publicErrorTable({
  pet_not_found: { status: 404, meaning: "No pet has this identifier.", action: "Check the identifier." },
  order_not_found: {
    status: 404,
    meaning: "Your API key has no order with this identifier.",
    action: "Check the identifier.",
  },
  pet_not_available: { status: 409, meaning: "The pet is pending or sold.", action: "Order another pet." },
  order_closed: {
    status: 409,
    meaning: "The order is already completed or cancelled.",
    action: "Fetch the order to see whether it was completed or cancelled.",
  },
  precondition_failed: {
    status: 412,
    meaning: "The order's `ETag` is not in `If-Match`.",
    action: "Fetch the order again.",
  },
});

export type ErrorCode = keyof typeof ERRORS;
