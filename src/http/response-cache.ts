import { BoundedCache, bytesOf, AdmissionFilter, type Sized } from "../bounded-cache.ts";
import type { ChangeTracker, IdRange } from "./pet-json.ts";
import { copyOf } from "../copy-string.ts";

/** An answer that the store would give again as long as it stands. */
export interface CachedResponse {
  /** Header lines, those that say where the caller stands aside. */
  readonly lines: string;
  readonly body: string;
  readonly etag: string;
}

interface Entry extends Sized {
  readonly answer: CachedResponse;
  readonly stands: () => boolean;
}

const MAX_BYTES = 8 * 1024 * 1024;
/** What an entry costs beyond its body: its headers, its key and its places in the map. */
const ENTRY_BYTES = 2_000;
/** Longer ones belong to nobody who asks twice. */
const MAX_KEY_LENGTH = 200;
/** Fewer than can be kept, as pages go, so that little is pushed out before it is wanted. */
const PLACES = 2_048;

/**
 * Answers that were already made, for as long as they are what the store would say now: the store
 * itself is asked each time whether one still stands, so no reader ever sees an older state than one already answered.
 *
 * An answer is kept when it is asked for the second time: most deep pages never are.
 */
export class ResponseCache {
  readonly #entries: BoundedCache<string, Entry>;
  readonly #admissionFilter = new AdmissionFilter(PLACES);

  constructor(
    private readonly changes: ChangeTracker,
    maxBytes = MAX_BYTES,
  ) {
    this.#entries = new BoundedCache(maxBytes);
  }

  find(key: string): CachedResponse | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    if (entry.stands()) return entry.answer;
    this.#entries.delete(key);
    return undefined;
  }

  /** Whether this key was asked for before, and is from now on. */
  isWanted(key: string): boolean {
    return key.length <= MAX_KEY_LENGTH && this.#admissionFilter.admits(Bun.hash.xxHash32(key));
  }

  keep(key: string, answer: CachedResponse, span: IdRange): void {
    const bytes = ENTRY_BYTES + bytesOf(answer.body);
    this.#entries.set(copyOf(key), { answer, stands: this.changes.watch(span), bytes });
  }
}
