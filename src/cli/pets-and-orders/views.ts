import { toJson } from "../../contract/json.ts";
import type { Pet, PetStatus } from "../../contract/resources.ts";
import type { OrderWithKey } from "../../domain/corrections.ts";
import { columns, shortened } from "../output.ts";

/** A pet as `pets list` and `pets show` print it. */
export interface PetView {
  readonly id: bigint;
  readonly name: string;
  readonly categoryId: bigint;
  readonly status: PetStatus | null;
}

export function petView({ id, name, categoryId, status }: Pet): PetView {
  return { id, name, categoryId, status: status ?? null };
}

/** JSON in which the identifiers are exact. */
export function exactJson(value: unknown): string {
  return `${toJson(value, 2)}\n`;
}

export function petTable(pets: readonly Pet[]): string {
  const header = ["ID", "NAME", "CATEGORY", "STATUS"];
  return columns([
    header,
    ...pets.map(({ id, name, categoryId, status = "-" }) => [
      String(id),
      shortened(name, 60),
      String(categoryId),
      status,
    ]),
  ]);
}

export function orderTable(orders: readonly OrderWithKey[]): string {
  const header = ["ID", "PET", "KEY", "STATUS", "PLACED"];
  return columns([
    header,
    ...orders.map(({ id, petId, keyId, status, createdAt }) => [
      String(id),
      String(petId),
      String(keyId ?? "-"),
      status,
      createdAt,
    ]),
  ]);
}
