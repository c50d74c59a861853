import type { OrderUpdate, PetStatus } from "../contract/resources.ts";

/** The only transitions a pet's status has: ordered, and how the order ended. */
export const STATUS_WHEN_ORDERED: PetStatus = "pending";
export const STATUS_AFTER: Record<OrderUpdate["status"], PetStatus> = {
  completed: "sold",
  cancelled: "available",
};

/** A pet without a status can be ordered like an available one. */
export function canBeOrdered(status: PetStatus | undefined): boolean {
  return status === undefined || status === "available";
}
