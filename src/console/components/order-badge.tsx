import type { AdminOrder, Pet } from "../admin-api.ts";
import { Badge } from "./badge.tsx";

export function OrderBadge({ status }: Pick<AdminOrder, "status">) {
  return <Badge meaning={status === "placed" ? "ok" : "none"} text={status} />;
}

export function PetBadge({ status }: { readonly status: Pet["status"] | undefined }) {
  if (status === undefined) return <span class="muted">none</span>;
  return <Badge meaning={status === "available" ? "ok" : "none"} text={status} />;
}
