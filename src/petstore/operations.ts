import { Api, type BoundedList, errorsOf, type InputOf, type RejectionOf } from "../api/api.ts";
import { cursorSchema } from "../domain/cursor.ts";
import { array, queryIdentifiers, queryInteger, type Schema } from "../api/schema.ts";
import { BASE_PATH } from "../domain/paths.ts";
import { MAX_IDS, PAGE_LIMIT } from "../domain/size-limits.ts";
import {
  NewOrder,
  NewPet,
  Order,
  ORDER_FILTERS,
  OrderStatus,
  OrderUpdate,
  Pet,
  PET_FILTERS,
  PetStatus,
} from "../domain/pets-and-orders.ts";
import type { IdempotentOperation, OperationId } from "../domain/operation-ids.ts";
import { CallerKey, RateLimitWindow } from "./caller-key.ts";
import type { PublicOperation } from "../public/endpoint.ts";
import { deprecatedDescription } from "./deprecation.ts";
import { type ErrorCode, ERRORS } from "./errors.ts";

/** A row of the table of operations. */
export interface PetstoreOperation extends PublicOperation<ErrorCode> {
  readonly tag: "Pets" | "Orders" | "Key";
  /** The method of the client library that sends one such request, or that for each status in the body. */
  readonly clientMethod: string | Readonly<Record<string, string>>;
}

/** The errors that every operation has, from authentication, rate limits, and the service itself. */
export const COMMON_ERRORS = [
  "missing_api_key",
  "invalid_api_key",
  "rate_limited",
  "key_banned",
  "internal_error",
  "unavailable",
] as const satisfies readonly ErrorCode[];

const IDEMPOTENCY_ERRORS = ["invalid_parameter", "idempotency_conflict", "idempotency_key_reused"] as const;

const limit = queryInteger(PAGE_LIMIT);

const pageOf = <T>(item: Schema<T>, name: string) =>
  array(item, {
    max: PAGE_LIMIT.max,
    json: { description: `A page of ${name}, in ascending order of their identifiers.` },
  });
const PetList = pageOf(Pet, "pets");
const OrderList = pageOf(Order, "orders");

/** The schemas of bodies and of what they consist of, by their names in the OpenAPI document. */
export const NAMED_SCHEMAS = {
  Pet,
  NewPet,
  PetStatus,
  Order,
  NewOrder,
  OrderUpdate,
  OrderStatus,
  ApiKey: CallerKey,
  RateLimitWindow,
  Pets: PetList,
  Orders: OrderList,
};

const GET_PET_DEPRECATION = {
  since: new Date("2026-11-14T00:00:00Z"),
  sunset: new Date("2030-12-05T00:00:00Z"),
  replacement: "/pets?id={petId}",
  list: { path: "/pets?status=available", title: "by status" },
} as const;

const ORDER_ID = {
  name: "orderId",
  notFound: "order_not_found",
  description: "Identifier of an order that your API key placed",
} as const;

/** The stores keep the results of these operations by their Idempotency-Key, and of no others. */
type KeyAcceptance<Id> = Id extends IdempotentOperation
  ? { readonly acceptsIdempotencyKey: true }
  : { readonly acceptsIdempotencyKey?: never };

/** The table of operations. Router, validation, OpenAPI document and the types of the handlers derive from it. */
export const OPERATIONS = {
  listPets: {
    method: "GET",
    path: "/pets",
    tag: "Pets",
    clientMethod: "pets.listPage",
    summary: "List pets",
    description:
      'Lists pets in ascending order of their identifiers. If there are more, `Link` has the URL of the next page as `rel="next"`. Follow it until a response has no such link. `id` selects pets by their identifiers; those that do not exist are left out.',
    query: { limit, ...PET_FILTERS, id: queryIdentifiers(MAX_IDS), cursor: cursorSchema("pets") },
    // On SQLite, 1,024 pets and a few more are in no index of categories yet.
    maxRowsRead: 1_200,
    success: { status: 200, description: "A page of pets", body: PetList, headers: ["ETag", "Link"] },
  },
  createPet: {
    method: "POST",
    path: "/pets",
    tag: "Pets",
    clientMethod: "pets.create",
    summary: "Add a pet",
    description:
      "Adds a pet and responds with it, including its identifier. The response is sent after the pet is on disk. Send an `Idempotency-Key` to make a retry safe.",
    body: NewPet,
    acceptsIdempotencyKey: true,
    success: {
      status: 201,
      description: "The new pet",
      body: Pet,
      headers: ["Location", "Idempotent-Replayed"],
    },
    errors: IDEMPOTENCY_ERRORS,
  },
  getPet: {
    method: "GET",
    path: "/pets/{petId}",
    tag: "Pets",
    clientMethod: "pets.get",
    summary: "Fetch one pet",
    description: deprecatedDescription(GET_PET_DEPRECATION),
    identifier: { name: "petId", notFound: "pet_not_found", description: "Identifier of the pet" },
    success: {
      status: 200,
      description: "The pet",
      body: Pet,
      headers: ["ETag", "Deprecation", "Sunset", "Link"],
    },
    errors: ["operation_removed"],
    deprecated: GET_PET_DEPRECATION,
  },
  listOrders: {
    method: "GET",
    path: "/store/orders",
    tag: "Orders",
    clientMethod: "orders.listPage",
    summary: "List orders",
    description:
      "Lists the orders that your API key placed, in ascending order of their identifiers. Pagination works as for pets.",
    query: { limit, ...ORDER_FILTERS, cursor: cursorSchema("orders") },
    maxRowsRead: PAGE_LIMIT.max + 1,
    success: { status: 200, description: "A page of orders", body: OrderList, headers: ["ETag", "Link"] },
  },
  placeOrder: {
    method: "POST",
    path: "/store/orders",
    tag: "Orders",
    clientMethod: "orders.place",
    summary: "Place an order",
    description:
      "Orders one pet. The pet must not be `pending` or `sold`; it becomes `pending` in the same transaction. The order belongs to your API key: other keys cannot see or update it. Send an `Idempotency-Key` to make a retry safe.",
    body: NewOrder,
    acceptsIdempotencyKey: true,
    success: {
      status: 201,
      description: "The new order",
      body: Order,
      headers: ["ETag", "Location", "Idempotent-Replayed"],
    },
    errors: [...IDEMPOTENCY_ERRORS, "pet_not_found", "pet_not_available"],
  },
  getOrder: {
    method: "GET",
    path: "/store/orders/{orderId}",
    tag: "Orders",
    clientMethod: "orders.get",
    summary: "Fetch one order",
    description:
      "Responds with an order that your API key placed. Another key's order gets 404, as if it did not exist.",
    identifier: ORDER_ID,
    success: { status: 200, description: "The order", body: Order, headers: ["ETag"] },
  },
  updateOrder: {
    method: "PATCH",
    path: "/store/orders/{orderId}",
    tag: "Orders",
    clientMethod: { completed: "orders.complete", cancelled: "orders.cancel" },
    summary: "Complete or cancel an order",
    description:
      "`completed` makes the pet `sold`. `cancelled` makes it `available` again. Both are final; the status that the order already has changes nothing, so a retry is safe. Another key's order gets 404, as if it did not exist.",
    identifier: ORDER_ID,
    body: OrderUpdate,
    acceptsIfMatch: true,
    success: { status: 200, description: "The updated order", body: Order, headers: ["ETag"] },
    errors: ["order_closed", "precondition_failed"],
  },
  getKey: {
    method: "GET",
    path: "/key",
    tag: "Key",
    clientMethod: "key.get",
    summary: "Fetch your API key",
    description:
      "Responds with the plan, the access and the expiry of the API key that the request has, and with what is left of both rate limits. The request counts like any other. Secrets are not shown.",
    success: { status: 200, description: "Your API key", body: CallerKey, headers: ["ETag"] },
  },
} as const satisfies { readonly [Id in OperationId]: PetstoreOperation & BoundedList & KeyAcceptance<Id> };

/** The URL of a new pet after the base URL, without the identifier. It stays when getPet is removed. */
export const NEW_PET_PATH = `${OPERATIONS.createPet.path}?id=`;

/** The public API. */
export const PETSTORE_API = new Api({ basePath: BASE_PATH, errors: ERRORS, operations: OPERATIONS });

/** The error codes of an operation, without those of every operation. A read-only key may use only GET. */
export function operationErrors(operation: PetstoreOperation): ErrorCode[] {
  const codes = errorsOf(operation);
  return operation.method === "GET" ? codes : ["read_only_key", ...codes];
}

/** Whether `If-None-Match` gets 304. The `ETag` of another method's response is for `If-Match`. */
export function isConditionalGet({ method, success }: PetstoreOperation): boolean {
  return method === "GET" && success.headers.includes("ETag");
}

/** The path of each operation, with the base path. */
export const OPERATION_PATHS: ReadonlyMap<string, string> = new Map(
  PETSTORE_API.rows.map(([id, { path }]) => [id, BASE_PATH + path]),
);

/** The statuses of each operation's responses. */
export const RESPONSE_STATUSES: ReadonlyMap<string, readonly number[]> = new Map(
  PETSTORE_API.rows.map(([id, operation]: readonly [OperationId, PetstoreOperation]) => {
    const { success } = operation;
    const notModified = isConditionalGet(operation) ? [304] : [];
    return [
      id,
      [
        success.status,
        ...notModified,
        ...operationErrors(operation).map((code) => ERRORS[code].status),
        500,
        503,
      ],
    ];
  }),
);

type Table = typeof OPERATIONS;
export type PetstoreInput<Id extends OperationId> = InputOf<Table[Id]>;

/** A success as the operation declares it, with headers that it declares. */
export interface Success<Id extends OperationId> {
  /** The body as JSON text. */
  readonly body: string;
  readonly headers?: { readonly [H in Table[Id]["success"]["headers"][number]]?: string };
}
export type OperationRejection<Id extends OperationId> = RejectionOf<Table[Id]>;
