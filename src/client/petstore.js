/**
 * @import {
 *   Call, CallOptions, Int64, Listing, ListOptions, Orders, Page, Pet, Pets, PetstoreOptions, WriteOptions
 * } from "./index.d.ts"
 */
/** @import { ApiResult } from "./transport.js" */
import { ConflictError, PetstoreError } from "./errors.js";
import { int64, toJson } from "./json.js";
import { Transport } from "./transport.js";

/** The largest page, and the most identifiers of one request. */
const MAX_PAGE = 100;

export class Petstore {
  /** @readonly */
  pets;
  /** @readonly */
  orders;

  /** @param {PetstoreOptions} options */
  constructor(options) {
    const transport = new Transport(options);
    this.pets = petsOf(transport);
    this.orders = ordersOf(transport);
  }
}

/**
 * @param {Transport} transport
 * @returns {Pets}
 */
function petsOf(transport) {
  /** @type {Pets["listPage"]} */
  const listPage = (options = {}) => fetchPage(transport, "/pets", options);
  return {
    list: (options = {}) => listing(listPage, options),
    listPage,
    create: ({ name, categoryId, status }, options = {}) =>
      call(async () => {
        const body = toJson({ name, categoryId: int64("categoryId", categoryId), status });
        return transport.send(post("/pets", body, options));
      }),
    async byIds(ids, options = {}) {
      const wanted = new Set([...ids].map((id) => int64("id", id)));
      const sorted = [...wanted].toSorted((a, b) => (a < b ? -1 : 1));
      /** @type {Pet[]} */
      const pets = [];
      for (let start = 0; start < sorted.length; start += MAX_PAGE) {
        const chunk = sorted.slice(start, start + MAX_PAGE);
        const path = `/pets?id=${chunk.join(",")}`;
        /** @type {Page<Pet>} */
        const { items } = await fetchPage(transport, path, { ...options, limit: MAX_PAGE });
        if (items.some(({ id }) => !wanted.has(id)))
          throw new PetstoreError("This server has no listing by identifier.");
        pets.push(...items);
      }
      return pets;
    },
    get: (id, options = {}) =>
      call(async () => transport.send({ method: "GET", path: `/pets/${int64("id", id)}`, options })),
  };
}

/**
 * @param {Transport} transport
 * @returns {Orders}
 */
function ordersOf(transport) {
  /** @type {Orders["listPage"]} */
  const listPage = (options = {}) => fetchPage(transport, "/store/orders", options);
  /** @type {Orders["get"]} */
  const get = (id, options = {}) =>
    call(async () => transport.send({ method: "GET", path: orderPath(id), options }));
  return {
    list: (options = {}) => listing(listPage, options),
    listPage,
    get,
    place: ({ petId }, options = {}) =>
      call(async () =>
        transport.send(post("/store/orders", toJson({ petId: int64("petId", petId) }), options)),
      ),
    complete: (id, options = {}) => call(() => close(id, "completed", options)),
    cancel: (id, options = {}) => call(() => close(id, "cancelled", options)),
  };

  /**
   * An attempt whose response was lost may have closed the order; a retry is then rejected although the call did
   * what it was asked to do.
   *
   * @param {Int64} id
   * @param {"completed" | "cancelled"} status
   * @param {CallOptions} options
   * @returns {Promise<ApiResult>}
   */
  async function close(id, status, options) {
    const path = orderPath(id);
    try {
      return await transport.send({ method: "PATCH", path, body: toJson({ status }), options });
    } catch (error) {
      if (!(error instanceof ConflictError) || error.code !== "order_closed") throw error;
      if (error.response.attempts === 1) throw error;
      const { data, response } = await get(id, options).withResponse();
      if (data.status !== status) throw error;
      return { data, response };
    }
  }
}

/** @param {Int64} id */
const orderPath = (id) => `/store/orders/${int64("id", id)}`;

/**
 * @param {string} path
 * @param {string} body
 * @param {WriteOptions} options
 * @returns {import("./transport.js").ApiRequest}
 */
function post(path, body, { idempotencyKey = randomKey(), ...options }) {
  return { method: "POST", path, body, idempotencyKey, options };
}

/** 128 random bits. `crypto.randomUUID` is missing on pages that were loaded without TLS. */
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

/**
 * @template T
 * @param {() => Promise<ApiResult>} send
 * @returns {Call<T>}
 */
function call(send) {
  const result = /** @type {Promise<{ data: T, response: ApiResult["response"] }>} */ (send());
  const data = result.then(({ data }) => data);
  return Object.assign(data, {
    withResponse() {
      // Whoever takes the result handles its rejection there.
      data.catch(() => {});
      return result;
    },
  });
}

/**
 * @template T
 * @template {string} Status
 * @param {Transport} transport
 * @param {string} path
 * @param {ListOptions<Status>} options
 * @returns {Promise<Page<T>>}
 */
async function fetchPage(transport, path, { status, limit, cursor, ...options }) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ status, limit, cursor }))
    if (value !== undefined) query.set(name, String(value));
  const separator = path.includes("?") ? "&" : "?";
  const url = query.size === 0 ? path : `${path}${separator}${query}`;
  const { data, response } = await transport.send({ method: "GET", path: url, options });
  return { items: /** @type {T[]} */ (data), nextCursor: nextCursor(response.headers), response };
}

/**
 * The cursor alone: the API key goes to no other address than the client was given.
 *
 * @param {Headers} headers
 */
function nextCursor(headers) {
  const [, url] = /<([^>]*)>\s*;\s*rel="?next\b/.exec(headers.get("Link") ?? "") ?? [];
  return url === undefined
    ? undefined
    : (new URL(url, "http://relative").searchParams.get("cursor") ?? undefined);
}

/**
 * @template T
 * @template {string} Status
 * @param {(options: ListOptions<Status>) => Promise<Page<T>>} page
 * @param {ListOptions<Status>} options
 * @returns {Listing<T>}
 */
function listing(page, options) {
  async function* pages() {
    let { cursor } = options;
    do {
      const current = await page({ ...options, limit: options.limit ?? MAX_PAGE, cursor });
      yield current;
      cursor = current.nextCursor;
    } while (cursor !== undefined);
  }
  return {
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const { items } of pages()) yield* items;
    },
  };
}
