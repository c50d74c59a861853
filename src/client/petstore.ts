import { InvalidResponseError } from "./errors.ts";
import { int64, newPetJson, toJson } from "./json.ts";
import { nextCursor, type ResponseMetadata } from "./response.ts";
import { randomKey } from "./retry.ts";
import { type ApiRequest, Transport } from "./transport.ts";
import type {
  Call,
  CallOptions,
  IdOf,
  Ids,
  Int64,
  OwnKey,
  Listing,
  OrderFilters,
  Orders,
  Page,
  PageOptions,
  Pet,
  PetFilters,
  Pets,
  PetstoreOptions,
  RequestOptions,
  WriteOptions,
} from "./types.ts";

/** The largest page, and the most identifiers of one request. */
const MAX_PAGE = 100;

/** How the filters of a list are sent. The type requires all of them. */
type SentFilters<Filters> = { readonly [Name in keyof Filters]-?: "text" | "int64" };
const PET_FILTERS: SentFilters<PetFilters> = { categoryId: "int64", status: "text" };
const ORDER_FILTERS: SentFilters<OrderFilters> = { status: "text" };

export class Petstore<I extends Ids = "bigint"> {
  readonly pets: Pets<IdOf<I>>;
  readonly orders: Orders<IdOf<I>>;
  readonly key: OwnKey<IdOf<I>>;
  readonly #transport: Transport;

  constructor(options: PetstoreOptions<I>) {
    this.#transport = new Transport(options);
    this.pets = petsOf(this.#transport);
    this.orders = ordersOf(this.#transport);
    this.key = { get: (options = {}) => call(async () => this.#transport.send(get("/key", options))) };
  }

  /**
   * Sends a request that no other method sends. `path` is below the base URL: `/pets`. HEAD, 204 and 304 have no data.
   */
  request(method: string, path: string, options: RequestOptions = {}): Call<unknown> {
    const { query = {}, body, idempotencyKey = keyFor(method), ...rest } = options;
    return call(async () => {
      if (!path.startsWith("/")) throw new TypeError(`path must begin with a slash, not ${path}.`);
      return this.#transport.send({
        method: method.toUpperCase(),
        path: withQuery(path, query),
        body: body === undefined ? undefined : toJson(body),
        idempotencyKey,
        options: rest,
        expected: "any",
      });
    }, idempotencyKey);
  }
}

function petsOf<Id extends bigint | string>(transport: Transport): Pets<Id> {
  const listPage: Pets<Id>["listPage"] = (options = {}) =>
    call(async () => fetchPage(transport, withFilters("/pets", PET_FILTERS, options), options));
  return {
    list: (options = {}) => listing(listPage, options),
    listPage,
    create: (pet, options) => post(transport, "/pets", () => newPetJson(pet), options),
    byIds: (ids, options = {}) =>
      call(async () => {
        const wanted = new Set(Array.from(ids, (id) => int64("id", id)));
        const sorted = [...wanted].toSorted((a, b) => (a < b ? -1 : 1));
        const timed = transport.startTime({ ...options, limit: MAX_PAGE });
        const data: Pet<Id>[] = [];
        let response: ResponseMetadata | undefined;
        for (let start = 0; start < sorted.length; start += MAX_PAGE) {
          const path = `/pets?id=${sorted.slice(start, start + MAX_PAGE).join(",")}`;
          const { data: page }: { data: Page<Pet<Id>> } = await fetchPage(transport, path, timed);
          if (page.items.some(({ id }) => !wanted.has(BigInt(id))))
            throw new InvalidResponseError("This server has no listing by identifier.", page);
          data.push(...page.items);
          response = page.response;
        }
        return { data, response };
      }),
    get: (id, options = {}) => call(async () => transport.send(get(`/pets/${int64("id", id)}`, options))),
  };
}

function ordersOf<Id extends bigint | string>(transport: Transport): Orders<Id> {
  const listPage: Orders<Id>["listPage"] = (options = {}) =>
    call(async () => fetchPage(transport, withFilters("/store/orders", ORDER_FILTERS, options), options));
  /** A repeat after a lost response succeeds. */
  const update =
    (status: "completed" | "cancelled"): Orders<Id>["complete"] =>
    (id, { ifMatch, ...rest } = {}) =>
      call(async () => {
        const options = {
          ...rest,
          headers: { ...rest.headers, ...(ifMatch !== undefined && { "If-Match": ifMatch }) },
        };
        const body = toJson({ status });
        return transport.send({ method: "PATCH", path: orderPath(id), body, options, expected: "object" });
      });
  return {
    list: (options = {}) => listing(listPage, options),
    listPage,
    get: (id, options = {}) => call(async () => transport.send(get(orderPath(id), options))),
    place: ({ petId }, options) =>
      post(transport, "/store/orders", () => toJson({ petId: int64("petId", petId) }), options),
    complete: update("completed"),
    cancel: update("cancelled"),
  };
}

const orderPath = (id: Int64): string => `/store/orders/${int64("id", id)}`;

function get(path: string, options: CallOptions): ApiRequest {
  return { method: "GET", path, options, expected: "object" };
}

function keyFor(method: string): string | undefined {
  return method.toUpperCase() === "POST" ? randomKey() : undefined;
}

function post<T>(
  transport: Transport,
  path: string,
  bodyOf: () => string,
  { idempotencyKey = randomKey(), ...options }: WriteOptions = {},
): Call<T> {
  const request = { method: "POST", path, idempotencyKey, options, expected: "object" } as const;
  return call(async () => transport.send({ ...request, body: bodyOf() }), idempotencyKey);
}

function call<T, R = ResponseMetadata>(
  send: () => Promise<{ data: unknown; response: R }>,
  idempotencyKey?: string,
): Call<T, R> {
  const result = send() as Promise<{ data: T; response: R }>;
  const data = result.then(({ data }) => data);
  return Object.assign(data, {
    idempotencyKey,
    withResponse() {
      // The caller who takes the result handles its rejection.
      data.catch(() => {});
      return result;
    },
  });
}

async function fetchPage<T>(
  transport: Transport,
  path: string,
  options: PageOptions,
): Promise<{ data: Page<T>; response: ResponseMetadata }> {
  const { limit, cursor } = options;
  const url = withQuery(path, { limit, cursor });
  const { data, response } = await transport.send({ ...get(url, options), expected: "array" });
  const page = { items: data as T[], nextCursor: nextCursor(response.headers), response };
  return { data: page, response };
}

function withFilters<Filters extends { readonly [Name in keyof Filters]?: Int64 | undefined }>(
  path: string,
  sent: SentFilters<Filters>,
  given: Filters,
): string {
  const values: Record<string, Int64> = {};
  for (const name in sent) {
    const value = given[name];
    if (value !== undefined) values[name] = sent[name] === "int64" ? int64(name, value) : value;
  }
  return withQuery(path, values);
}

function withQuery(path: string, parameters: NonNullable<RequestOptions["query"]>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? path : `${path}${path.includes("?") ? "&" : "?"}${query}`;
}

function listing<T, Options extends PageOptions>(
  fetchPage: (options: Options) => Promise<Page<T>>,
  options: Options,
): Listing<T> {
  async function* pages(): AsyncGenerator<Page<T>, void, undefined> {
    let { cursor } = options;
    const seen = new Set([cursor]);
    do {
      const page = await fetchPage({ ...options, limit: options.limit ?? MAX_PAGE, cursor });
      yield page;
      cursor = page.nextCursor;
      if (cursor !== undefined && seen.has(cursor))
        throw new InvalidResponseError(`The list does not end: the cursor ${cursor} came twice.`, page);
      seen.add(cursor);
    } while (cursor !== undefined);
  }
  async function* items(): AsyncGenerator<T, void, undefined> {
    for await (const page of pages()) yield* page.items;
  }
  return {
    pages,
    [Symbol.asyncIterator]: items,
    async toArray({ max } = { max: Number.NaN }) {
      if (!(max >= 0)) throw new TypeError("toArray needs a maximum: toArray({ max: 1000 }).");
      const found: T[] = [];
      for await (const item of items()) if (found.push(item) >= max) break;
      return found.slice(0, max);
    },
  };
}
