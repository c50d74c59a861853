import { encodeCursor, type Listing } from "../contract/cursor.ts";
import { type Refusal, refuse } from "../contract/errors.ts";
import {
  type Answer,
  type Input,
  type OperationId,
  PAGE_LIMIT,
  type RefusalOf,
} from "../contract/operations.ts";
import { encodeOrder, encodePet } from "../contract/resources.ts";
import type {
  Awaitable,
  Clock,
  Page,
  Query,
  Span,
  Store,
  WrittenPage,
  WrittenPets,
  Written,
} from "../domain/ports.ts";
import { tagged } from "../etag.ts";
import { andThen } from "../domain/awaitable.ts";
import type { OperationInput } from "./validation.ts";

export interface Services {
  readonly store: Store;
  readonly clock: Clock;
  /** Base address as clients see it, `/v1` included. */
  readonly baseUrl: string;
}

/**
 * `etag` is for where it is known already. `lastsIn` names the animals that the answer depends on; it may be given
 * again until one of them changes.
 */
export type Handler<Id extends OperationId> = (
  input: Input<Id> & Pick<OperationInput, "attempt">,
) => Awaitable<(Answer<Id> & { readonly etag?: string; readonly lastsIn?: Span }) | RefusalOf<Id>>;

/** One for every operation of the table; leaving one out is a type error. */
export type Handlers = { readonly [Id in OperationId]: Handler<Id> };

export function createHandlers({ store, clock, baseUrl }: Services): Handlers {
  const written = store.written ?? writingOut(store);
  return {
    listPets: ({ query }) =>
      andThen(written.list(storeQuery(query)), (page) => ({
        body: page.json,
        headers: nextLink({ url: `${baseUrl}/pets`, listing: "pets", query, page }),
        lastsIn: spanOf(query.cursor ?? 0n, page),
      })),

    createPet: ({ body, attempt }) =>
      store.createPet(body, clock.now(), attempt).then((written) => created(`${baseUrl}/pets`, written)),

    getPet: ({ id }) =>
      andThen(written.get(id), (pet) =>
        pet ? { body: pet.json, etag: pet.etag } : refuse("pet_not_found", `There is no animal ${id}.`),
      ),

    listOrders: ({ query }) =>
      andThen(store.listOrders(storeQuery(query)), (orders) => {
        const page = writtenPage(orders, encodeOrder);
        const headers = nextLink({ url: `${baseUrl}/store/orders`, listing: "orders", query, page });
        return { body: page.json, headers };
      }),

    placeOrder: ({ body, attempt }) =>
      store
        .placeOrder(body.petId, clock.now(), attempt)
        .then((written) => created(`${baseUrl}/store/orders`, written)),

    updateOrder: async ({ id, body }) => {
      const order = await store.updateOrder(BigInt(id), body.status);
      return "refused" in order ? order : { body: encodeOrder(order) };
    },
  };
}

interface ListQuery<Status> {
  readonly limit?: number;
  readonly status?: Status;
  readonly cursor?: bigint;
}

function storeQuery<Status>({
  limit = PAGE_LIMIT.default,
  status,
  cursor,
}: ListQuery<Status>): Query<Status> {
  const query: { limit: number; status?: Status; after?: bigint } = { limit };
  if (status !== undefined) query.status = status;
  if (cursor !== undefined) query.after = cursor;
  return query;
}

/** For engines that keep animals in columns. */
function writingOut(store: Store): WrittenPets {
  return {
    list: (query) => andThen(store.listPets(query), (page) => writtenPage(page, encodePet)),
    get: (id) => andThen(store.getPet(BigInt(id)), (pet) => pet && tagged(encodePet(pet))),
  };
}

function writtenPage<T extends { id: bigint }>(
  { items, more }: Page<T>,
  encode: (item: T) => string,
): WrittenPage {
  let text = "[";
  for (const item of items) text += text.length === 1 ? encode(item) : `,${encode(item)}`;
  return { json: `${text}]`, last: items.at(-1)?.id, more };
}

/** The address of the next page keeps what the client asked for, and carries on after the last entry shown. */
function nextLink(options: { url: string; listing: Listing; query: ListQuery<string>; page: WrittenPage }): {
  Link?: string;
} {
  const { url, listing, query, page } = options;
  if (!page.more || page.last === undefined) return {};
  const limit = query.limit === undefined ? "" : `limit=${query.limit}&`;
  const status = query.status === undefined ? "" : `status=${query.status}&`;
  return { Link: `<${url}?${limit}${status}cursor=${encodeCursor(listing, page.last)}>; rel="next"` };
}

/** A page with more behind it ends with what shows that; one without is touched by every animal that is added. */
function spanOf(after: bigint, { last, more, next }: WrittenPage): Span {
  const from = after + 1n;
  const to = next ?? last;
  return more && to !== undefined ? { from, to } : { from };
}

function created<R extends Refusal>(url: string, written: Written | R) {
  if ("refused" in written) return written;
  const replayed = written.replayed && { "Idempotent-Replayed": "true" };
  return { body: written.body, headers: { Location: `${url}/${written.id}`, ...replayed } };
}
