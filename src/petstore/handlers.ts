import { handlerOf } from "../api/dispatch.ts";
import { operationRemoved } from "./deprecation.ts";
import { encodeKey } from "./caller-key.ts";
import { deprecationLines } from "../public/deprecation.ts";
import type { AnySuccess, Endpoint, HandlerContext } from "../public/endpoint.ts";
import { ResponseCache, type ReusableResponses, SharedResponses } from "../public/response-cache.ts";
import {
  NEW_PET_PATH,
  type OperationRejection,
  OPERATIONS,
  PETSTORE_API,
  type PetstoreInput,
  type PetstoreOperation,
  type Success,
} from "./operations.ts";
import type { CacheStatistics } from "../runtime/bounded-cache.ts";
import { PAGE_LIMIT } from "../domain/size-limits.ts";
import { encodeCursor, type ListName } from "../domain/cursor.ts";
import { Rejection, Unavailable } from "../api/errors.ts";
import { encodeOrder, orderNotFound, petNotFound } from "../domain/pets-and-orders.ts";
import type { OperationId } from "../domain/operation-ids.ts";
import { andThen, type Awaitable } from "../runtime/awaitable.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { PetJsonSource, ClientStore, WriteResult } from "../domain/ports/pets-and-orders.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { type PageJson, encodePage } from "../domain/pages.ts";

export interface HandlerOptions {
  readonly clientStore: ClientStore;
  readonly petJson: PetJsonSource;
  readonly keys: Pick<KeyStore, "getKey">;
  readonly clock: Clock;
  readonly responseCacheStatistics?: CacheStatistics | undefined;
  /** The public URL of the API, including the base path. */
  readonly baseUrl: string;
}

type HandlerResult<Id extends OperationId> =
  (Success<Id> & Pick<AnySuccess, "etag" | "revision">) | OperationRejection<Id>;

type Handler<Id extends OperationId> = (
  input: PetstoreInput<Id>,
  ...context: HandlerContext
) => Awaitable<HandlerResult<Id>>;

type Handlers = { readonly [Id in OperationId]: Handler<Id> };

function createHandlers({ clientStore, petJson, keys, clock, baseUrl }: HandlerOptions): Handlers {
  /** The link to the next page. It has the same parameters, and begins after the last item. */
  function nextLink(list: ListName, query: object, { hasMore, last }: PageJson): { Link?: string } {
    if (!hasMore || last === undefined) return {};
    const { path, query: parameters } = OPERATIONS[list === "pets" ? "listPets" : "listOrders"];
    const given = Object.keys(parameters).map((name) => [name, Reflect.get(query, name)] as const);
    const same = given.flatMap(([name, value]) =>
      value === undefined || name === "cursor" ? [] : `${name}=${String(value)}&`,
    );
    return { Link: `<${baseUrl}${path}?${same.join("")}cursor=${encodeCursor(list, last)}>; rel="next"` };
  }

  const { revisions } = petJson;
  const changes = revisions && (() => revisions.changes);
  const changesAndAdditions = revisions && (() => revisions.changesAndAdditions);

  return {
    listPets({ query }) {
      const { limit = PAGE_LIMIT.default, id: ids, cursor: after, ...filters } = query;
      return andThen(petJson.list({ limit, ids, after, ...filters }), (page) => ({
        body: page.json,
        headers: nextLink("pets", query, page),
        // SQLite returns the page at once, so this is its revision; PostgreSQL has none. Few clients request the same
        // identifiers, so such pages are not cached.
        ...(ids === undefined && { revision: page.hasMore ? changes : changesAndAdditions }),
      }));
    },

    createPet: ({ body }, _call, idempotentRequest) =>
      clientStore
        .createPet(body, clock.now(), idempotentRequest)
        .then((result) => created(baseUrl + NEW_PET_PATH, result)),

    getPet: ({ id }) =>
      andThen(petJson.get(id), (pet) => (pet ? { body: pet.json, etag: pet.etag } : petNotFound(id))),

    listOrders({ query }, { principal: { keyId } }) {
      const { limit = PAGE_LIMIT.default, cursor: after, ...filters } = query;
      return andThen(clientStore.listOrders(keyId, { limit, after, ...filters }), (orders) => {
        const page = encodePage(orders, encodeOrder);
        return { body: page.json, headers: nextLink("orders", query, page) };
      });
    },

    placeOrder: ({ body }, { principal: { keyId } }, idempotentRequest) =>
      clientStore
        .placeOrder({ keyId, petId: body.petId }, clock.now(), idempotentRequest)
        .then((result) => created(`${baseUrl}${OPERATIONS.placeOrder.path}/`, result)),

    getOrder: ({ id }, { principal: { keyId } }) =>
      andThen(clientStore.getOrder(keyId, BigInt(id)), (order) =>
        order ? { body: encodeOrder(order) } : orderNotFound(id),
      ),

    updateOrder: async ({ id, body }, { principal: { keyId }, request: { headers } }) => {
      const ifMatch = headers.get("if-match") ?? undefined;
      const order = await clientStore.updateOrder({ keyId, id: BigInt(id), ifMatch, ...body }, clock.now());
      return order instanceof Rejection ? order : { body: encodeOrder(order) };
    },

    getKey: (_input, { principal, decision }) =>
      andThen(keys.getKey(principal.keyId), (key) => {
        // Another copy of the database may have taken over that lacks the key.
        if (key === undefined) throw new Unavailable(`the database has no key ${principal.keyId}`);
        return { body: encodeKey(key, principal, decision) };
      }),
  };
}

function created<R extends Rejection>(url: string, result: WriteResult | R) {
  if (result instanceof Rejection) return result;
  const replayed = result.replayed && { "Idempotent-Replayed": "true" };
  return { body: result.body, headers: { Location: `${url}${result.id}`, ...replayed } };
}

/** Pages are cached if this server makes all changes of pets, and shared if the store collects reads. */
function reusablePages({ petJson, responseCacheStatistics }: HandlerOptions): ReusableResponses | undefined {
  if (petJson.revisions) return new ResponseCache(responseCacheStatistics);
  return petJson.batch && new SharedResponses(petJson);
}

export function createEndpoints(options: HandlerOptions): ReadonlyMap<string, Endpoint> {
  const { baseUrl } = options;
  const handlers = createHandlers(options);
  return new Map(
    PETSTORE_API.rows.map(([id, operation]: readonly [OperationId, PetstoreOperation]) => {
      const { deprecated } = operation;
      const endpoint = {
        id,
        operation,
        handler: handlerOf<OperationId, HandlerContext, Awaitable<AnySuccess | Rejection>>(handlers, id),
        reusable: id === "listPets" ? reusablePages(options) : undefined,
        deprecationLines: deprecated && deprecationLines(deprecated, baseUrl),
        removal: deprecated && { at: deprecated.sunset.getTime(), rejection: operationRemoved(deprecated) },
      };
      return [id, endpoint];
    }),
  );
}
