import type { Awaitable } from "../../runtime/awaitable.ts";
import type { Rejection } from "../../api/errors.ts";
import type { TaggedJson } from "../../runtime/etag.ts";
import type { Identifier } from "../../api/json.ts";
import type { Attribution } from "../audit.ts";
import type {
  NewPet,
  OperatorOrder,
  Order,
  OrderFilters,
  OrderUpdate,
  Pet,
  PetFilters,
  PetUpdate,
} from "../pets-and-orders.ts";
import type { PageQuery, PageJson, Page } from "../pages.ts";

export interface PetQuery extends PageQuery, PetFilters {
  /** The identifiers of the pets, ascending, each once. */
  readonly ids?: readonly bigint[] | undefined;
}

/** Selects orders of one key. */
export interface OrderPageQuery extends PageQuery, OrderFilters {}

/** Selects orders of all keys. Every condition that is given has to hold. */
export interface OrderQuery extends OrderFilters {
  readonly keyId?: number | undefined;
  readonly petId?: bigint | undefined;
  /** The identifier of the last order of the page before. */
  readonly before?: bigint | undefined;
  readonly limit: number;
}

/** A write with an Idempotency-Key. Requests with the same API key, operation and Idempotency-Key are one request. */
export interface IdempotentRequest {
  readonly keyId: number;
  readonly idempotencyKey: string;
  /** SHA-256 of the request body. The same Idempotency-Key with a different body is rejected. */
  readonly fingerprint: string;
}

export interface WriteResult {
  readonly id: bigint;
  /** The response body; a repeated request gets it again, byte for byte. */
  readonly body: string;
  /** True when the write was done before and this is its stored result. */
  readonly replayed: boolean;
}

/** An order to place, and the key that it will belong to. */
export interface OrderPlacement {
  readonly keyId: number;
  readonly petId: bigint;
}

/** The completion or cancellation of an order by the key that placed it. */
export interface OwnOrderUpdate extends OrderUpdate {
  readonly keyId: number;
  readonly id: bigint;
  /** The `If-Match` header: the order is updated only if its ETag is one of these, or if this is `*`. */
  readonly ifMatch?: string | undefined;
}

export type IdempotencyRejection = Rejection<"idempotency_conflict" | "idempotency_key_reused">;

/** Pets as JSON text. Stores write it faster than rows could be encoded here. */
export interface PetJsonSource {
  list(query: PetQuery): Awaitable<PageJson>;
  get(id: Identifier): Awaitable<TaggedJson | undefined>;
  /** Absent if other servers write too. Then responses cannot be cached. */
  readonly revisions?: PetRevisions;
  /** Drops what is cached if another process has changed pets. Called at each poll for changes. */
  checkOtherProcesses?(): void;
  /** Replaced whenever reads are sent. While it is the same, a read that has begun may serve one that begins now. */
  readonly batch?: object;
  /** The statistics of the cache, if there is one. */
  readonly cacheStatistics?: { readonly hits: number; readonly misses: number };
}

/** Numbers that grow when any pet changes. The second one grows also when a pet is added. */
export interface PetRevisions {
  readonly changes: number;
  readonly changesAndAdditions: number;
}

/**
 * Pets and orders, as clients use them, apart from reads of pets: PetJsonSource has those. An order belongs to the API
 * key that placed it, and other keys cannot see it. Every write is one transaction, and its promise resolves after that
 * transaction is durable. Identifiers start at 1, grow, and are never used twice. Every method throws Unavailable while
 * the database cannot be used. Times are milliseconds since the epoch.
 */
export interface ClientStore {
  createPet(
    pet: NewPet,
    at: number,
    idempotentRequest?: IdempotentRequest,
  ): Promise<WriteResult | IdempotencyRejection>;

  /** Lists the orders of a key in ascending order of identifiers. The first page and the last cost the same. */
  listOrders(keyId: number, query: OrderPageQuery): Awaitable<Page<Order>>;
  getOrder(keyId: number, id: bigint): Awaitable<Order | undefined>;
  /** Creates an order and makes its pet pending. */
  placeOrder(
    placement: OrderPlacement,
    at: number,
    idempotentRequest?: IdempotentRequest,
  ): Promise<WriteResult | IdempotencyRejection | Rejection<"pet_not_found" | "pet_not_available">>;
  /** Completes or cancels an order and makes its pet sold or available. An order with this status stays as it is. */
  updateOrder(
    update: OwnOrderUpdate,
    at: number,
  ): Promise<Order | Rejection<"order_not_found" | "order_closed" | "precondition_failed">>;

  /** Rejects new writes, finishes those already accepted, then closes the database. */
  close(): Promise<void>;
}

/**
 * All pets and orders, as operators manage them: they see the orders of every key, and change what clients cannot.
 * Every write is one transaction with its audit entry, and its promise resolves after that transaction is durable. A
 * write that changes nothing has no audit entry. Every method throws Unavailable while the database cannot be used.
 */
export interface OperatorPetStore {
  /** Lists pets in ascending order of identifiers. The first page and the last cost the same. */
  listPets(query: PetQuery): Awaitable<Page<Pet>>;
  /** Lists the pets whose names contain the text, in upper or lower case. The page reads 1,000 pets at most. */
  searchPets(text: string, query: PetQuery): Awaitable<Page<Pet>>;
  getPet(id: bigint): Awaitable<Pet | undefined>;
  /** Lists orders, newest first. The first page and the last cost the same. */
  listOrders(query: OrderQuery): Awaitable<Page<OperatorOrder>>;
  getOrder(id: bigint): Awaitable<OperatorOrder | undefined>;
  /** Completes or cancels an order of any key, as a client does. */
  updateOrder(
    id: bigint,
    status: OrderUpdate["status"],
    by: Attribution,
  ): Promise<OperatorOrder | Rejection<"order_not_found" | "order_closed">>;

  createPet(pet: NewPet, by: Attribution): Promise<Pet>;
  /** A pet with a placed order keeps its status. */
  updatePet(
    id: bigint,
    change: PetUpdate,
    by: Attribution,
  ): Promise<Pet | Rejection<"pet_not_found" | "pet_ordered">>;
  /** Returns the pet as it was. A pet that has ever been ordered is not deleted. */
  deletePet(id: bigint, by: Attribution): Promise<Pet | Rejection<"pet_not_found" | "pet_has_orders">>;
}
