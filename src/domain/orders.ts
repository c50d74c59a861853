import type { OrderUpdate, PetStatus } from "./resources.ts";

/** A pet changes its status when it is ordered, when its order is completed or cancelled, and by corrections. */
export const STATUS_WHEN_ORDERED: PetStatus = "pending";
export const STATUS_AFTER: Record<OrderUpdate["status"], PetStatus> = {
  completed: "sold",
  cancelled: "available",
};

/** A pet without a status can be ordered. */
export function canBeOrdered(status: PetStatus | undefined): boolean {
  return status === undefined || status === "available";
}
