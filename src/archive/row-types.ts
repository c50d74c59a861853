import { orderFields, Pet, PetStatus, petFields } from "../domain/resources.ts";
import { dateTime, type Infer, integer, nullable, object } from "../api/schema.ts";
import {
  type ImportedOrder,
  type ImportedPet,
  MAX_KEPT_ID,
  type RowProblem,
} from "../domain/data-transfer.ts";
import type { RowType } from "./row-parser.ts";

const KEPT_ID = "id must be from 1 to 2^62";

const hasKeptId = ({ id }: { readonly id: bigint }) => id >= 1n && id <= MAX_KEPT_ID;

export const PET_FIELDS = ["id", "name", "categoryId", "status"] as const;

const NewPetRow = object({ required: petFields, optional: { status: PetStatus } });

export const PETS: RowType<ImportedPet> = {
  schema: NewPetRow,
  fields: PET_FIELDS,
  integers: new Set(["id", "categoryId"]),
  // The schema has read it.
  toRow: (value) => value as Infer<typeof NewPetRow>,
};

export const PETS_WITH_IDS: RowType<ImportedPet> = {
  ...PETS,
  schema: Pet,
  toRow(value): ImportedPet | RowProblem {
    const pet = value as Pet;
    return hasKeptId(pet) ? pet : KEPT_ID;
  },
};

export const ORDER_FIELDS = ["id", "petId", "status", "createdAt", "keyId"] as const;

const { id, ...fieldsOfOrders } = orderFields;
const required = { ...fieldsOfOrders, createdAt: dateTime() };
const optional = { keyId: nullable(integer({ min: 1, max: Number.MAX_SAFE_INTEGER })) };
const NewOrderRow = object({ required, optional });
const OrderRow = object({ required: { id, ...required }, optional });

export const ORDERS: RowType<ImportedOrder> = {
  schema: NewOrderRow,
  fields: ORDER_FIELDS,
  integers: new Set(["id", "petId", "keyId"]),
  toRow: (value) => orderOf(value as Infer<typeof NewOrderRow>),
};

export const ORDERS_WITH_IDS: RowType<ImportedOrder> = {
  ...ORDERS,
  schema: OrderRow,
  toRow(value): ImportedOrder | RowProblem {
    const order = value as Infer<typeof OrderRow>;
    return hasKeptId(order) ? { ...orderOf(order), id: order.id } : KEPT_ID;
  },
};

function orderOf({ petId, status, createdAt, keyId = null }: Infer<typeof NewOrderRow>): ImportedOrder {
  return { petId, status, createdAt: Date.parse(createdAt), keyId };
}
