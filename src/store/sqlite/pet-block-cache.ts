import type { Statement } from "bun:sqlite";
import { BoundedCache, bytesOf, AdmissionFilter, type Sized } from "../../bounded-cache.ts";
import { ETAG_LENGTH, etagOf, tagged, type TaggedJson } from "../../etag.ts";
import type { Connection } from "./connection.ts";
import { BLOCK_SIZE as SIZE, type ChangeCounters } from "./change-counters.ts";

/** The pets of one block, with commas between; `ends` says where each of them ends. */
interface Block extends Sized {
  readonly text: string;
  readonly ends: Uint32Array;
  /** Of each pet, one after another; made when a single one is asked for the second time. */
  etags: string | undefined;
  /** How many single pets were asked for before that. */
  singles: number;
  /** How often a pet of it had changed. */
  readonly changes: number;
}

const MAX_BYTES = 16 * 1024 * 1024;
/** What a block takes up beside its text. */
const BLOCK_BYTES = 800 + SIZE * ETAG_LENGTH;
/** Fewer than can be kept, as names go, so that little is pushed out before it is wanted. */
const PLACES = 1_024;

/**
 * Pets in memory as the contract writes them, by blocks of 64 successive identifiers. Any page and any pet can
 * be cut out of them, also one that was never asked for before.
 *
 * Only whole blocks are kept: those that lack a pet are the newest one, which is about to change, and such as
 * never occur while pets are only added. A block is read when one of its pets is asked for the second time; in
 * a table that is far larger than this memory nearly every pet is asked for once, and reading 64 would be in vain.
 */
export class PetBlockCache {
  readonly #read: Statement<{ text: string | null }, [number, number]>;
  readonly #kept: BoundedCache<number, Block>;
  readonly #admissionFilter = new AdmissionFilter(PLACES);

  /** `newest` gives the greatest identifier there is. */
  constructor(
    connection: Connection,
    private readonly counts: ChangeCounters,
    private readonly newest: () => number,
    maxBytes = MAX_BYTES,
  ) {
    this.#read = connection.prepare(`SELECT group_concat(entry) AS text
      FROM (SELECT entry FROM pets WHERE id BETWEEN ? AND ? ORDER BY id)`);
    this.#kept = new BoundedCache(maxBytes);
  }

  /** The pets from one identifier, at least 1, to another, with commas between; undefined if not at hand. */
  cut(from: number, to: number): string | undefined {
    let text: string | undefined;
    const last = blockOf(to);
    for (let number = blockOf(from); number <= last; number++) {
      const block = this.#find(number);
      if (block === undefined) return undefined;
      const start = number * SIZE + 1;
      const piece = cutBlock(block, Math.max(from - start, 0), Math.min(to - start, SIZE - 1));
      text = text === undefined ? piece : `${text},${piece}`;
    }
    return text;
  }

  one(id: number): TaggedJson | undefined {
    const number = blockOf(id);
    const block = this.#find(number);
    if (block === undefined) return undefined;
    const place = id - 1 - number * SIZE;
    const json = cutBlock(block, place, place);
    if (block.etags === undefined) {
      if (block.singles++ === 0) return tagged(json);
      block.etags = etagsOf(block);
    }
    return { json, etag: block.etags.slice(place * ETAG_LENGTH, (place + 1) * ETAG_LENGTH) };
  }

  /** One that has changed is read again when it is next asked for: what changes often is not worth the reading. */
  #find(number: number): Block | undefined {
    const block = this.#kept.get(number);
    if (block !== undefined) {
      if (block.changes === this.counts.inBlock(number)) return block;
      this.#kept.delete(number);
      return undefined;
    }
    const isWhole = (number + 1) * SIZE <= this.newest();
    return isWhole && this.#admissionFilter.knows(number) ? this.#load(number) : undefined;
  }

  #load(number: number): Block | undefined {
    const from = number * SIZE + 1;
    const to = from + SIZE - 1;
    const text = this.#read.get(from, to)?.text ?? "";
    const ends = endsOf(text);
    if (ends.length < SIZE) return undefined;
    const bytes = BLOCK_BYTES + bytesOf(text);
    const block: Block = {
      text,
      ends,
      etags: undefined,
      singles: 0,
      changes: this.counts.inBlock(number),
      bytes,
    };
    this.#kept.set(number, block);
    return block;
  }
}

/** Where a pet begins: nothing that a name could hold, since quotes in names are escaped. */
const BEGIN = ',{"id":';

function endsOf(text: string): Uint32Array {
  const ends: number[] = [];
  for (let at = text.indexOf(BEGIN); at !== -1; at = text.indexOf(BEGIN, at + 1)) ends.push(at);
  return Uint32Array.of(...ends, text.length);
}

function blockOf(id: number): number {
  return Math.floor((id - 1) / SIZE);
}

function etagsOf(block: Block): string {
  return Array.from(block.ends, (_, place) => etagOf(cutBlock(block, place, place))).join("");
}

function cutBlock({ text, ends }: Block, first: number, last: number): string {
  return text.slice(first === 0 ? 0 : (ends[first - 1] ?? 0) + 1, ends[last]);
}
