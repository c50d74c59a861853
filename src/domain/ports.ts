import type { Refusal } from "../contract/errors.ts";
import type { Identifier } from "../contract/json.ts";
import type { NewPet, Order, OrderStatus, OrderUpdate, Pet, PetStatus } from "../contract/resources.ts";
import type { ApiKey, Credential, NewKey } from "./api-keys.ts";
import type { Limits, Standing, Subject, Verdict } from "./rate-limit.ts";

/** A value now or later: embedded engines answer at once, and nothing on their path waits for a promise. */
export type Awaitable<T> = T | Promise<T>;

/** Milliseconds since the epoch. Injected everywhere, so that no test sleeps. */
export interface Clock {
  now(): number;
}

export interface Query<Status> {
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

/** A range of animals by identifier, both ends included; without `to` it reaches to all that will ever be added. */
export interface Span {
  readonly from: bigint;
  readonly to?: bigint;
}

/**
 * Tells whether animals may have changed. Only a store through which every write goes can offer it: where other
 * processes write too, nothing that was read may be given again.
 */
export interface Freshness {
  /**
   * The answer says whether what was read of the span before this call still stands: nothing in it has changed since.
   */
  watch(span: Span): () => boolean;
}

/** A page of animals in the words of the contract. */
export interface WrittenPage {
  /** A JSON array. */
  readonly json: string;
  /** The last identifier shown; undefined when there is none. */
  readonly last: bigint | undefined;
  readonly more: boolean;
  /** Where more of a filter can turn into no more: the next animal that fits. */
  readonly next?: bigint;
}

/** An animal in the words of the contract. */
export interface WrittenPet {
  readonly json: string;
  /** The validator of that text. */
  readonly etag: string;
}

/** What an engine offers that keeps animals as the contract writes them: to the byte what encodePet gives. */
export interface WrittenPets {
  list(query: Query<PetStatus>): Awaitable<WrittenPage>;
  get(id: Identifier): Awaitable<WrittenPet | undefined>;
}

/** One attempt at a write that its caller may repeat. Two attempts are the same when caller, operation and key are. */
export interface Attempt {
  readonly keyId: number;
  readonly idempotencyKey: string;
  /** SHA-256 of the body; another body under the same key is refused. */
  readonly fingerprint: string;
}

/** The answer to a write: the bytes that a repeated attempt gets again. */
export interface Written {
  readonly id: bigint;
  readonly body: string;
  readonly replayed: boolean;
}

type Retried = Refusal<"idempotency_conflict" | "idempotency_key_reused">;

/**
 * Animals and orders. Every write is one transaction, and its promise resolves only after that transaction is durable.
 * Identifiers start at 1, grow, and are never given twice. An engine that cannot answer throws Unavailable.
 */
export interface Store {
  readonly freshness?: Freshness;
  readonly written?: WrittenPets;

  /** By identifier, ascending; the cost does not depend on how deep the page lies. */
  listPets(query: Query<PetStatus>): Awaitable<Page<Pet>>;
  getPet(id: bigint): Awaitable<Pet | undefined>;
  createPet(pet: NewPet, at: number, attempt?: Attempt): Promise<Written | Retried>;

  listOrders(query: Query<OrderStatus>): Awaitable<Page<Order>>;
  /** The animal becomes pending in the same transaction. */
  placeOrder(
    petId: bigint,
    at: number,
    attempt?: Attempt,
  ): Promise<Written | Retried | Refusal<"pet_not_found" | "pet_not_available">>;
  /** The animal becomes sold or available in the same transaction. */
  updateOrder(
    id: bigint,
    status: OrderUpdate["status"],
  ): Promise<Order | Refusal<"order_not_found" | "order_closed">>;

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
    change: Partial<Pick<ApiKey, "plan" | "limits" | "revokedAt" | "pardonedAt">>,
  ): Promise<void>;
}

/** Two windows per subject, charged together or not at all. */
export interface Limiter {
  /** One atomic intent: admit this subject under these limits, now. In process it answers without a promise. */
  admit(subject: Subject, limits: Limits): Awaitable<Verdict>;
  /** Where a subject stands, without charging it. */
  standing(subject: Subject): Awaitable<Standing | undefined>;
  /** Lifts a ban that began at or before `at`, with its strikes. */
  pardon(subject: Subject, at: number): Awaitable<void>;
  close(): Promise<void>;
}

/** Where an in-process limiter keeps its counts across restarts; written behind the requests, never in front of one. */
export interface Ledger {
  load(): Iterable<readonly [Subject, Standing]>;
  /** Standings that changed since the last call; undefined means forgotten. */
  save(changes: Iterable<readonly [Subject, Standing | undefined]>): void;
  find(subject: Subject): Standing | undefined;
  close(): void;
}
