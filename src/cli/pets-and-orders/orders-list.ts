import { describeStorage, storageOf } from "../../config/config.ts";
import { KEY_OPTIONS } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { ORDER_LIST_OPTIONS } from "../../config/pet-options.ts";
import { defineCommand } from "../command.ts";
import { withPetStores } from "./stores.ts";
import { exactJson, orderTable } from "./views.ts";

export const ordersList = defineCommand({
  name: "orders list",
  summary: "List the orders of all API keys",
  description:
    "Lists the orders of all keys, newest first. KEY is the key that placed the order; orders of earlier releases may have none. When more follow, the last line says how to continue.",
  options: { ...ORDER_LIST_OPTIONS, ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: [
    "petstore orders list",
    "petstore orders list --status placed --key 3",
    "petstore orders list --pet 7",
  ],
  async run({ values }, { print }) {
    const storage = storageOf(values);
    const { status, key, pet, before, limit } = values;
    const filters = {
      ...(status !== undefined && { status }),
      ...(key !== undefined && { keyId: key }),
      ...(pet !== undefined && { petId: pet }),
      ...(before !== undefined && { before }),
    };
    const page = await withPetStores(storage, async ({ operators }) =>
      operators.listOrders({ ...filters, limit }),
    );
    const { items, hasMore } = page ?? { items: [], hasMore: false };
    if (values.json) await print(exactJson(items));
    else if (items.length > 0) {
      await print(
        orderTable(items) + (hasMore ? `Older orders follow: add --before ${items.at(-1)?.id}\n` : ""),
      );
    } else {
      const such = Object.keys(filters).length > 0 ? "such orders" : "orders";
      await print(`There are no ${such} in ${values.env} (data: ${describeStorage(storage).data}).\n`);
    }
    return undefined;
  },
});
