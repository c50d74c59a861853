import { ETAG_LENGTH, etagOf, type TaggedJson, withEtag } from "../../api/hash.ts";
import type { Identifier } from "../../api/json.ts";
import {
  AdmissionFilter,
  BoundedCache,
  CacheStatistics,
  type Sized,
  stringBytes,
} from "../../bounded-cache.ts";
import type { PageQuery, PetQuery } from "../../domain/ports.ts";
import type { PetStatus } from "../../domain/resources.ts";
import { idsAfter } from "../rows.ts";
import type { Connection } from "./connection.ts";
import { BLOCK_SIZE, type ChangeCounters } from "./pet-changes.ts";

interface PageJson {
  readonly json: string;
  readonly last: bigint | undefined;
  readonly hasMore: boolean;
  readonly next?: bigint;
}

interface PageRow {
  readonly json: string;
  readonly last: bigint | null;
}

/**
 * Few, so that a block is cached when two requests for it come with few others in between. Of random requests to a
 * million pets that is one in a hundred.
 */
const FILTER_PLACES = 128;

/** The aggregate takes the rows in the order of the inner query. */
function selectPage(condition: string): string {
  return `SELECT '[' || coalesce(group_concat(entry), '') || ']' AS json, max(id) AS last
    FROM (SELECT id, entry FROM pets WHERE ${condition})`;
}

/** `LIMIT +?` instead of `LIMIT ?`, as in pages.ts (`bun bench/store.ts`: 14 µs a page instead of 25). */
const AFTER = "id > ? ORDER BY id LIMIT +?";
const SELECT_PAGE = selectPage(AFTER);
const SELECT_PAGE_BY_STATUS = selectPage(`status = ? AND ${AFTER}`);
/** The parameters are a JSON array of identifiers, the status or null, and the limit. */
const SELECT_BY_IDS = `SELECT id, entry FROM pets WHERE id IN (SELECT value FROM json_each(?1))
  AND (?2 IS NULL OR status = ?2) ORDER BY id LIMIT +?3`;
const SELECT_NEXT = "SELECT id FROM pets WHERE status = ? AND id > ? ORDER BY id LIMIT 1";
const SELECT_HIGHEST_ID = "SELECT id FROM pets ORDER BY id DESC LIMIT 1";
const SELECT_BLOCK = `SELECT group_concat(entry) AS json
  FROM (SELECT entry FROM pets WHERE id BETWEEN ? AND ? ORDER BY id)`;

/**
 * Pets as JSON: from the block cache, otherwise from the column `entry`, which SQLite computes when a pet is written.
 * SQLite joins the pets of a page into one text (`bun bench/store.ts`: 14 µs a page; encoding 20 rows takes 24).
 */
export class SqlitePetJson {
  readonly #blocks: PetBlockCache;

  constructor(
    private readonly connection: Connection,
    readonly changes: ChangeCounters,
    filter: Pick<AdmissionFilter, "admits"> = new AdmissionFilter(FILTER_PLACES),
  ) {
    this.#blocks = new PetBlockCache(connection, changes, filter);
  }

  get cacheStatistics(): CacheStatistics {
    return this.#blocks.statistics;
  }

  get cachedBytes(): number {
    return this.#blocks.bytes;
  }

  get(id: Identifier): TaggedJson | undefined {
    const cached = typeof id === "number" && id > 0 ? this.#blocks.pet(id) : undefined;
    if (cached !== undefined) return cached;
    const stored = this.connection.get<{ entry: string }>("SELECT entry FROM pets WHERE id = ?", id);
    return stored && withEtag(stored.entry);
  }

  list(query: PetQuery): PageJson {
    if (query.ids !== undefined) return this.#listByIds(query);
    return this.#listCached(query) ?? this.#listStored(query);
  }

  #listCached({ after = 0n, status, limit }: PageQuery<PetStatus>): PageJson | undefined {
    const last = after + BigInt(limit);
    if (status !== undefined || last > Number.MAX_SAFE_INTEGER) return undefined;
    const json = this.#blocks.slice(Number(after) + 1, Number(last));
    return json === undefined
      ? undefined
      : { json: `[${json}]`, last, hasMore: last < this.#blocks.readHighestId() };
  }

  #listStored({ after = 0n, status, limit }: PageQuery<PetStatus>): PageJson {
    const row =
      status === undefined
        ? this.connection.get<PageRow>(SELECT_PAGE, after, limit)
        : this.connection.get<PageRow>(SELECT_PAGE_BY_STATUS, status, after, limit);
    if (row === undefined || row.last === null) return { json: "[]", last: undefined, hasMore: false };
    const { json, last } = row;
    if (status === undefined) return { json, last, hasMore: last < this.#blocks.readHighestId() };
    const next = this.connection.get<{ id: bigint }>(SELECT_NEXT, status, last)?.id;
    return next === undefined ? { json, last, hasMore: false } : { json, last, hasMore: true, next };
  }

  /** `bun bench/store.ts`: one identifier takes 0.3 µs as a pet of the block cache, and 10 µs with the statement. */
  #listByIds(query: PetQuery): PageJson {
    const { status = null, limit } = query;
    const ids = idsAfter(query);
    const [id] = ids;
    if (id !== undefined && ids.length === 1 && status === null) return this.#listOne(id);
    const rows = this.connection.all<{ id: bigint; entry: string }>(
      SELECT_BY_IDS,
      `[${ids.join(",")}]`,
      status,
      limit + 1,
    );
    const page = rows.slice(0, limit);
    const json = `[${page.map(({ entry }) => entry).join(",")}]`;
    return { json, last: page.at(-1)?.id, hasMore: rows.length > limit };
  }

  #listOne(id: bigint): PageJson {
    const pet = this.get(id <= Number.MAX_SAFE_INTEGER ? Number(id) : id);
    if (pet === undefined) return { json: "[]", last: undefined, hasMore: false };
    return { json: `[${pet.json}]`, last: id, hasMore: false };
  }
}

/** The JSON of 64 pets, separated by commas. */
interface Block extends Sized {
  readonly json: string;
  /** Where each pet ends in `json`. */
  readonly ends: Uint32Array;
  /** The block's change counter when it was read. */
  readonly changes: number;
  /** Of its pets, one after the other; empty until the second request for one of them. */
  etags?: string;
}

const MAX_BYTES = 16 * 1024 * 1024;
/** What a block takes in memory besides its text. */
const BLOCK_OVERHEAD_BYTES = 800 + BLOCK_SIZE * ETAG_LENGTH;
const GAPPED_BLOCK_BYTES = 400;

/**
 * Keeps the JSON of pets in memory, in blocks of 64 consecutive identifiers. Every page without a filter and every
 * single pet is a slice of them, even when it is requested for the first time.
 *
 * `bun bench/store.ts`: a random pet out of 100,000 takes 0.6 µs instead of 5.0, and a random page of 20 takes 0.5 µs
 * instead of 12.2. A table of a million pets is larger than the cache; there, both cost the same with it and without.
 *
 * Only complete blocks are cached. The last block is incomplete, and changes with every pet that is added. A block with
 * a deleted pet stays incomplete, so the cache remembers that instead of reading it in vain at every request.
 */
class PetBlockCache {
  readonly #blocks = new BoundedCache<number, Block>(MAX_BYTES);
  /** A page can take several blocks. */
  readonly statistics = new CacheStatistics();
  #highestId = 0n;
  #highestIdReadAt = -1;

  constructor(
    private readonly connection: Connection,
    private readonly changes: ChangeCounters,
    private readonly filter: Pick<AdmissionFilter, "admits">,
  ) {}

  get bytes(): number {
    return this.#blocks.bytes;
  }

  /** The JSON of the pets from one identifier to another, separated by commas; undefined when it is not cached. */
  slice(from: number, to: number): string | undefined {
    let json: string | undefined;
    const last = blockOf(to);
    for (let number = blockOf(from); number <= last; number++) {
      const block = this.#find(number);
      if (block === undefined) return undefined;
      const start = number * BLOCK_SIZE + 1;
      const part = sliceBlock(block, Math.max(from - start, 0), Math.min(to - start, BLOCK_SIZE - 1));
      json = json === undefined ? part : `${json},${part}`;
    }
    return json;
  }

  /** One pet; undefined when it is not cached. Hashing its ETag each time would take longer than finding it. */
  pet(id: number): TaggedJson | undefined {
    const number = blockOf(id);
    const block = this.#find(number);
    if (block === undefined) return undefined;
    const index = id - 1 - number * BLOCK_SIZE;
    const json = sliceBlock(block, index, index);
    if (block.etags === undefined) {
      block.etags = "";
      return withEtag(json);
    }
    block.etags ||= etagsOf(block);
    return { json, etag: block.etags.slice(index * ETAG_LENGTH, (index + 1) * ETAG_LENGTH) };
  }

  /** A changed block is read again at the second request, so a block that changes often is not cached. */
  #find(number: number): Block | undefined {
    const block = this.#blocks.get(number);
    if (block !== undefined) {
      if (block.changes === this.changes.inBlock(number)) {
        this.statistics.hits++;
        return block.ends === NO_ENDS ? undefined : block;
      }
      this.#blocks.delete(number);
      this.statistics.misses++;
      return undefined;
    }
    this.statistics.misses++;
    const isComplete = (number + 1) * BLOCK_SIZE <= this.readHighestId();
    return isComplete && this.filter.admits(number) ? this.#read(number) : undefined;
  }

  /** The highest identifier of a pet. */
  readHighestId(): bigint {
    if (this.#highestIdReadAt !== this.changes.additionsAndDeletions) {
      this.#highestId = this.connection.get<{ id: bigint }>(SELECT_HIGHEST_ID)?.id ?? 0n;
      this.#highestIdReadAt = this.changes.additionsAndDeletions;
    }
    return this.#highestId;
  }

  #read(number: number): Block | undefined {
    const from = number * BLOCK_SIZE + 1;
    const to = from + BLOCK_SIZE - 1;
    const json = this.connection.get<{ json: string | null }>(SELECT_BLOCK, from, to)?.json ?? "";
    const ends = endsOf(json);
    const changes = this.changes.inBlock(number);
    if (ends.length < BLOCK_SIZE) {
      this.#blocks.set(number, { json: "", ends: NO_ENDS, changes, bytes: GAPPED_BLOCK_BYTES });
      return undefined;
    }
    const block = { json, ends, changes, bytes: BLOCK_OVERHEAD_BYTES + stringBytes(json) };
    this.#blocks.set(number, block);
    return block;
  }
}

/** Of a block that lacks a pet. */
const NO_ENDS = new Uint32Array();

/** The start of a pet. No name contains it, because quotes in names are escaped. */
const START = ',{"id":';

function endsOf(json: string): Uint32Array {
  const ends: number[] = [];
  for (let at = json.indexOf(START); at !== -1; at = json.indexOf(START, at + 1)) ends.push(at);
  return Uint32Array.of(...ends, json.length);
}

function etagsOf(block: Block): string {
  return Array.from(block.ends, (_, index) => etagOf(sliceBlock(block, index, index))).join("");
}

function blockOf(id: number): number {
  return Math.floor((id - 1) / BLOCK_SIZE);
}

function sliceBlock({ json, ends }: Block, first: number, last: number): string {
  return json.slice(first === 0 ? 0 : (ends[first - 1] ?? 0) + 1, ends[last]);
}
