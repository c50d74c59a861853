import { encodeCursor, type ListName } from "../api/cursor.ts";
import { categoryId, finalOrderStatus, newPetStatus, orderId, petId } from "../config/pet-types.ts";
import type { Option } from "../config/parse-options.ts";
import { printable, UsageError } from "../config/usage-error.ts";
import { integer } from "../config/value-types.ts";
import { STATUS_AFTER } from "../domain/orders.ts";
import type { Pet } from "../domain/resources.ts";
import type { AdminOrder } from "../operator/operations.ts";
import { defineCommand } from "./command.ts";
import { OperationFlags } from "./operation-flags.ts";
import { firstItems, OPERATOR_OPTIONS, SERVER_SETTINGS, whereOf, withOperator } from "./operator.ts";
import { columns, json, shortened } from "./output.ts";

const OPTIONS = { ...OPERATOR_OPTIONS, ...SERVER_SETTINGS };
const LIMIT = {
  limit: { type: integer({ min: 1, max: 1_000 }), default: 50, help: "Maximum number of rows" },
} as const;

/** A page begins after an item. The cursor of a page says the same, and is opaque. */
const pageAfter = (flag: "after" | "before", list: ListName, option: Option) => ({
  flag,
  option,
  toField: (id: bigint) => encodeCursor(list, id),
});
const PETS = new OperationFlags("listPets", {
  limit: null,
  cursor: pageAfter("after", "pets", { type: petId, help: "Only pets with a greater ID" }),
});
const ORDERS = new OperationFlags("listOrders", {
  limit: null,
  keyId: { flag: "key", option: { type: orderId, help: "Only orders of this key" } },
  petId: { flag: "pet", option: { type: petId, help: "Only orders for this pet" } },
  cursor: pageAfter("before", "orders", { type: orderId, help: "Only orders with a smaller ID" }),
});
const UPDATE = new OperationFlags("updatePet", {
  categoryId: { flag: "category", option: { type: categoryId, help: "New category" } },
  status: {
    flag: "status",
    option: { type: newPetStatus, help: "New status; none removes it" },
    toField: (status: string) => (status === "none" ? null : status),
  },
});

/** A pet without a status has null in JSON. */
const petJson = ({ status = null, ...pet }: Omit<Pet, "status"> & { status?: string | null }) => ({
  ...pet,
  status,
});

function petTable(pets: readonly Pet[]): string {
  const rows = pets.map(({ id, name, categoryId, status = "-" }) => [
    String(id),
    shortened(name, 60),
    String(categoryId),
    status,
  ]);
  return columns([["ID", "NAME", "CATEGORY", "STATUS"], ...rows]);
}

function orderTable(orders: readonly AdminOrder[]): string {
  const rows = orders.map(({ id, petId: pet, keyId, status, createdAt }) => [
    String(id),
    String(pet),
    String(keyId ?? "-"),
    status,
    createdAt,
  ]);
  return columns([["ID", "PET", "KEY", "STATUS", "PLACED"], ...rows]);
}

const petsList = defineCommand({
  name: "pets list",
  summary: "List the pets",
  description:
    "Lists the pets of an environment in ascending order of their IDs. When more follow, the last line says how to continue.",
  options: { ...PETS.options, ...LIMIT, ...OPTIONS },
  examples: ["petstore pets list", "petstore pets list --status sold --after 50 --json"],
  run: (input, context) =>
    withOperator(input, context, async (call) => {
      const { query } = PETS.inputOf(input.values, context.clock.now());
      const { cursor, ...conditions } = query as { cursor?: string };
      const { items, hasMore } = await firstItems(
        input.values.limit,
        (page) => call("listPets", { query: { ...conditions, ...page } }),
        cursor,
      );
      if (input.values.json) await context.print(json(items.map(petJson)));
      else if (items.length === 0) await context.print(noneText("pets", query, whereOf(input.values)));
      else
        await context.print(
          petTable(items) + (!hasMore ? "" : `More pets follow: add --after ${items.at(-1)?.id}\n`),
        );
      return undefined;
    }),
});

const ordersList = defineCommand({
  name: "orders list",
  summary: "List the orders of all API keys",
  description:
    "Lists the orders of all keys, newest first. KEY is the key that placed the order; orders of earlier releases may have none. When more follow, the last line says how to continue.",
  options: { ...ORDERS.options, ...LIMIT, ...OPTIONS },
  examples: [
    "petstore orders list",
    "petstore orders list --status placed --key 3",
    "petstore orders list --pet 7",
  ],
  run: (input, context) =>
    withOperator(input, context, async (call) => {
      const { query } = ORDERS.inputOf(input.values, context.clock.now());
      const { cursor, ...conditions } = query as { cursor?: string };
      const { items, hasMore } = await firstItems(
        input.values.limit,
        (page) => call("listOrders", { query: { ...conditions, ...page } }),
        cursor,
      );
      if (input.values.json) await context.print(json(items));
      else if (items.length === 0) await context.print(noneText("orders", query, whereOf(input.values)));
      else
        await context.print(
          orderTable(items) + (!hasMore ? "" : `Older orders follow: add --before ${items.at(-1)?.id}\n`),
        );
      return undefined;
    }),
});

function noneText(what: string, conditions: Readonly<Record<string, unknown>>, where: string): string {
  const such = Object.keys(conditions).length > 0 ? `such ${what}` : what;
  return `There are no ${such} in ${where}.\n`;
}

const LATEST_ORDERS = 5;

const petsShow = defineCommand({
  name: "pets show",
  summary: "Show one pet with its latest orders",
  description: `Shows one pet with its latest orders, newest first, at most ${LATEST_ORDERS}. All of them: petstore orders list --pet ID.`,
  positionals: { ID: petId },
  options: OPTIONS,
  examples: ["petstore pets show 7", "petstore pets show 7 --json"],
  run: (input, context) =>
    withOperator(input, context, async (call) => {
      const pet = await call("getPet", { id: input.positionals.ID });
      const { items: orders } = await call("listOrders", { query: { petId: pet.id, limit: LATEST_ORDERS } });
      const rows = [
        ["Pet", String(pet.id)],
        ["Name", printable(pet.name)],
        ["Category", String(pet.categoryId)],
        ["Status", pet.status ?? "none"],
        ...(orders.length === 0 ? [["Orders", "none"]] : orders.map(orderRow)),
      ];
      await context.print(input.values.json ? json({ ...petJson(pet), orders }) : columns(rows));
      return undefined;
    }),
});

function orderRow({ id, keyId, status, createdAt }: AdminOrder, index: number): string[] {
  const key = keyId === null ? "unknown key" : `key ${keyId}`;
  return [index === 0 ? "Orders" : "", [id, status, key, createdAt].join("  ")];
}

const petsUpdate = defineCommand({
  name: "pets update",
  summary: "Correct the name, category or status of a pet",
  description:
    "Changes the given fields of a pet. Running servers show the change within a second. A pet with a placed order keeps its status: complete or cancel the order first. The change is in the audit trail.",
  positionals: { ID: petId },
  options: { ...UPDATE.options, ...OPTIONS },
  examples: [
    "petstore pets update 7 --name Rex",
    "petstore pets update 7 --category 12 --status available",
    "petstore pets update 7 --status none",
  ],
  async run(input, context) {
    const { body } = UPDATE.inputOf(input.values, context.clock.now());
    if (Object.keys(body).length === 0)
      return new UsageError("pets update needs --name, --category or --status");
    return withOperator(input, context, async (call) => {
      const pet = await call("updatePet", { id: input.positionals.ID, body });
      await context.print(input.values.json ? json(petJson(pet)) : petTable([pet]));
      return undefined;
    });
  },
});

const petsDelete = defineCommand({
  name: "pets delete",
  summary: "Delete a pet that was never ordered",
  description:
    "Deletes a pet. It cannot be undone, and the ID is not used again. Running servers respond 404 within a second. A pet that has ever been ordered is kept, because its orders name it. The deletion is in the audit trail, with the pet as it was.",
  positionals: { ID: petId },
  options: OPTIONS,
  examples: ["petstore pets delete 7"],
  run: (input, context) =>
    withOperator(input, context, async (call) => {
      const pet = await call("getPet", { id: input.positionals.ID });
      await call("deletePet", { id: pet.id });
      await context.print(
        input.values.json ? json(petJson(pet)) : `Pet ${pet.id} (${printable(pet.name)}) is deleted.\n`,
      );
      return undefined;
    }),
});

const ordersShow = defineCommand({
  name: "orders show",
  summary: "Show one order of any API key",
  description: "Shows one order with the key that placed it. Orders of earlier releases may have no key.",
  positionals: { ID: orderId },
  options: OPTIONS,
  examples: ["petstore orders show 12", "petstore orders show 12 --json"],
  run: (input, context) =>
    withOperator(input, context, async (call) => {
      const order = await call("getOrder", { id: input.positionals.ID });
      const rows = [
        ["Order", String(order.id)],
        ["Pet", String(order.petId)],
        ["Key", order.keyId === null ? "unknown" : String(order.keyId)],
        ["Status", order.status],
        ["Placed", order.createdAt],
      ];
      await context.print(input.values.json ? json(order) : columns(rows));
      return undefined;
    }),
});

const ordersUpdate = defineCommand({
  name: "orders update",
  summary: "Complete or cancel an order of any API key",
  description:
    "Completes or cancels a placed order, whichever key it belongs to. Its pet becomes sold or available. Running servers show the change within a second. The change is in the audit trail.",
  positionals: { ID: orderId, STATUS: finalOrderStatus },
  options: OPTIONS,
  examples: ["petstore orders update 12 completed", "petstore orders update 12 cancelled"],
  run: (input, context) =>
    withOperator(input, context, async (call) => {
      const { ID: id, STATUS: status } = input.positionals;
      const order = await call("updateOrder", { id, body: { status } });
      const line = `Order ${id} is ${status}. Pet ${order.petId} is ${STATUS_AFTER[status]}.`;
      await context.print(input.values.json ? json(order) : `${line}\n`);
      return undefined;
    }),
});

export const PET_COMMANDS = [
  petsList,
  petsShow,
  petsUpdate,
  petsDelete,
  ordersList,
  ordersShow,
  ordersUpdate,
];
