import {
  RepeatFilter,
  BoundedCache,
  CacheStatistics,
  type Sized,
  stringBytes,
} from "../runtime/bounded-cache.ts";
import { detachedCopy } from "../runtime/detached-copy.ts";
import { Rejection } from "../api/errors.ts";
import type { Awaitable } from "../runtime/awaitable.ts";

/** The response to a success, without the headers that depend on the request. */
export interface Representation {
  /** The header lines with `ETag` and without the rate limit headers. */
  readonly headerLines: string;
  readonly body: string;
  /** Undefined if the operation has no `ETag`. */
  readonly etag: string | undefined;
  /** The revision of what the response shows. A response that has none is not cached. */
  readonly revision?: CurrentRevision | undefined;
}

/** The responses of an operation that other requests may have, by query string. */
export interface ReusableResponses {
  /** Returns the response to an equal request, or makes one. */
  findOrMake(query: string, make: () => Made): Made;
}

type Made = Awaitable<Representation | Rejection>;

/** Returns a number that is another one after each change of what a response shows. */
export type CurrentRevision = () => number;

interface Entry extends Sized {
  readonly representation: Representation;
  readonly currentRevision: CurrentRevision;
  /** The revision that the response shows. */
  readonly revision: number;
}

const MAX_BYTES = 8 * 1024 * 1024;
/** The memory that an entry takes besides its body. */
const ENTRY_BYTES = 2_000;
const MAX_KEY_LENGTH = 200;
/**
 * The slots of the filter of repeats. Of entries of 4 KiB, so many fit in the cache, so that few entries are evicted
 * before they are used.
 */
const REPEAT_SLOTS = 2_048;

/**
 * Caches responses by query string. The revision is compared on every hit, so a response shows every change of this
 * process, and those of other processes as soon as a poll has found them. `wrk -t1 -c32` on the first page of
 * `GET /v1/pets` shows half the CPU time for each request with this cache.
 *
 * A response is added when it is requested the second time, because most pages are requested once: with a query that is
 * never repeated, adding every response takes a third more CPU time.
 */
export class ResponseCache implements ReusableResponses {
  readonly #entries = new BoundedCache<string, Entry>(MAX_BYTES);
  readonly #repeats = new RepeatFilter(REPEAT_SLOTS);

  constructor(private readonly statistics = new CacheStatistics()) {}

  findOrMake(query: string, make: () => Made): Made {
    const cached = this.find(query);
    if (cached) return cached;
    const made = make();
    // While a promise is pending, pets may change: its response would be older than the revision that is read here.
    if (!(made instanceof Promise) && !(made instanceof Rejection) && made.revision)
      this.add(query, made, made.revision);
    return made;
  }

  find(key: string): Representation | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined && entry.revision === entry.currentRevision()) {
      this.statistics.hits++;
      return entry.representation;
    }
    this.statistics.misses++;
    if (entry !== undefined) this.#entries.delete(key);
    return undefined;
  }

  add(key: string, representation: Representation, currentRevision: CurrentRevision): void {
    if (key.length > MAX_KEY_LENGTH || !this.#repeats.isRepeat(Bun.hash.xxHash32(key))) return;
    const bytes = ENTRY_BYTES + stringBytes(representation.body);
    const revision = currentRevision();
    this.#entries.set(detachedCopy(key), { representation, currentRevision, revision, bytes });
  }
}

/**
 * The responses whose reads have not been sent yet, by query string. An equal request that arrives meanwhile shares the
 * response, and sees everything that a read of its own would show. `wrk -t1 -c64` on the first page of `GET /v1/pets`
 * on PostgreSQL shows a sixth less CPU time for each request.
 *
 * Each response has a read in the store's queue, which bounds their number.
 */
export class SharedResponses implements ReusableResponses {
  readonly #responses = new Map<string, Promise<Representation | undefined>>();
  #batch: object | undefined;

  /** `batch` of the source is replaced whenever reads are sent. */
  constructor(private readonly source: { readonly batch?: object }) {}

  findOrMake(query: string, make: () => Made): Made {
    const shared = this.source.batch === this.#batch ? this.#responses.get(query) : undefined;
    if (shared === undefined) return this.#add(query, make());
    return shared.then((found) => found ?? this.#add(query, make()));
  }

  /** A response that fails is shared as undefined. */
  #add(query: string, made: Made): Made {
    if (!(made instanceof Promise)) return made;
    if (this.source.batch !== this.#batch) this.#responses.clear();
    this.#batch = this.source.batch;
    const shared = made.then(
      (settled) => (settled instanceof Rejection ? undefined : settled),
      () => undefined,
    );
    this.#responses.set(query, shared);
    return made;
  }
}
