import { storageOf } from "../../config/config.ts";
import { KEY_OPTIONS } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { petId } from "../../config/pet-types.ts";
import { printable } from "../../config/usage-error.ts";
import type { Pet } from "../../contract/resources.ts";
import type { OrderWithKey } from "../../domain/corrections.ts";
import { defineCommand } from "../command.ts";
import { columns } from "../output.ts";
import { withTarget } from "./stores.ts";
import { exactJson, petView } from "./views.ts";

const LATEST_ORDERS = 5;

interface PetWithOrders {
  readonly pet: Pet;
  readonly orders: readonly OrderWithKey[];
}

export const petsShow = defineCommand({
  name: "pets show",
  summary: "Show one pet with its latest orders",
  description: `Shows one pet with its latest orders, newest first, at most ${LATEST_ORDERS}. All of them: petstore orders list --pet ID.`,
  positionals: { ID: petId },
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: ["petstore pets show 7", "petstore pets show 7 --json"],
  async run({ positionals: { ID: id }, values }, { print }) {
    return withTarget<PetWithOrders>(
      { storage: storageOf(values), kind: "pet", id },
      async ({ store, operators }) => {
        const pet = await store.getPet(id);
        if (pet === undefined) return undefined;
        const { items } = await operators.listOrders({ petId: id, limit: LATEST_ORDERS });
        return { pet, orders: items };
      },
      ({ pet, orders }) =>
        print(values.json ? exactJson({ ...petView(pet), orders }) : columns(rows({ pet, orders }))),
    );
  },
});

function rows({ pet: { id, name, categoryId, status }, orders }: PetWithOrders): string[][] {
  return [
    ["Pet", String(id)],
    ["Name", printable(name)],
    ["Category", String(categoryId)],
    ["Status", status ?? "none"],
    ...(orders.length === 0 ? [["Orders", "none"]] : orders.map(orderRow)),
  ];
}

function orderRow({ id, keyId, status, createdAt }: OrderWithKey, index: number): string[] {
  const key = keyId === null ? "unknown key" : `key ${keyId}`;
  return [index === 0 ? "Orders" : "", [id, status, key, createdAt].join("  ")];
}
