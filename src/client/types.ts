import type { PetstoreError } from "./errors.ts";
import type { ResponseMetadata } from "./response.ts";

/** An int64 as an argument. A number must be a safe integer; beyond 2^53 - 1 pass a bigint or its digits. */
export type Int64 = number | bigint | string;

/** What integers are in results: bigints, or strings of digits, which JSON can carry. */
export type Ids = "bigint" | "string";
export type IdOf<I extends Ids> = I extends "string" ? string : bigint;

export type PetStatus = "available" | "pending" | "sold";
export type OrderStatus = "placed" | "completed" | "cancelled";

export interface Pet<Id = bigint> {
  id: Id;
  name: string;
  categoryId: Id;
  /** Absent if the pet was created without a status and was never ordered. */
  status?: PetStatus;
}

export interface NewPet {
  /** 1 to 1,024 characters. */
  name: string;
  categoryId: Int64;
  status?: PetStatus | undefined;
}

export interface Order<Id = bigint> {
  id: Id;
  petId: Id;
  status: OrderStatus;
  /** RFC 3339, UTC. */
  createdAt: string;
}

export interface RateLimitWindow {
  limit: number;
  /** Requests left after this one. */
  remaining: number;
  /** RFC 3339, UTC. */
  resetAt: string;
}

/** Your API key. */
export interface ApiKey<Id = bigint> {
  id: Id;
  name: string;
  plan: "free" | "pro" | "business" | "enterprise";
  access: "read" | "write";
  /** RFC 3339, UTC; null if the key does not expire. */
  expiresAt: string | null;
  minute: RateLimitWindow;
  day: RateLimitWindow;
}

export interface NewOrder {
  petId: Int64;
}

export interface RequestEvent {
  method: string;
  url: string;
  /** 1 for the first. */
  attempt: number;
}

export interface ResponseEvent extends RequestEvent {
  response: ResponseMetadata;
}

export interface RetryEvent extends RequestEvent {
  delayMs: number;
  error: PetstoreError;
}

/** The rate limit is used up. A call has another event if the wait grows. */
export interface WaitEvent extends RequestEvent {
  /** The time until the window closes; other calls may be before this one. */
  waitMs: number;
}

export interface DeprecationEvent {
  method: string;
  url: string;
  since: Date | undefined;
  /** When the operation is removed. */
  sunset: Date | undefined;
  /** The `Link` header: the successor and the documentation. */
  link: string | undefined;
}

/** A hook that throws makes its call fail. */
export interface Hooks {
  onRequest?: ((event: RequestEvent) => void) | undefined;
  onResponse?: ((event: ResponseEvent) => void) | undefined;
  onRetry?: ((event: RetryEvent) => void) | undefined;
  onWait?: ((event: WaitEvent) => void) | undefined;
  /** Replaces the warning that is written to the console once for each deprecated operation. */
  onDeprecation?: ((event: DeprecationEvent) => void) | undefined;
}

export interface PetstoreOptions<I extends Ids = "bigint"> extends Hooks {
  /** The API key; by default that in the environment variable `PETSTORE_KEY`. */
  key?: string | undefined;
  /** The URL of the API with its version: `http://127.0.0.1:8080/v1`. */
  baseUrl: string;
  /** Default: "bigint". */
  ids?: I | undefined;
  /** The largest number of requests at once; others wait. A server allows an address 256 connections. Default: 64. */
  maxConcurrency?: number | undefined;
  /** Wait before a request that would exceed the rate limit. Default: true. */
  waitForRateLimit?: boolean | undefined;
  /**
   * Retries of one call; waiting before a request is none. Above that, or if `Retry-After` is beyond the deadline, the
   * call ends with its last error. Default: 10, and while the address has never responded, as many as 10 seconds allow.
   * A host, certificate or protocol that is wrong then ends the call at once.
   */
  maxRetries?: number | undefined;
  /** Longest time of one request. Default: 15,000. */
  timeoutMs?: number | undefined;
  /**
   * Longest time of one call with its waits and retries. Default: 120,000. A call that would wait longer for the rate
   * limit or the end of a ban is a `RateLimitError` at once. With `Infinity`, it waits as long as it takes, and what
   * fails still ends after `maxRetries`.
   */
  deadlineMs?: number | undefined;
  /** How many responses are kept, so that reading them again transfers only what changed. Default: 0. */
  cache?: number | undefined;
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  deadlineMs?: number | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Default: a new random one for each call. The retries of a call share it. */
  idempotencyKey?: string | undefined;
}

export interface UpdateOptions extends CallOptions {
  /** The `etag` of a response: the order is changed only if it is still that one. */
  ifMatch?: string | undefined;
}

export interface RequestOptions extends WriteOptions {
  query?: Readonly<Record<string, Int64 | undefined>> | undefined;
  /** Becomes JSON. */
  body?: unknown;
}

export interface PageOptions extends CallOptions {
  /** Size of a page, 1 to 100. Default: 100 for `list`, 20 for `listPage`. */
  limit?: number | undefined;
  /** `nextCursor` of an earlier page. */
  cursor?: string | undefined;
}

/** What a list of pets is filtered by. With several filters, it has the pets that match all of them. */
export interface PetFilters {
  categoryId?: Int64 | undefined;
  status?: PetStatus | undefined;
}

export interface OrderFilters {
  status?: OrderStatus | undefined;
}

export interface PetListOptions extends PageOptions, PetFilters {}
export interface OrderListOptions extends PageOptions, OrderFilters {}

/** @deprecated Use `PetListOptions` or `OrderListOptions`. */
export interface ListOptions<Status extends string> extends PageOptions {
  status?: Status | undefined;
}

export interface Page<T> {
  items: T[];
  /** undefined on the last page. */
  nextCursor: string | undefined;
  response: ResponseMetadata;
}

/** Every iteration starts anew. */
export interface Listing<T> extends AsyncIterable<T> {
  pages(): AsyncGenerator<Page<T>, void, undefined>;
  /** The first `max` of them. */
  toArray(options: { max: number }): Promise<T[]>;
}

/** A promise of the value. `withResponse` also has what the response says about itself. */
export interface Call<T, R = ResponseMetadata> extends Promise<T> {
  /** What `create`, `place` and POST send. After an abort, pass it to repeat the call without a second pet or order. */
  readonly idempotencyKey: string | undefined;
  withResponse(): Promise<{ data: T; response: R }>;
}

export interface Pets<Id = bigint> {
  /** Every pet, over all pages, in ascending order of their identifiers. */
  list(options?: PetListOptions): Listing<Pet<Id>>;
  listPage(options?: PetListOptions): Call<Page<Pet<Id>>>;
  create(pet: NewPet, options?: WriteOptions): Call<Pet<Id>>;
  /**
   * The pets with these identifiers that exist, in ascending order; 100 identifiers take one request. The response is
   * that of the last request, and undefined without identifiers.
   */
  byIds(ids: Iterable<Int64>, options?: CallOptions): Call<Pet<Id>[], ResponseMetadata | undefined>;
  /** @deprecated Its removal is on 5 December 2030. Use `byIds`. */
  get(id: Int64, options?: CallOptions): Call<Pet<Id>>;
}

export interface Orders<Id = bigint> {
  /** The orders of your API key, over all pages. */
  list(options?: OrderListOptions): Listing<Order<Id>>;
  listPage(options?: OrderListOptions): Call<Page<Order<Id>>>;
  get(id: Int64, options?: CallOptions): Call<Order<Id>>;
  place(order: NewOrder, options?: WriteOptions): Call<Order<Id>>;
  /** The pet becomes `sold`. */
  complete(id: Int64, options?: UpdateOptions): Call<Order<Id>>;
  /** The pet becomes `available`. */
  cancel(id: Int64, options?: UpdateOptions): Call<Order<Id>>;
}

export interface OwnKey<Id = bigint> {
  /** Your API key, and what is left of its rate limits. The request counts like any other. */
  get(options?: CallOptions): Call<ApiKey<Id>>;
}
