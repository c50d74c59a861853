import type { OrderUpdate, PetStatus } from "../contract/resources.ts";

/** A pet changes its status only when it is ordered and when its order is completed or cancelled. */
export const STATUS_WHEN_ORDERED: PetStatus = "pending";
export const STATUS_AFTER: Record<OrderUpdate["status"], PetStatus> = {
  completed: "sold",
  cancelled: "available",
};

/** A pet without a status can be ordered. */
export function canBeOrdered(status: PetStatus | undefined): boolean {
  return status === undefined || status === "available";
}
