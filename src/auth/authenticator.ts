import { CacheStatistics } from "../runtime/bounded-cache.ts";
import { detachedCopy } from "../runtime/detached-copy.ts";
import { BoundedMap } from "../runtime/bounded-map.ts";
import { Unavailable } from "../api/errors.ts";
import {
  type ApiKeyPrincipal,
  type AuthFailure,
  type Credential,
  credentialFailure,
  invalidFrom,
} from "../domain/api-keys.ts";
import { hashSecret, isWellFormedSecret } from "../domain/secrets.ts";
import { type Environment, otherEnvironment } from "../domain/environments.ts";
import type { Access } from "../domain/key-fields.ts";
import { type PlanName, limitsOf } from "../domain/plans.ts";
import type { PolicyInEffect } from "../domain/policy.ts";
import type { Limits } from "../domain/rate-limit.ts";
import { andThen, type Awaitable, recover } from "../runtime/awaitable.ts";
import type { Scheduler } from "../runtime/scheduler.ts";
import type { RateLimiter } from "../domain/ports/rate-limiter.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { LookupQueue } from "./lookup-queue.ts";
import type { Request } from "../http1/index.ts";

export interface AuthenticatorOptions {
  readonly keys: Pick<KeyStore, "findCredential">;
  readonly environment: Environment;
  readonly policy: PolicyInEffect;
  readonly clock: Clock;
  /** Shows whether the address of a client is at its limit. */
  readonly rateLimiter: Pick<RateLimiter, "peek">;
  /** How many verified keys are cached. */
  readonly maxVerified?: number;
  readonly scheduler?: Scheduler | undefined;
}

/** The sender of a key. */
export type Client = Pick<Request, "clientAddress">;

interface Unverified {
  readonly secret: string;
  readonly authorization: string;
  readonly client: Client;
}

const BEARER = /^bearer(?: +(.*))?$/i;
const MAX_VERIFIED = 1_000_000;
const MAX_REJECTED = 10_000;
/** The scheme, a space and a secret take 52 characters. Headers with many more spaces would take memory. */
const MAX_REJECTED_LENGTH = 60;

/**
 * Turns the Authorization header into a principal. Verified keys and rejected headers are cached until `keysChanged`
 * says otherwise.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  #verified: KeyCache;
  readonly #maxVerified: number;
  /** Headers with a secret that no key has. */
  readonly #rejected = new BoundedMap<string, true>(MAX_REJECTED);
  /** Lookups by secret. Requests with the same secret wait for one lookup, unless a change arrived after it began. */
  readonly #lookups = new Map<
    string,
    { readonly generation: number; readonly result: Promise<ApiKeyPrincipal | AuthFailure> }
  >();
  readonly #queue: LookupQueue;
  readonly cacheStatistics = new CacheStatistics();
  /** Grows with each change that arrives, also when the revision of the key store does not. */
  #generation = 0;

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#maxVerified = options.maxVerified ?? MAX_VERIFIED;
    this.#verified = new KeyCache(this.#maxVerified);
    this.#queue = new LookupQueue(options);
  }

  authenticate(authorization: string | null, client: Client): Awaitable<ApiKeyPrincipal | AuthFailure> {
    if (authorization === null) return "missing_api_key";
    // Nearly every header has this spelling. Others work too, and take longer.
    const usual = this.#verified.get(authorization);
    if (usual) return this.#found(usual);
    if (this.#rejected.has(authorization)) return "invalid_api_key";
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined || secret === "") return "missing_api_key";
    const { environment } = this.#options;
    if (!isWellFormedSecret(secret, environment)) {
      const other = otherEnvironment(environment);
      return isWellFormedSecret(secret, other) ? `${other}_api_key` : "invalid_api_key";
    }
    const key = this.#verified.get(headerOf(secret));
    if (key) return this.#found(key);
    this.cacheStatistics.misses++;
    return this.#lookup({ secret, authorization, client });
  }

  /** The number of lookups of unknown keys that wait. */
  get lookupQueueLength(): number {
    return this.#queue.length;
  }

  #found(key: VerifiedKey): ApiKeyPrincipal | AuthFailure {
    this.cacheStatistics.hits++;
    return this.#checkValidity(key);
  }

  #checkValidity(key: VerifiedKey): ApiKeyPrincipal | AuthFailure {
    // Most keys never expire, and reading the clock takes as long as the lookup.
    return key.invalidFrom !== Infinity && this.#options.clock.now() >= key.invalidFrom ? key.failure : key;
  }

  /**
   * Lookups of one secret run one after the other, so that each shows a later state than the one before. A secret that
   * was verified before, and is looked up because its key changed, skips the queue of unknown secrets.
   */
  #lookup({ secret, authorization, client }: Unverified): Awaitable<ApiKeyPrincipal | AuthFailure> {
    const pending = this.#lookups.get(secret);
    const generation = this.#generation;
    if (pending?.generation === generation) return pending.result;
    const work = () => this.#verify(secret, authorization);
    const isLimited = () => this.#isLimited(client);
    const begin = () =>
      this.#verified.has(headerOf(secret)) ? work() : this.#queue.run({ secret, work, isLimited });
    const result = pending ? pending.result.then(begin, begin) : begin();
    if (!(result instanceof Promise)) return result;
    this.#lookups.set(secret, { generation, result });
    const forget = () => {
      if (this.#lookups.get(secret)?.result === result) this.#lookups.delete(secret);
    };
    result.then(forget, forget);
    return result;
  }

  /** Whether the address of the client is at its limit. The request is counted later, after its lookup. */
  #isLimited({ clientAddress: id }: Client): boolean {
    const { rateLimiter, policy } = this.#options;
    return rateLimiter.peek({ kind: "address", id }, policy.current.plans.anonymous).outcome !== "allowed";
  }

  /** Caches nothing if a change has arrived meanwhile, because it may be a change of this key. */
  #verify(secret: string, authorization: string): Awaitable<ApiKeyPrincipal | AuthFailure> {
    const { keys, policy } = this.#options;
    const generation = this.#generation;
    const found = recover<Credential | Unavailable | undefined>(
      () => keys.findCredential(hashSecret(secret)),
      unavailableOnly,
    );
    return andThen(found, (credential) => {
      if (credential instanceof Unavailable) return credential;
      const isCurrent = generation === this.#generation;
      if (credential === undefined) {
        if (isCurrent) this.#cacheRejected(authorization);
        return "invalid_api_key";
      }
      const verified = new VerifiedKey(credential, generation, policy);
      if (isCurrent) this.#verified.set(headerOf(secret), verified);
      return this.#checkValidity(verified);
    });
  }

  #cacheRejected(authorization: string): void {
    if (authorization.length > MAX_REJECTED_LENGTH) return;
    this.#rejected.set(detachedCopy(authorization), true);
  }

  /**
   * Keys have changed: their secrets are looked up again, or all of them if another copy of the database has taken
   * over. A secret that was rejected may be that of a new key.
   */
  keysChanged(ids: readonly number[] | "all"): void {
    const generation = ++this.#generation;
    if (ids === "all") this.#verified.allChanged(generation);
    else for (const id of ids) this.#verified.keyChanged(id, generation);
    if (this.#verified.isOutdated) this.#verified = new KeyCache(this.#maxVerified);
    this.#rejected.clear();
  }
}

/** A key that cannot be looked up is a result, because the request still counts against a rate limit. */
function unavailableOnly(error: unknown): Unavailable {
  if (error instanceof Unavailable) return error;
  throw error;
}

/** A principal with what the cache needs to know about it. */
class VerifiedKey implements ApiKeyPrincipal {
  readonly keyId: number;
  readonly plan: PlanName;
  readonly access: Access;
  /** The secret is invalid from this time of the wall clock on, which may be in the past. */
  readonly invalidFrom: number;
  /** Why it is invalid then. */
  readonly failure: AuthFailure;
  /** The limits of an Enterprise key. */
  readonly #ownLimits: Limits | undefined;
  readonly #policy: PolicyInEffect;

  /** `generation` is the generation in which the lookup began. */
  constructor(
    credential: Credential,
    readonly generation: number,
    policy: PolicyInEffect,
  ) {
    const { id, plan, access, limits } = credential.key;
    this.keyId = id;
    this.plan = plan;
    this.access = access;
    this.invalidFrom = invalidFrom(credential);
    this.failure = credentialFailure(credential);
    this.#ownLimits = limits;
    this.#policy = policy;
  }

  /** The limits now: those of a plan may change. */
  get limits(): Limits {
    return limitsOf(this.plan, this.#ownLimits, this.#policy.current.plans);
  }
}

/** Returns the usual spelling of the header, by which verified keys are cached, as a text that holds no request. */
function headerOf(secret: string): string {
  return detachedCopy(`Bearer ${secret}`);
}

/** When more keys have changed, an empty cache replaces the one that remembers all of the changes. */
const MAX_CHANGED_KEYS = 100_000;

/**
 * Verified keys by the header with their secret. When the cache is full, the key that was verified longest ago is
 * evicted. The comment of `QuotaTable` has the memory that it takes.
 *
 * The time of a lookup does not help to guess a secret: a Map compares at least eight characters at once.
 */
class KeyCache {
  readonly #keys: BoundedMap<string, VerifiedKey>;
  /** The generation in which each key last changed. Entries of earlier generations are out of date. */
  readonly #changedAt = new Map<number, number>();
  #allChangedAt = 0;

  constructor(maxKeys: number) {
    this.#keys = new BoundedMap(maxKeys);
  }

  get isOutdated(): boolean {
    return this.#changedAt.size > MAX_CHANGED_KEYS;
  }

  get(header: string): VerifiedKey | undefined {
    const key = this.#keys.get(header);
    if (key === undefined) return undefined;
    return key.generation < (this.#changedAt.get(key.keyId) ?? this.#allChangedAt) ? undefined : key;
  }

  /** Whether the key was verified, even if it has changed since. */
  has(header: string): boolean {
    return this.#keys.has(header);
  }

  set(header: string, key: VerifiedKey): void {
    this.#keys.set(header, key);
  }

  /** Drops all secrets of a key. */
  keyChanged(keyId: number, generation: number): void {
    this.#changedAt.set(keyId, generation);
  }

  /** Drops all secrets. `has` still knows that they were verified. */
  allChanged(generation: number): void {
    this.#changedAt.clear();
    this.#allChangedAt = generation;
  }
}
