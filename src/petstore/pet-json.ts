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
  readonly revisions?: PetRevisions;
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
}

/** Numbers that grow when any pet changes; the second one also when a pet is added. */
export interface PetRevisions {
  readonly changes: number;
  readonly changesAndAdditions: number;
}

export function encodePage<T extends { id: bigint }>(
  { items, hasMore }: Page<T>,
  encode: (item: T) => string,
): PageJson {
  return { json: `[${items.map(encode).join(",")}]`, last: items.at(-1)?.id, hasMore };
}
