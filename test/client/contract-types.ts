/* Compiled, never run: the types of the client are those of the table of operations. */

import type * as client from "../../src/client/index.ts";
import type { ErrorCode } from "../../src/petstore/errors.ts";
import type { CallerKey } from "../../src/petstore/caller-key.ts";
import type { PetstoreInput } from "../../src/petstore/operations.ts";
import type { OperationId } from "../../src/domain/operation-ids.ts";
import type {
  NewOrder,
  NewPet,
  Order,
  OrderStatus,
  OrderFilters,
  OrderUpdate,
  Pet,
  PetFilters,
  PetStatus,
} from "../../src/domain/pets-and-orders.ts";

type Flat<T> = { [K in keyof T]: T[K] };
type Identical<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Part<T, K> = Pick<T, K & keyof T>;
/** The fields that only one of the types has, or that differ. */
type Differing<A, B> = {
  [K in keyof A | keyof B]: Identical<Flat<Part<A, K>>, Flat<Part<B, K>>> extends true ? never : K;
}[keyof A | keyof B];
/** Otherwise the error of the type check names the fields. */
type Equal<A, B> = [Differing<A, B>] extends [never] ? true : Differing<A, B>;
type True<T extends true> = T;

/** As the client takes it: int64 as number or bigint, and undefined for an optional field. */
type Argument<T> = {
  -readonly [K in keyof T]:
    (bigint extends T[K] ? client.Int64 : T[K]) | (undefined extends T[K] ? undefined : never);
};

export type Resources = [
  True<Equal<client.Pet, Pet>>,
  True<Equal<client.Order, Order>>,
  True<Equal<Omit<client.ApiKey, "minute" | "day">, Omit<CallerKey, "minute" | "day">>>,
  True<Equal<client.ApiKey["minute" | "day"], CallerKey["minute" | "day"]>>,
  True<Equal<client.NewPet, Argument<NewPet>>>,
  True<Equal<client.NewOrder, Argument<NewOrder>>>,
  True<Equal<client.PetFilters, Argument<PetFilters>>>,
  True<Equal<client.OrderFilters, Argument<OrderFilters>>>,
];

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : [A, B]) : [A, B];
export type Names = [
  True<Same<client.PetStatus, PetStatus>>,
  True<Same<client.OrderStatus, OrderStatus>>,
  True<Same<client.ErrorCode, ErrorCode>>,
  True<Same<OrderUpdate["status"], Exclude<client.OrderStatus, "placed">>>,
];

type QueryOf<Id extends OperationId> = keyof NonNullable<PetstoreInput<Id>["query"]>;
type ParametersOf<Options> = Exclude<keyof Options, keyof client.CallOptions>;
/** `id` is the parameter of `byIds`. */
export type Parameters = [
  True<Same<Exclude<QueryOf<"listPets">, "id">, ParametersOf<client.PetListOptions>>>,
  True<Same<QueryOf<"listOrders">, ParametersOf<client.OrderListOptions>>>,
];

/** An operation that the client lacks does not compile. */
export const METHODS: Record<OperationId, (petstore: client.Petstore) => unknown> = {
  listPets: ({ pets }) => [pets.list, pets.listPage, pets.byIds],
  createPet: ({ pets }) => pets.create,
  getPet: ({ pets }) => pets.get,
  listOrders: ({ orders }) => [orders.list, orders.listPage],
  placeOrder: ({ orders }) => orders.place,
  getOrder: ({ orders }) => orders.get,
  updateOrder: ({ orders }) => [orders.complete, orders.cancel],
  getKey: ({ key }) => key.get,
};

type Options = client.PetstoreOptions &
  client.RequestOptions &
  client.UpdateOptions &
  client.PetListOptions &
  client.OrderFilters;
type OrUndefined<T> = { [K in keyof T]: Record<never, never> extends Pick<T, K> ? T[K] | undefined : T[K] };
/** With `exactOptionalPropertyTypes` too, an option may be what a program has not got. */
export type NothingSet = True<Same<OrUndefined<Options>, Options>>;

/** A misspelt code does not compile. */
export function isCode({ code }: client.ApiError): boolean[] {
  return [
    code === "rate_limited",
    code === "other",
    // @ts-expect-error No code has this name.
    code === "rate_limitted",
  ];
}
