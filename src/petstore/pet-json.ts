import type { CacheStatistics } from "../bounded-cache.ts";
import type { Identifier } from "../api/json.ts";
import type { Awaitable } from "../event-loop.ts";
import type { Page, PetQuery } from "../domain/ports.ts";
import type { TaggedJson } from "../api/hash.ts";

/** Pets as JSON text, which the stores make: that is faster than encoding their rows here. */
export interface PetJsonSource {
  list(query: PetQuery): Awaitable<PageJson>;
  get(id: Identifier): Awaitable<TaggedJson | undefined>;
  /** Absent where other servers write too: then every response is read anew. */
  readonly changes?: ChangeTracker;
  /** Is replaced whenever reads are sent: while it is the same, a read that has begun may serve one that begins now. */
  readonly batch?: object;
  /** Of the cache, if there is one. */
  readonly cacheStatistics?: CacheStatistics;
}

export interface PageJson {
  /** A JSON array. */
  readonly json: string;
  /** If the store has it. */
  readonly etag?: string;
  /** The identifier of the last item; undefined on an empty page. */
  readonly last: bigint | undefined;
  readonly hasMore: boolean;
  /** The next item that matches a status filter: when it changes, `hasMore` may no longer hold. */
  readonly next?: bigint;
}

/** A range of identifiers, both ends included; without `to` it includes every pet that is added later. */
export interface IdRange {
  readonly from: bigint;
  readonly to?: bigint;
}

export interface ChangeTracker {
  /** Returns a check that stays true until a pet in the range changes. */
  watch(range: IdRange): () => boolean;
}

export function encodePage<T extends { id: bigint }>(
  { items, hasMore }: Page<T>,
  encode: (item: T) => string,
): PageJson {
  return { json: `[${items.map(encode).join(",")}]`, last: items.at(-1)?.id, hasMore };
}
