import { printable } from "../../text/formatting.ts";
import { encodeCursor } from "../../domain/cursor.ts";
import { quoted } from "../../config/quoted.ts";
import { labelOf } from "../../domain/fields.ts";
import { type Pet, PET_FIELDS, STATUS_AFTER, STATUS_WHEN_ORDERED } from "../../domain/pets-and-orders.ts";
import type { AdminOrder, BodyOf } from "../../operator/operations.ts";
import { limitOption, listCommand } from "../list-command.ts";
import { confirmed, operationCommand, YES_OPTION } from "../operation-command.ts";
import { convertedFlag, ID_TYPES } from "../operation-flags.ts";
import { columns, shortened, table, type TableColumn } from "../output.ts";

const PET_FIELD_NAMES = Object.keys(PET_FIELDS);

/** A value that a pet does not have is null in JSON. */
const petJson = (pet: Pet): Readonly<Record<string, unknown>> =>
  Object.fromEntries(PET_FIELD_NAMES.map((name) => [name, Reflect.get(pet, name) ?? null]));

const PET_COLUMNS: readonly TableColumn<Pet>[] = [
  ["ID", ({ id }) => String(id)],
  ["NAME", ({ name }) => shortened(name, 60)],
  ["CATEGORY", ({ categoryId }) => String(categoryId)],
  ["STATUS", ({ status = "-" }) => status],
];

const ORDER_COLUMNS: readonly TableColumn<AdminOrder>[] = [
  ["ID", ({ id }) => String(id)],
  ["PET", ({ petId }) => String(petId)],
  ["KEY", ({ keyId }) => String(keyId ?? "-")],
  ["STATUS", ({ status }) => status],
  ["PLACED", ({ createdAt }, screen) => screen.time(createdAt)],
  ["CLOSED", ({ closedAt }, screen) => (closedAt === null ? "-" : screen.time(closedAt))],
];

const LATEST_ORDERS = 5;

export const PET_AND_ORDER_COMMANDS = [
  listCommand({
    name: "pets list",
    operation: "listPets",
    description:
      "Lists the pets of an environment in ascending order of their IDs. When more follow, a warning says how to continue.",
    fields: {
      // A page begins after an item. The cursor of a page says the same, and is opaque.
      cursor: {
        flag: "after",
        option: {
          type: convertedFlag(ID_TYPES.petId, (id) => encodeCursor("pets", id)),
          help: "Only pets with a greater ID",
        },
      },
    },
    options: limitOption(1_000, "pets"),
    examples: ["petstore pets list", "petstore pets list --status sold --after 50 --json"],
    noun: "pets",
    columns: PET_COLUMNS,
    itemJson: petJson,
    next: ({ id }) => `add --after ${id}`,
  }),
  operationCommand({
    name: "pets add",
    operation: "createPet",
    examples: ["petstore pets add --name Rex --category 7 --status available"],
    json: petJson,
    text: (pet, { context: { screen } }) => table(PET_COLUMNS, [pet], screen),
  }),
  operationCommand({
    name: "pets show",
    operation: "getPet",
    summary: "Show one pet with its latest orders",
    description: `Shows one pet with its latest orders, newest first, at most ${LATEST_ORDERS}. All of them: petstore orders list --pet ID.`,
    async request(call, { id }) {
      const pet = await call("getPet", { id });
      const { items } = await call("listOrders", { query: { petId: pet.id, limit: LATEST_ORDERS } });
      return { pet, orders: items };
    },
    json: ({ pet, orders }) => ({ ...petJson(pet), orders }),
    text({ pet, orders }, { context: { screen } }) {
      const rows = Object.entries(petJson(pet)).map(([name, value]) => [
        name === "id" ? "Pet" : labelOf(name),
        String(value ?? "none"),
      ]);
      const latest = orders.length === 0 ? "It has no orders.\n" : table(ORDER_COLUMNS, orders, screen);
      return `${columns(rows)}\n${latest}`;
    },
  }),
  operationCommand({
    name: "pets update",
    operation: "updatePet",
    examples: [
      "petstore pets update 7 --name Rex",
      "petstore pets update 7 --category 12 --status available",
      "petstore pets update 7 --clear status",
    ],
    json: petJson,
    text: (pet, { context }) => table(PET_COLUMNS, [pet], context.screen),
  }),
  operationCommand({
    name: "pets delete",
    operation: "deletePet",
    examples: ["petstore pets delete 7", "petstore pets delete 7 --yes"],
    options: YES_OPTION,
    async request(call, { id }, execution) {
      const pet = await call("getPet", { id });
      await confirmed(`Delete pet ${id} ${quoted(pet.name)} permanently?`, execution);
      await call("deletePet", { id });
      return pet;
    },
    json: petJson,
    text: ({ id, name }) => `Pet ${id} (${printable(name)}) is deleted.\n`,
  }),
  listCommand({
    name: "orders list",
    operation: "listOrders",
    description:
      "Lists the orders of all keys, newest first. KEY is the key that placed the order; orders of earlier releases may have none. When more follow, a warning says how to continue.",
    fields: {
      keyId: { option: { type: ID_TYPES.keyId, help: "Only orders of this key" } },
      petId: { option: { type: ID_TYPES.petId, help: "Only orders for this pet" } },
      cursor: {
        flag: "before",
        option: {
          type: convertedFlag(ID_TYPES.orderId, (id) => encodeCursor("orders", id)),
          help: "Only orders with a smaller ID",
        },
      },
    },
    options: limitOption(1_000, "orders"),
    examples: [
      "petstore orders list",
      "petstore orders list --status placed --key 3",
      "petstore orders list --pet 7",
    ],
    noun: "orders",
    columns: ORDER_COLUMNS,
    next: ({ id }) => `add --before ${id}`,
  }),
  operationCommand({
    name: "orders show",
    operation: "getOrder",
    text: (order, { context: { screen } }) => table(ORDER_COLUMNS, [order], screen),
  }),
  operationCommand({
    name: "orders update",
    operation: "updateOrder",
    positionals: ["status"],
    examples: ["petstore orders update 12 completed", "petstore orders update 12 cancelled --yes"],
    options: YES_OPTION,
    async request(call, { id, body: given }, execution) {
      const body = given as BodyOf<"updateOrder">;
      const { petId, status } = await call("getOrder", { id });
      await confirmed(`Change order ${id} for pet ${petId} from ${status} to ${body.status}?`, execution);
      return call("updateOrder", { id, body });
    },
    text: ({ id, petId, status }) =>
      `Order ${id} is ${status}. Pet ${petId} is ${status === "placed" ? STATUS_WHEN_ORDERED : STATUS_AFTER[status]}.\n`,
  }),
];
