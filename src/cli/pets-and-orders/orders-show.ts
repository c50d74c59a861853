import { storageOf } from "../../config/config.ts";
import { KEY_OPTIONS } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { orderId } from "../../config/pet-types.ts";
import type { OrderWithKey } from "../../domain/corrections.ts";
import { defineCommand } from "../command.ts";
import { columns } from "../output.ts";
import { withTarget } from "./stores.ts";
import { exactJson } from "./views.ts";

export const ordersShow = defineCommand({
  name: "orders show",
  summary: "Show one order of any API key",
  description: "Shows one order with the key that placed it. Orders of earlier releases may have no key.",
  positionals: { ID: orderId },
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: ["petstore orders show 12", "petstore orders show 12 --json"],
  async run({ positionals: { ID: id }, values }, { print }) {
    return withTarget<OrderWithKey>(
      { storage: storageOf(values), kind: "order", id },
      async ({ operators }) => operators.getOrder(id),
      (order) =>
        print(
          values.json
            ? exactJson(order)
            : columns([
                ["Order", String(order.id)],
                ["Pet", String(order.petId)],
                ["Key", order.keyId === null ? "unknown" : String(order.keyId)],
                ["Status", order.status],
                ["Placed", order.createdAt],
              ]),
        ),
    );
  },
});
