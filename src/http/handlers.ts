import { encodeCursor, type Listing } from "../contract/cursor.ts";
import { type Rejection, rejection } from "../contract/errors.ts";
import {
  type Answer,
  type Input,
  type OperationId,
  PAGE_LIMIT,
  type RejectionOf,
} from "../contract/operations.ts";
import { encodeOrder } from "../contract/resources.ts";
import { andThen, type Awaitable } from "../domain/awaitable.ts";
import type { Clock, PageQuery, Store, WriteResult } from "../domain/ports.ts";
import { encodePage, type IdRange, type PageJson, type PetJsonSource } from "./pet-json.ts";
import type { OperationInput } from "./validation.ts";

export interface Services {
  readonly store: Store;
  readonly petJson: PetJsonSource;
  readonly clock: Clock;
  /** Base address as clients see it, `/v1` included. */
  readonly baseUrl: string;
}

/**
 * `etag` is for where it is known already. `lastsIn` names the pets that the answer depends on; it may be given
 * again until one of them changes.
 */
export type Handler<Id extends OperationId> = (
  input: Input<Id> & Pick<OperationInput, "idempotentRequest">,
) => Awaitable<(Answer<Id> & { readonly etag?: string; readonly lastsIn?: IdRange }) | RejectionOf<Id>>;

/** One for every operation of the table; leaving one out is a type error. */
export type Handlers = { readonly [Id in OperationId]: Handler<Id> };

export function createHandlers({ store, petJson, clock, baseUrl }: Services): Handlers {
  return {
    listPets: ({ query }) =>
      andThen(petJson.list(storeQuery(query)), (page) => ({
        body: page.json,
        headers: nextLink({ url: `${baseUrl}/pets`, listing: "pets", query, page }),
        lastsIn: spanOf(query.cursor ?? 0n, page),
      })),

    createPet: ({ body, idempotentRequest }) =>
      store
        .createPet(body, clock.now(), idempotentRequest)
        .then((written) => created(`${baseUrl}/pets`, written)),

    getPet: ({ id }) =>
      andThen(petJson.get(id), (pet) =>
        pet ? { body: pet.json, etag: pet.etag } : rejection("pet_not_found", `There is no pet ${id}.`),
      ),

    listOrders: ({ query }) =>
      andThen(store.listOrders(storeQuery(query)), (orders) => {
        const page = encodePage(orders, encodeOrder);
        const headers = nextLink({ url: `${baseUrl}/store/orders`, listing: "orders", query, page });
        return { body: page.json, headers };
      }),

    placeOrder: ({ body, idempotentRequest }) =>
      store
        .placeOrder(body.petId, clock.now(), idempotentRequest)
        .then((written) => created(`${baseUrl}/store/orders`, written)),

    updateOrder: async ({ id, body }) => {
      const order = await store.updateOrder(BigInt(id), body.status);
      return "code" in order ? order : { body: encodeOrder(order) };
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
}: ListQuery<Status>): PageQuery<Status> {
  const query: { limit: number; status?: Status; after?: bigint } = { limit };
  if (status !== undefined) query.status = status;
  if (cursor !== undefined) query.after = cursor;
  return query;
}

/** The address of the next page keeps what the client asked for, and carries on after the last entry shown. */
function nextLink(options: { url: string; listing: Listing; query: ListQuery<string>; page: PageJson }): {
  Link?: string;
} {
  const { url, listing, query, page } = options;
  if (!page.hasMore || page.last === undefined) return {};
  const limit = query.limit === undefined ? "" : `limit=${query.limit}&`;
  const status = query.status === undefined ? "" : `status=${query.status}&`;
  return { Link: `<${url}?${limit}${status}cursor=${encodeCursor(listing, page.last)}>; rel="next"` };
}

/** A page with more behind it ends with what shows that; one without is touched by every pet that is added. */
function spanOf(after: bigint, { last, hasMore, next }: PageJson): IdRange {
  const from = after + 1n;
  const to = next ?? last;
  return hasMore && to !== undefined ? { from, to } : { from };
}

function created<R extends Rejection>(url: string, written: WriteResult | R) {
  if ("code" in written) return written;
  const replayed = written.replayed && { "Idempotent-Replayed": "true" };
  return { body: written.body, headers: { Location: `${url}/${written.id}`, ...replayed } };
}
