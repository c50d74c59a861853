import type { Rejection } from "../contract/errors.ts";
import type { NewPet, Order, OrderStatus, OrderUpdate, Pet, PetStatus } from "../contract/resources.ts";
import type { Awaitable } from "./awaitable.ts";
import type { ApiKey, Credential, NewKey } from "./api-keys.ts";
import type { Limits, Usage, Subject, Decision } from "./rate-limit.ts";

/** Milliseconds since the epoch. Injected everywhere, so that no test sleeps. */
export interface Clock {
  now(): number;
}

export interface PageQuery<Status> {
  /** Entries with a greater identifier only. */
  readonly after?: bigint;
  readonly status?: Status;
  readonly limit: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Whether another entry that fits the query stood behind the last one. */
  readonly more: boolean;
}

/** A write that the client may repeat. Two requests are the same when API key, operation and Idempotency-Key are. */
export interface IdempotentRequest {
  readonly keyId: number;
  readonly idempotencyKey: string;
  /** SHA-256 of the body; another body under the same key is refused. */
  readonly fingerprint: string;
}

/** The answer to a write: the bytes that a repeated idempotentRequest gets again. */
export interface WriteResult {
  readonly id: bigint;
  readonly body: string;
  readonly replayed: boolean;
}

type IdempotencyRejection = Rejection<"idempotency_conflict" | "idempotency_key_reused">;

/**
 * Pets and orders. Every write is one transaction, and its promise resolves only after that transaction is durable.
 * Identifiers start at 1, grow, and are never given twice. An engine that cannot answer throws Unavailable.
 */
export interface Store {
  /** By identifier, ascending; the cost does not depend on how deep the page lies. */
  listPets(query: PageQuery<PetStatus>): Awaitable<Page<Pet>>;
  getPet(id: bigint): Awaitable<Pet | undefined>;
  createPet(
    pet: NewPet,
    at: number,
    idempotentRequest?: IdempotentRequest,
  ): Promise<WriteResult | IdempotencyRejection>;

  listOrders(query: PageQuery<OrderStatus>): Awaitable<Page<Order>>;
  /** The pet becomes pending in the same transaction. */
  placeOrder(
    petId: bigint,
    at: number,
    idempotentRequest?: IdempotentRequest,
  ): Promise<WriteResult | IdempotencyRejection | Rejection<"pet_not_found" | "pet_not_available">>;
  /** The pet becomes sold or available in the same transaction. */
  updateOrder(
    id: bigint,
    status: OrderUpdate["status"],
  ): Promise<Order | Rejection<"order_not_found" | "order_closed">>;

  /** Finishes what was accepted, then lets go of the engine. */
  close(): Promise<void>;
}

/** API keys. Every change moves the revision on, in the order of the commits, so that no follower misses one. */
export interface KeyStore {
  /** By the SHA-256 (hex) of a secret; the secret is never stored. Expiry and revocation are the caller's to judge. */
  findCredential(secretHash: string): Awaitable<Credential | undefined>;
  /** What changed after a revision; a follower asks several times a second. */
  changesSince(revision: number): Awaitable<{ revision: number; changed: readonly ApiKey[] }>;

  createKey(key: NewKey, secretHash: string): Promise<ApiKey>;
  /** As createKey, but only where no key was ever made; of many that try at once, one makes it. */
  createFirstKey(key: NewKey, secretHash: string): Promise<ApiKey | undefined>;
  /** Oldest first. */
  listKeys(): Awaitable<readonly ApiKey[]>;
  getKey(id: number): Awaitable<ApiKey | undefined>;
  /** Adds a secret; the ones before it stop working at `overlapEndsAt`. */
  addSecret(id: number, secretHash: string, overlapEndsAt: number): Promise<void>;
  /** Changes what is given and leaves the rest; own limits go when the plan is Enterprise no longer. */
  updateKey(
    id: number,
    change: Partial<Pick<ApiKey, "plan" | "limits" | "revokedAt" | "unbannedAt">>,
  ): Promise<void>;
}

/** Two windows per subject, charged together or not at all. */
export interface RateLimiter {
  /** One atomic intent: decide this subject under these limits, now. In process it answers without a promise. */
  decide(subject: Subject, limits: Limits): Awaitable<Decision>;
  /** Where a subject stands, without charging it. */
  usage(subject: Subject): Awaitable<Usage | undefined>;
  /** Lifts a ban that began at or before `at`, with its strikes. */
  unban(subject: Subject, at: number): Awaitable<void>;
  close(): Promise<void>;
}

/** Keeps the usage of an in-process rate limiter across restarts. It is written behind the requests. */
export interface UsageStore {
  load(): Iterable<readonly [Subject, Usage]>;
  /** Standings that changed since the last call; undefined means forgotten. */
  save(changes: Iterable<readonly [Subject, Usage | undefined]>): void;
  find(subject: Subject): Usage | undefined;
  close(): void;
}
