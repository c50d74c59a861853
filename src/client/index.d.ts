/** An int64 as an argument. A number must be a safe integer; beyond 2^53 - 1 pass a bigint. */
export type Int64 = number | bigint;

export type PetStatus = "available" | "pending" | "sold";
export type OrderStatus = "placed" | "completed" | "cancelled";

export interface Pet {
  id: bigint;
  name: string;
  categoryId: bigint;
  /** Absent if the pet was created without a status and was never ordered. */
  status?: PetStatus;
}

export interface NewPet {
  /** 1 to 1,024 characters. */
  name: string;
  categoryId: Int64;
  status?: PetStatus | undefined;
}

export interface Order {
  id: bigint;
  petId: bigint;
  status: OrderStatus;
  /** RFC 3339, UTC. */
  createdAt: string;
}

export interface NewOrder {
  petId: Int64;
}

export type ErrorCode =
  | "invalid_json"
  | "invalid_body"
  | "invalid_parameter"
  | "missing_api_key"
  | "invalid_api_key"
  | "read_only_key"
  | "not_found"
  | "pet_not_found"
  | "order_not_found"
  | "method_not_allowed"
  | "pet_not_available"
  | "order_closed"
  | "idempotency_conflict"
  | "operation_removed"
  | "body_too_large"
  | "unsupported_media_type"
  | "idempotency_key_reused"
  | "rate_limited"
  | "key_banned"
  | "internal_error"
  | "unavailable";

/** The window with the fewest requests left. */
export interface RateLimit {
  limit: number;
  remaining: number;
  resetAt: Date;
}

export interface ResponseMetadata {
  status: number;
  headers: Headers;
  requestId: string | undefined;
  rateLimit: RateLimit | undefined;
  /** In seconds. */
  retryAfter: number | undefined;
  /** The server had executed the request before, and repeated its response. */
  replayed: boolean;
  /** How many requests this call has sent so far: 1 without a retry. */
  attempts: number;
}

export interface RequestEvent {
  method: "GET" | "POST" | "PATCH";
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

export interface DeprecationEvent {
  method: "GET" | "POST" | "PATCH";
  url: string;
  since: Date | undefined;
  /** When the operation is removed. */
  sunset: Date | undefined;
  /** The `Link` header: the successor and the documentation. */
  link: string | undefined;
}

/** A hook that throws makes its call fail. */
export interface Hooks {
  onRequest?: (event: RequestEvent) => void;
  onResponse?: (event: ResponseEvent) => void;
  onRetry?: (event: RetryEvent) => void;
  /** Replaces the warning that is written to the console once for each deprecated operation. */
  onDeprecation?: (event: DeprecationEvent) => void;
}

export interface PetstoreOptions extends Hooks {
  key: string;
  /** With the version: `http://127.0.0.1:8080/v1`. */
  baseUrl: string;
  /** Wait before a request that would exceed the rate limit. Default: true. */
  waitForRateLimit?: boolean;
  /** Retries of one call. Default: 10. */
  maxRetries?: number;
  /** Longest time of one request. Default: 15,000. */
  timeoutMs?: number;
  /** Longest time of one call with its retries; waiting for the rate limit does not count. Default: 120,000. */
  deadlineMs?: number;
  fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
  deadlineMs?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Default: a new random one for each call. The retries of a call share it. */
  idempotencyKey?: string | undefined;
}

export interface ListOptions<Status extends string> extends CallOptions {
  status?: Status | undefined;
  /** Size of a page, 1 to 100. Default: 100 for `list`, 20 for `listPage`. */
  limit?: number | undefined;
  /** `nextCursor` of an earlier page. */
  cursor?: string | undefined;
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
}

/** A promise of the value. `withResponse` also has what the response says about itself. */
export interface Call<T> extends Promise<T> {
  withResponse(): Promise<{ data: T; response: ResponseMetadata }>;
}

export interface Pets {
  /** Every pet, over all pages, in ascending order of their identifiers. */
  list(options?: ListOptions<PetStatus>): Listing<Pet>;
  listPage(options?: ListOptions<PetStatus>): Promise<Page<Pet>>;
  create(pet: NewPet, options?: WriteOptions): Call<Pet>;
  /** The pets with these identifiers that exist, in ascending order; 100 identifiers take one request. */
  byIds(ids: Iterable<Int64>, options?: CallOptions): Promise<Pet[]>;
  /** @deprecated The operation is removed on 5 December 2030. Use `byIds`. */
  get(id: Int64, options?: CallOptions): Call<Pet>;
}

export interface Orders {
  /** The orders of your API key, over all pages. */
  list(options?: ListOptions<OrderStatus>): Listing<Order>;
  listPage(options?: ListOptions<OrderStatus>): Promise<Page<Order>>;
  get(id: Int64, options?: CallOptions): Call<Order>;
  place(order: NewOrder, options?: WriteOptions): Call<Order>;
  /** The pet becomes `sold`. */
  complete(id: Int64, options?: CallOptions): Call<Order>;
  /** The pet becomes `available`. */
  cancel(id: Int64, options?: CallOptions): Call<Order>;
}

export declare class Petstore {
  constructor(options: PetstoreOptions);
  readonly pets: Pets;
  readonly orders: Orders;
}

/** Every error of this package, except the reason of an AbortSignal and a TypeError about an argument. */
export declare class PetstoreError extends Error {
  constructor(message: string, options?: { cause?: unknown });
}

/** The server rejected the request. */
export declare class ApiError extends PetstoreError {
  constructor(options: { code: string | undefined; message: string; response: ResponseMetadata });
  readonly status: number;
  /** undefined if something in front of the server responded. */
  readonly code: ErrorCode | (string & {}) | undefined;
  readonly requestId: string | undefined;
  /** In seconds. */
  readonly retryAfter: number | undefined;
  readonly response: ResponseMetadata;
}

/** 400, 413, 415 and other 4xx without a class of their own. */
export declare class InvalidRequestError extends ApiError {}
/** 401. */
export declare class AuthenticationError extends ApiError {}
/** 403. */
export declare class PermissionError extends ApiError {}
/** 404 and 410. */
export declare class NotFoundError extends ApiError {}
/** 409 and 422. */
export declare class ConflictError extends ApiError {}
/** 429. */
export declare class RateLimitError extends ApiError {}
/** 5xx. */
export declare class ServerError extends ApiError {}

/** No response, or one that cannot be read; `cause` is the error of `fetch`. */
export declare class ConnectionError extends PetstoreError {}
/** The deadline of the call passed; `cause` is its last error, if it had one. */
export declare class TimeoutError extends PetstoreError {}
