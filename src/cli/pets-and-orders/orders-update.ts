import { storageOf } from "../../config/config.ts";
import { KEY_OPTIONS } from "../../config/key-options.ts";
import { STORAGE_OPTIONS } from "../../config/options.ts";
import { finalOrderStatus, orderId } from "../../config/pet-types.ts";
import type { OrderWithKey } from "../../domain/corrections.ts";
import { STATUS_AFTER } from "../../domain/orders.ts";
import { defineCommand } from "../command.ts";
import { by, withTarget } from "./stores.ts";
import { exactJson } from "./views.ts";

export const ordersUpdate = defineCommand({
  name: "orders update",
  summary: "Complete or cancel an order of any API key",
  description:
    "Completes or cancels a placed order, whichever key it belongs to. Its pet becomes sold or available. Running servers show the change within a second. The change is in the audit trail.",
  positionals: { ID: orderId, STATUS: finalOrderStatus },
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json },
  examples: ["petstore orders update 12 completed", "petstore orders update 12 cancelled"],
  async run({ positionals: { ID: id, STATUS: status }, values }, { clock, user, print }) {
    return withTarget<OrderWithKey>(
      { storage: storageOf(values), kind: "order", id },
      ({ operators }) => operators.updateOrder(id, status, by({ clock, user })),
      (order) =>
        print(
          values.json
            ? exactJson(order)
            : `Order ${id} is ${status}. Pet ${order.petId} is ${STATUS_AFTER[status]}.\n`,
        ),
    );
  },
});
