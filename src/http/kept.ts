import type { Freshness, Span } from "../domain/ports.ts";
import type { Template } from "./template.ts";

/** An answer that the store would give again as long as it stands. */
interface Kept {
  readonly template: Template;
  readonly etag: string;
  readonly stands: () => boolean;
  readonly size: number;
}

const MAX_BYTES = 8 * 1024 * 1024;
/** What an entry costs beyond its body: its headers, its key and its places in the map. */
const ENTRY_BYTES = 2_000;
/** Keys longer than this belong to nobody who asks twice. */
const MAX_KEY_LENGTH = 200;
/**
 * About as many as can be kept: what comes back after more others than that would be pushed out before it is wanted.
 */
const ONCE_SEEN_SLOTS = 4_096;

/**
 * Answers that were already made, for as long as they are what the store would say now: the store
 * itself is asked each time whether one still stands, so no reader ever sees an older state than one already answered.
 *
 * Bounded by bytes; the oldest goes first. An answer is kept when it is asked for the second time: most deep pages
 * never are, and would only push out those that are wanted.
 */
export class KeptAnswers {
  readonly #kept = new Map<string, Kept>();
  readonly #onceSeen = new Uint32Array(ONCE_SEEN_SLOTS);
  #bytes = 0;

  constructor(
    private readonly freshness: Freshness,
    private readonly maxBytes = MAX_BYTES,
  ) {}

  find(key: string): Kept | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    if (kept.stands()) return kept;
    this.#drop(key, kept);
    return undefined;
  }

  /** Whether this key was asked for before, and is from now on. */
  isWanted(key: string): boolean {
    if (key.length > MAX_KEY_LENGTH) return false;
    const hash = Bun.hash.xxHash32(key);
    const slot = hash % ONCE_SEEN_SLOTS;
    if (this.#onceSeen[slot] === hash) return true;
    this.#onceSeen[slot] = hash;
    return false;
  }

  keep(key: string, answer: { template: Template; etag: string; span: Span; bodyLength: number }): void {
    const { template, etag, span, bodyLength } = answer;
    const size = ENTRY_BYTES + bodyLength;
    const before = this.#kept.get(key);
    if (before) this.#drop(key, before);
    for (const [oldest, entry] of this.#kept) {
      if (this.#bytes + size <= this.maxBytes) break;
      this.#drop(oldest, entry);
    }
    // A piece of the address would keep all of it in memory, the Host header included.
    const copy = Buffer.from(key, "latin1").toString("latin1");
    this.#kept.set(copy, { template, etag, stands: this.freshness.watch(span), size });
    this.#bytes += size;
  }

  #drop(key: string, { size }: Kept): void {
    this.#kept.delete(key);
    this.#bytes -= size;
  }
}
