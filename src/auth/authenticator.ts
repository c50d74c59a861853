import { CacheStatistics, copyOf } from "../bounded-cache.ts";
import { Unavailable } from "../api/errors.ts";
import {
  type ApiKeyPrincipal,
  type AuthFailure,
  type Credential,
  type Environment,
  hashSecret,
  isWellFormedSecret,
  limitsOf,
  type Plans,
  PLANS,
  validUntil,
  WHILE_DISABLED,
} from "../domain/api-keys.ts";
import { andThen, type Awaitable, recover, type Scheduler } from "../event-loop.ts";
import { KEY_PREFIX } from "../domain/constants.ts";
import type { Clock, KeyChanges, KeyStore, RateLimiter } from "../domain/ports.ts";
import { LookupQueue } from "./lookup-queue.ts";
import type { Request } from "../http1/index.ts";
import { HashIndex, hashInt32, NONE } from "../hash-index.ts";

export interface AuthenticatorOptions {
  readonly keys: Pick<KeyStore, "findCredential" | "changesSince">;
  readonly environment: Environment;
  readonly plans: Plans;
  readonly clock: Clock;
  /** Tells whether the address of a client is at its limit. */
  readonly rateLimiter: Pick<RateLimiter, "peek">;
  /** How many verified keys are cached. */
  readonly maxVerified?: number;
  readonly scheduler?: Scheduler | undefined;
}

interface FollowedChanges extends Pick<KeyChanges, "changed" | "unbanned"> {
  /** The changes were made after this time of the steady clock. */
  readonly after: number;
  /** Set if another copy of the database has taken over, or an earlier state of it. */
  readonly otherCopy?: OtherCopy;
}

/** The copy lacks changes if its revision is lower. If it is not, it may still lack some, and have others instead. */
export interface OtherCopy {
  readonly revision: number;
  readonly revisionBefore: number;
}

/** Who sends a key. */
export type Client = Pick<Request, "clientAddress">;

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
  #verified: KeyCache;
  /** The start of nearly every header. Every other spelling works too, and takes longer. */
  readonly #usualStart: string;
  readonly #usualLength: number;
  readonly #maxVerified: number;
  /** Headers with a secret that no key has, oldest first. */
  readonly #rejected = new Set<string>();
  /** By secret. Requests with the same secret wait for one lookup, unless a change came in after it began. */
  readonly #lookups = new Map<
    string,
    { readonly generation: number; readonly result: Promise<ApiKeyPrincipal | AuthFailure> }
  >();
  readonly #queue: LookupQueue;
  readonly cacheStatistics = new CacheStatistics();
  /** Grows with each change that comes in, whatever the revisions of the key store do. */
  #generation = 0;
  /** What the key store last said. */
  #seen: Pick<KeyChanges, "revision" | "timeline">;
  /** When the key store was last asked, by the steady clock. */
  #polledAt: number;

  private constructor(options: AuthenticatorOptions, seen: KeyChanges, polledAt: number) {
    this.#options = options;
    this.#maxVerified = options.maxVerified ?? MAX_VERIFIED;
    this.#verified = new KeyCache(this.#maxVerified);
    this.#usualStart = `Bearer ${KEY_PREFIX[options.environment]}`;
    this.#usualLength = this.#usualStart.length + SECRET_LENGTH;
    this.#seen = seen;
    this.#polledAt = polledAt;
    this.#queue = new LookupQueue(options.clock, options.scheduler);
  }

  static async open(options: AuthenticatorOptions): Promise<Authenticator> {
    const polledAt = options.clock.steadyNow();
    const seen = await options.keys.changesSince(Number.MAX_SAFE_INTEGER);
    return new Authenticator(options, seen, polledAt);
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
    const { validUntil } = key;
    // Most keys are valid for ever, and reading the clock takes as long as the lookup.
    if (validUntil !== Infinity && this.#options.clock.now() >= validUntil)
      return validUntil === WHILE_DISABLED ? "disabled_api_key" : "invalid_api_key";
    return key;
  }

  /**
   * Lookups of one secret run one after the other, so that none shows a state from before the one that it follows. A
   * secret that was verified before, and is looked up because its key changed, does not wait behind unknown ones.
   */
  #lookup({ secret, authorization, client }: Unverified): Awaitable<ApiKeyPrincipal | AuthFailure> {
    const pending = this.#lookups.get(secret);
    const generation = this.#generation;
    if (pending?.generation === generation) return pending.result;
    const work = () => this.#verify(secret, authorization);
    const isLimited = () => this.#isLimited(client);
    const begin = () => (this.#verified.has(secret) ? work() : this.#queue.run({ secret, work, isLimited }));
    const result = pending ? pending.result.then(begin, begin) : begin();
    if (!(result instanceof Promise)) return result;
    this.#lookups.set(secret, { generation, result });
    const forget = () => {
      if (this.#lookups.get(secret)?.result === result) this.#lookups.delete(secret);
    };
    result.then(forget, forget);
    return result;
  }

  /** Whether the address of the client is at its limit. Counts nothing: a request counts after its lookup. */
  #isLimited({ clientAddress: id }: Client): boolean {
    const { rateLimiter, plans } = this.#options;
    return rateLimiter.peek({ kind: "address", id }, plans.anonymous).outcome !== "allowed";
  }

  /** Caches nothing when a change came in meanwhile: it may be a change of this key. */
  #verify(secret: string, authorization: string): Awaitable<ApiKeyPrincipal | AuthFailure> {
    const { keys, plans } = this.#options;
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
      const { key } = credential;
      const { id, plan, access } = key;
      const verified: VerifiedKey = {
        keyId: id,
        subject: { kind: "key", id },
        plan,
        limits: limitsOf(key, plans),
        access,
        validUntil: validUntil(credential),
      };
      if (isCurrent) this.#verified.set(secret, verified, generation);
      return this.#checkValidity(verified);
    });
  }

  #cacheRejected(authorization: string): void {
    if (authorization.length > MAX_REJECTED_LENGTH) return;
    const [oldest] = this.#rejected;
    if (this.#rejected.size >= MAX_REJECTED && oldest !== undefined) this.#rejected.delete(oldest);
    this.#rejected.add(copyOf(authorization));
  }

  /**
   * Takes over the changes since the last call. A copy of the database that has taken over may lack some of them, and
   * give their revisions to others: then all keys are looked up again.
   */
  async followChanges(): Promise<FollowedChanges> {
    const { keys, clock } = this.#options;
    const after = this.#polledAt;
    const polledAt = clock.steadyNow();
    const before = this.#seen;
    const { changed, unbanned, ...seen } = await keys.changesSince(before.revision);
    const isOtherCopy = seen.timeline !== before.timeline || seen.revision < before.revision;
    if (isOtherCopy || changed.length > 0 || seen.revision !== before.revision) {
      const generation = ++this.#generation;
      for (const { id } of changed) this.#verified.keyChanged(id, generation);
      if (isOtherCopy) this.#verified.allChanged(generation);
      if (this.#verified.isOutdated) this.#verified = new KeyCache(this.#maxVerified);
      // A rejected secret may be that of a new key.
      this.#rejected.clear();
    }
    this.#seen = seen;
    this.#polledAt = polledAt;
    const otherCopy = { revision: seen.revision, revisionBefore: before.revision };
    return { after, changed, unbanned, ...(isOtherCopy && { otherCopy }) };
  }
}

/** A key that cannot be looked up is a result and no error: the request still counts against a rate limit. */
function unavailableOnly(error: unknown): Unavailable {
  if (error instanceof Unavailable) return error;
  throw error;
}

/** What the key store has on a secret. */
interface VerifiedKey extends ApiKeyPrincipal {
  /** The secret is invalid from this time of the wall clock on, which may be in the past. */
  readonly validUntil: number;
}

/** What follows the prefix of a secret: 30 random characters and six of checksum. */
const SECRET_LENGTH = 36;

/**
 * A record is 64 bytes, one cache line: with many keys, fetching a line from memory takes longer than all the rest.
 *
 *      0  the secret without its prefix   (a byte a character)
 *     36  keyId, validUntil   (f64)
 *     52  perMinute   (30 bits of u32), plan   (2 bits)
 *     56  perDay   (30 bits of u32), access   (1 bit: may write)
 *     60  generation   (u32)
 */
const KEY_ID = 36;
const VALID_UNTIL = 44;
const PER_MINUTE = 52;
const PER_DAY = 56;
const GENERATION = 60;
/** Limits are at most 1,000,000,000, which takes 30 bits. */
const LIMIT_BITS = 30;
const LIMIT_MASK = 2 ** LIMIT_BITS - 1;
const MAY_WRITE = 2 ** LIMIT_BITS;
const RECORD_BYTES = 64;

const PAGE_SHIFT = 12;
const PAGE_MASK = (1 << PAGE_SHIFT) - 1;

/** When more keys have changed, an empty cache takes the place of one that would remember them all. */
const MAX_CHANGED_KEYS = 100_000;

/**
 * Verified keys by their secrets, in memory that the garbage collector does not trace: `bun bench/limiter.ts` shows
 * what a million take, and how long requests wait while they are added. A Map takes about twice as much.
 *
 * When the cache is full, the oldest entry makes room. Methods take any text that ends with the secret, such as the
 * Authorization header.
 *
 * The time of a lookup tells nothing about a secret: the hash is seeded, and two secrets with the same hash are
 * compared to the end.
 */
class KeyCache {
  readonly #pages: DataView[] = [];
  readonly #index = new HashIndex<string>((record, text) => this.#hasSecret(record, text));
  #count = 0;
  /** The record that is written next; when the cache is full, it is the oldest one. */
  #next = 0;
  /** The generation in which a key last changed; what the cache learned before it is out of date. */
  readonly #changedAt = new Map<number, number>();
  #allChangedAt = 0;

  constructor(private readonly maxKeys: number) {}

  get isOutdated(): boolean {
    return this.#changedAt.size > MAX_CHANGED_KEYS;
  }

  get(text: string): VerifiedKey | undefined {
    const record = this.#index.find(hashOf(text), text);
    if (record === NONE) return undefined;
    const page = this.#page(record);
    const at = offset(record);
    const keyId = page.getFloat64(at + KEY_ID, true);
    const changedAt = this.#changedAt.get(keyId) ?? this.#allChangedAt;
    if (page.getUint32(at + GENERATION, true) < changedAt) return undefined;
    const perMinuteAndPlan = page.getUint32(at + PER_MINUTE, true);
    const perDayAndAccess = page.getUint32(at + PER_DAY, true);
    return {
      keyId,
      subject: { kind: "key", id: keyId },
      plan: PLANS[perMinuteAndPlan >>> LIMIT_BITS] ?? "free",
      limits: {
        perMinute: perMinuteAndPlan & LIMIT_MASK,
        perDay: perDayAndAccess & LIMIT_MASK,
      },
      access: (perDayAndAccess & MAY_WRITE) === 0 ? "read" : "write",
      validUntil: page.getFloat64(at + VALID_UNTIL, true),
    };
  }

  /** Whether the secret was verified, also when its key has changed since. */
  has(text: string): boolean {
    return this.#index.find(hashOf(text), text) !== NONE;
  }

  /** `generation` is that in which the lookup began. */
  set(text: string, key: VerifiedKey, generation: number): void {
    const { keyId, plan, limits, access, validUntil } = key;
    const found = this.#index.find(hashOf(text), text);
    const record = found === NONE ? this.#addRecord(text) : found;
    const page = this.#page(record);
    const at = offset(record);
    page.setFloat64(at + KEY_ID, keyId, true);
    page.setFloat64(at + VALID_UNTIL, validUntil, true);
    page.setUint32(at + PER_MINUTE, limits.perMinute + PLANS.indexOf(plan) * 2 ** LIMIT_BITS, true);
    page.setUint32(at + PER_DAY, limits.perDay + (access === "write" ? MAY_WRITE : 0), true);
    page.setUint32(at + GENERATION, generation, true);
  }

  /** Drops all secrets of a key. */
  keyChanged(keyId: number, generation: number): void {
    this.#changedAt.set(keyId, generation);
  }

  /** Drops all secrets. They are still those of keys that were verified before. */
  allChanged(generation: number): void {
    this.#changedAt.clear();
    this.#allChangedAt = generation;
  }

  #addRecord(text: string): number {
    const record = this.#next;
    this.#next = (record + 1) % this.maxKeys;
    if (record < this.#count) this.#index.remove(hashOf(this.#secretAt(record)), record);
    else this.#count++;
    const page = (this.#pages[record >>> PAGE_SHIFT] ??= new DataView(
      new ArrayBuffer(RECORD_BYTES << PAGE_SHIFT),
    ));
    const start = text.length - SECRET_LENGTH;
    for (let i = 0; i < SECRET_LENGTH; i++) page.setUint8(offset(record) + i, text.charCodeAt(start + i));
    this.#index.add(hashOf(text), record);
    return record;
  }

  /** Compares every character: the time does not tell how many were right. */
  #hasSecret(record: number, text: string): boolean {
    const page = this.#page(record);
    const at = offset(record);
    const start = text.length - SECRET_LENGTH;
    let difference = 0;
    for (let i = 0; i < SECRET_LENGTH; i++) difference |= page.getUint8(at + i) ^ text.charCodeAt(start + i);
    return difference === 0;
  }

  #secretAt(record: number): string {
    return Buffer.from(this.#page(record).buffer, offset(record), SECRET_LENGTH).toString("latin1");
  }

  #page(record: number): DataView {
    const page = this.#pages[record >>> PAGE_SHIFT];
    if (page === undefined) throw new RangeError(`record ${record} does not exist`);
    return page;
  }
}

function offset(record: number): number {
  return (record & PAGE_MASK) * RECORD_BYTES;
}

/** Of the first four characters, which are random. */
function hashOf(text: string): number {
  const start = text.length - SECRET_LENGTH;
  return hashInt32(
    text.charCodeAt(start) |
      (text.charCodeAt(start + 1) << 8) |
      (text.charCodeAt(start + 2) << 16) |
      (text.charCodeAt(start + 3) << 24),
  );
}
