import { cursorOf } from "./cursor.ts";
import type { ErrorCode, Rejection } from "./errors.ts";
import type { Identifier } from "./json.ts";
import { queryInteger, type Infer, type Schema } from "./schema.ts";
import { NewOrder, NewPet, Order, OrderStatus, OrderUpdate, Pet, PetStatus } from "./resources.ts";

/** In front of every path of the API. */
export const BASE_PATH = "/v1";

/**
 * The table of operations. The router, the validation, the OpenAPI document and the handlers' types all come from it:
 * what is not here does not exist, and what is here must be handled.
 */
export interface Operation {
  readonly method: "GET" | "POST" | "PATCH";
  /** Relative to the base address; at most one `{parameter}`, the identifier. */
  readonly path: string;
  readonly tag: "Pets" | "Orders";
  readonly summary: string;
  readonly description: string;
  /** The path's identifier, and the 404 that answers one that names nothing. */
  readonly identifier?: { name: string; notFound: ErrorCode; description: string };
  readonly query?: Readonly<Record<string, Schema<unknown>>>;
  readonly body?: Schema<unknown>;
  /** Whether `Idempotency-Key` is honoured. */
  readonly retriable?: true;
  readonly success: {
    status: 200 | 201;
    description: string;
    body: "one" | "list";
    of: Schema<unknown>;
    headers: readonly AnswerHeader[];
  };
  /** Beyond COMMON_ERRORS. */
  readonly errors: readonly ErrorCode[];
  readonly deprecated?: { since: Date; sunset: Date; replacement: string };
}

/** Headers of a successful answer that depend on the operation; the rate-limit triple is on every answer. */
export type AnswerHeader = "ETag" | "Link" | "Location" | "Deprecation" | "Sunset" | "Idempotent-Replayed";

/** What any operation may answer: admission and faults come before and around the work. */
export const COMMON_ERRORS = [
  "missing_api_key",
  "invalid_api_key",
  "rate_limited",
  "key_banned",
  "internal_error",
  "unavailable",
] as const satisfies readonly ErrorCode[];

const BODY_ERRORS = ["invalid_json", "invalid_body", "body_too_large", "unsupported_media_type"] as const;
const RETRY_ERRORS = ["invalid_parameter", "idempotency_conflict", "idempotency_key_reused"] as const;

export const PAGE_LIMIT = { min: 1, max: 100, default: 20 } as const;
const limit = queryInteger(PAGE_LIMIT);

export const OPERATIONS = {
  listPets: {
    method: "GET",
    path: "/pets",
    tag: "Pets",
    summary: "List pets",
    description:
      'Pets in the order of their identifiers, oldest first. When there are more, `Link` carries the address of the next page as `rel="next"`; follow it until an answer comes without one.',
    query: { limit, status: PetStatus, cursor: cursorOf("pets") },
    success: {
      status: 200,
      description: "A page of pets",
      body: "list",
      of: Pet,
      headers: ["ETag", "Link"],
    },
    errors: ["invalid_parameter"],
  },
  createPet: {
    method: "POST",
    path: "/pets",
    tag: "Pets",
    summary: "Add a pet",
    description:
      "Adds a pet and answers with it, identifier included. The answer is written after the pet is safely on disk. Send an `Idempotency-Key` to make a retry safe.",
    body: NewPet,
    retriable: true,
    success: {
      status: 201,
      description: "The pet as added",
      body: "one",
      of: Pet,
      headers: ["Location", "Idempotent-Replayed"],
    },
    errors: [...BODY_ERRORS, ...RETRY_ERRORS],
  },
  getPet: {
    method: "GET",
    path: "/pets/{petId}",
    tag: "Pets",
    summary: "Fetch one pet",
    description:
      "Deprecated, and removed on 5 December 2030: from that instant it answers 410. Use the listing with its `status` filter instead.",
    identifier: { name: "petId", notFound: "pet_not_found", description: "Identifier of the pet" },
    success: {
      status: 200,
      description: "The pet",
      body: "one",
      of: Pet,
      headers: ["ETag", "Deprecation", "Sunset", "Link"],
    },
    errors: ["pet_not_found", "operation_removed"],
    deprecated: {
      since: new Date("2026-11-14T00:00:00Z"),
      sunset: new Date("2030-12-05T00:00:00Z"),
      replacement: "/pets",
    },
  },
  listOrders: {
    method: "GET",
    path: "/store/orders",
    tag: "Orders",
    summary: "List orders",
    description: "Orders in the order of their identifiers, oldest first; paged as the pets are.",
    query: { limit, status: OrderStatus, cursor: cursorOf("orders") },
    success: {
      status: 200,
      description: "A page of orders",
      body: "list",
      of: Order,
      headers: ["ETag", "Link"],
    },
    errors: ["invalid_parameter"],
  },
  placeOrder: {
    method: "POST",
    path: "/store/orders",
    tag: "Orders",
    summary: "Place an order",
    description:
      "Orders one pet. It must not be `pending` or `sold`, and becomes `pending` together with the order. Send an `Idempotency-Key` to make a retry safe.",
    body: NewOrder,
    retriable: true,
    success: {
      status: 201,
      description: "The order as placed",
      body: "one",
      of: Order,
      headers: ["Location", "Idempotent-Replayed"],
    },
    errors: [...BODY_ERRORS, ...RETRY_ERRORS, "pet_not_found", "pet_not_available"],
  },
  updateOrder: {
    method: "PATCH",
    path: "/store/orders/{orderId}",
    tag: "Orders",
    summary: "Complete or cancel an order",
    description: "`completed` makes the pet `sold`; `cancelled` makes it `available` again. Either is final.",
    identifier: { name: "orderId", notFound: "order_not_found", description: "Identifier of the order" },
    body: OrderUpdate,
    success: { status: 200, description: "The order as it now stands", body: "one", of: Order, headers: [] },
    errors: [...BODY_ERRORS, "order_not_found", "order_closed"],
  },
} as const satisfies Record<string, Operation>;

type Operations = typeof OPERATIONS;
export type OperationId = keyof Operations;

type QueryOf<O> = O extends { query: infer Q } ? { readonly [K in keyof Q]?: Infer<Q[K]> } : undefined;
type BodyOf<O> = O extends { body: infer B } ? Infer<B> : undefined;
type IdentifierOf<O> = O extends { identifier: object } ? Identifier : undefined;

/** What a handler is given: everything already read and checked. */
export interface Input<Id extends OperationId> {
  readonly id: IdentifierOf<Operations[Id]>;
  readonly query: QueryOf<Operations[Id]>;
  readonly body: BodyOf<Operations[Id]>;
}

/** What a handler may answer: the declared success with declared headers, or a declared refusal. */
export interface Answer<Id extends OperationId> {
  /** JSON text. */
  readonly body: string;
  readonly headers?: { readonly [H in Operations[Id]["success"]["headers"][number]]?: string };
}
export type RejectionOf<Id extends OperationId> = Rejection<Operations[Id]["errors"][number]>;
