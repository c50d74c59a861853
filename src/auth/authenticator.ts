import { CacheStatistics, copyOf } from "../bounded-cache.ts";
import { Unavailable } from "../api/errors.ts";
import {
  type ApiKeyPrincipal,
  type AuthFailure,
  type Credential,
  type Environment,
  hashSecret,
  isWellFormedSecret,
  SECRET_PREFIX,
  validUntil,
  WHILE_DISABLED,
} from "../domain/api-keys.ts";
import { andThen, type Awaitable, recover } from "../api/awaitable.ts";
import type { Scheduler } from "../event-loop.ts";
import { limitsOf, type Plans } from "../domain/plans.ts";
import type { Clock, KeyChanges, KeyStore, RateLimiter } from "../domain/ports.ts";
import type { Addresses, Client } from "./client-address.ts";
import { KeyCache, SECRET_LENGTH, type VerifiedKey } from "./key-cache.ts";
import { LookupBudget, LookupQueue } from "./lookup-queue.ts";

export interface AuthenticatorOptions {
  readonly keys: Pick<KeyStore, "findCredential" | "changesSince">;
  readonly environment: Environment;
  readonly plans: Plans;
  readonly clock: Clock;
  readonly addresses: Addresses;
  /** Tells whether the address of a client is at its limit. */
  readonly rateLimiter: Pick<RateLimiter, "peek">;
  /** How many verified keys are cached. */
  readonly maxVerified?: number;
  readonly scheduler?: Scheduler | undefined;
}

interface FollowedChanges extends Pick<KeyChanges, "changed" | "unbanned"> {
  /** The changes were made after this time of the steady clock. */
  readonly after: number;
}

interface Unverified {
  readonly secret: string;
  readonly authorization: string;
  readonly client: Client;
}

const BEARER = /^bearer(?: +(.*))?$/i;
const MAX_VERIFIED = 1_000_000;
const MAX_REJECTED = 10_000;
/** The scheme, a space and a secret take 52 characters. More spaces are allowed, and would take memory. */
const MAX_REJECTED_LENGTH = 60;

/**
 * From the Authorization header to the principal. Verified keys and rejected headers are cached; `followChanges` brings
 * the changes that others made to keys.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  readonly #verified: KeyCache;
  /** The start of nearly every header. Every other spelling works too, and takes longer. */
  readonly #usualStart: string;
  readonly #usualLength: number;
  /** Headers with a secret that no key has, oldest first. */
  readonly #rejected = new Set<string>();
  /** By secret. Requests with the same secret wait for one lookup, unless a change came in after it began. */
  readonly #lookups = new Map<
    string,
    { readonly revision: number; readonly result: Promise<ApiKeyPrincipal | AuthFailure> }
  >();
  readonly #queue: LookupQueue;
  readonly cacheStatistics = new CacheStatistics();
  readonly #budget: LookupBudget;
  #revision: number;
  /** When the key store was last asked for that revision, by the steady clock. */
  #polledAt: number;

  private constructor(
    options: AuthenticatorOptions,
    { revision, polledAt }: { revision: number; polledAt: number },
  ) {
    this.#options = options;
    this.#verified = new KeyCache(options.maxVerified ?? MAX_VERIFIED);
    this.#usualStart = `Bearer ${SECRET_PREFIX[options.environment]}`;
    this.#usualLength = this.#usualStart.length + SECRET_LENGTH;
    this.#revision = revision;
    this.#polledAt = polledAt;
    this.#queue = new LookupQueue(options.scheduler);
    this.#budget = new LookupBudget(options.clock);
  }

  static async open(options: AuthenticatorOptions): Promise<Authenticator> {
    const polledAt = options.clock.steadyNow();
    const { revision } = await options.keys.changesSince(Number.MAX_SAFE_INTEGER);
    return new Authenticator(options, { revision, polledAt });
  }

  authenticate(authorization: string | null, client: Client): Awaitable<ApiKeyPrincipal | AuthFailure> {
    if (authorization === null) return "missing_api_key";
    if (authorization.length === this.#usualLength && authorization.startsWith(this.#usualStart)) {
      const key = this.#verified.get(authorization);
      if (key) return this.#found(key);
    }
    if (this.#rejected.has(authorization)) return "invalid_api_key";
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined || secret === "") return "missing_api_key";
    const { environment } = this.#options;
    if (!isWellFormedSecret(secret, environment)) {
      const other = environment === "production" ? "staging" : "production";
      return isWellFormedSecret(secret, other) ? `${other}_api_key` : "invalid_api_key";
    }
    const key = this.#verified.get(secret);
    if (key) return this.#found(key);
    this.cacheStatistics.misses++;
    return this.#lookup({ secret, authorization, client });
  }

  /** Lookups of unknown keys that wait. */
  get lookupQueueLength(): number {
    return this.#queue.length;
  }

  #found(key: VerifiedKey): ApiKeyPrincipal | AuthFailure {
    this.cacheStatistics.hits++;
    return this.#checkValidity(key);
  }

  #checkValidity(key: VerifiedKey): ApiKeyPrincipal | AuthFailure {
    const { keyId, plan, limits, access, validUntil } = key;
    // Most keys are valid for ever, and reading the clock takes as long as the lookup.
    if (validUntil !== Infinity && this.#options.clock.now() >= validUntil)
      return validUntil === WHILE_DISABLED ? "disabled_api_key" : "invalid_api_key";
    return { keyId, subject: { kind: "key", id: keyId }, plan, limits, access };
  }

  /**
   * Lookups of one secret run one after the other, so that none shows a state from before the one that it follows. A
   * secret that was verified before, and is looked up because its key changed, does not wait behind unknown ones.
   */
  #lookup({ secret, authorization, client }: Unverified): Awaitable<ApiKeyPrincipal | AuthFailure> {
    const pending = this.#lookups.get(secret);
    const revision = this.#revision;
    if (pending?.revision === revision) return pending.result;
    let isInBudget = false;
    const mayRun = () => isInBudget || !this.#isLimited(client) || (isInBudget = this.#budget.take(secret));
    const verify = () => this.#verify(secret, authorization);
    const begin = () => (this.#verified.has(secret) ? verify() : this.#queue.run(secret, verify, mayRun));
    const result = pending ? pending.result.then(begin, begin) : begin();
    if (!(result instanceof Promise)) return result;
    this.#lookups.set(secret, { revision, result });
    const forget = () => {
      if (this.#lookups.get(secret)?.result === result) this.#lookups.delete(secret);
    };
    result.then(forget, forget);
    return result;
  }

  /** Whether the address of the client is at its limit. Counts nothing: a request counts after its lookup. */
  #isLimited(client: Client): boolean {
    const { addresses, rateLimiter, plans } = this.#options;
    return rateLimiter.peek(addresses.subjectOf(client), plans.anonymous).outcome !== "allowed";
  }

  /** Caches nothing when a change came in meanwhile: it may be a change of this key. */
  #verify(secret: string, authorization: string): Awaitable<ApiKeyPrincipal | AuthFailure> {
    const { keys, plans } = this.#options;
    const revision = this.#revision;
    const found = recover<Credential | Unavailable | undefined>(
      () => keys.findCredential(hashSecret(secret)),
      unavailableOnly,
    );
    return andThen(found, (credential) => {
      if (credential instanceof Unavailable) return credential;
      const isCurrent = revision === this.#revision;
      if (credential === undefined) {
        if (isCurrent) this.#cacheRejected(authorization);
        return "invalid_api_key";
      }
      const { key } = credential;
      const { id: keyId, plan, access } = key;
      const verified = {
        keyId,
        plan,
        limits: limitsOf(key, plans),
        access,
        validUntil: validUntil(credential),
      };
      if (isCurrent) this.#verified.set(secret, verified, revision);
      return this.#checkValidity(verified);
    });
  }

  #cacheRejected(authorization: string): void {
    if (authorization.length > MAX_REJECTED_LENGTH) return;
    const [oldest] = this.#rejected;
    if (this.#rejected.size >= MAX_REJECTED && oldest !== undefined) this.#rejected.delete(oldest);
    this.#rejected.add(copyOf(authorization));
  }

  /** Takes over the changes since the last call. */
  async followChanges(): Promise<FollowedChanges> {
    const { keys, clock } = this.#options;
    const after = this.#polledAt;
    const polledAt = clock.steadyNow();
    const { revision, changed, unbanned } = await keys.changesSince(this.#revision);
    for (const { id } of changed) this.#verified.keyChanged(id, revision);
    // A rejected secret may be that of a new key.
    if (revision !== this.#revision) this.#rejected.clear();
    this.#revision = revision;
    this.#polledAt = polledAt;
    return { after, changed, unbanned };
  }
}

/** A key that cannot be looked up is a result and no error: the request still counts against a rate limit. */
function unavailableOnly(error: unknown): Unavailable {
  if (error instanceof Unavailable) return error;
  throw error;
}
