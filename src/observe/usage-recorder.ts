import type { Clock, UsageHistoryStore } from "../domain/ports.ts";
import { HOUR_MS, requestsOf, startOf, type UsageBatch } from "../domain/usage-history.ts";
import { giveWay } from "../event-loop.ts";
import type { RequestObserver } from "../petstore/request-record.ts";
import { RequestCounters } from "./request-counters.ts";

/** With a store that responds within three seconds, counts are stored within five. */
const SAVE_EVERY_MS = 2_000;
const RETRY_MS = 500;
/** Keys in one transaction: up to 5 ms on SQLite, during which requests wait; see `bun bench/usage-history.ts`. */
const KEYS_PER_BATCH = 50;
/** Keys and hours that are counted and not stored yet: about 25 MB, which is reached only while the store fails. */
const MAX_COUNTERS = 100_000;
const DELETE_EVERY_MS = 600_000;
/** How long closing tries to save. */
const CLOSE_MS = 3_000;

export interface UsageRecorderOptions {
  readonly store: Pick<UsageHistoryStore, "addUsage" | "deleteOldUsage">;
  readonly clock: Clock;
  readonly maxCounters?: number;
  /** Called once each time that the store begins to fail. */
  readonly onFailure: (error: unknown) => void;
  /** Called when the store works again, with the number of requests that were not counted meanwhile. */
  readonly onRecovery: (lostRequests: number) => void;
}

/** The counters of one hour by key. */
interface HourCounters {
  readonly hour: number;
  readonly byKey: Map<number, RequestCounters>;
}

/** Counters to be stored, by descending key. */
interface QueuedCounters {
  readonly hour: number;
  readonly entries: [keyId: number, counters: RequestCounters][];
}

/**
 * Counts the requests of each key, and adds the counts to the stored ones behind the requests. What cannot be stored is
 * kept and stored later.
 */
export class UsageRecorder {
  readonly #options: UsageRecorderOptions;
  readonly #writer = crypto.randomUUID();
  #sequence = 0;
  #current: HourCounters;
  /** Oldest first. */
  readonly #queue: QueuedCounters[] = [];
  /** Is repeated as it is until it is known to be stored. */
  #batch: UsageBatch | undefined;
  /** Counters in the current hour, the queue and the batch. */
  #size = 0;
  #lostRequests = 0;
  #isFailing = false;
  #lastError: unknown;
  /** By the steady clock. */
  #deleteAt = 0;
  #running: Promise<boolean> | undefined;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: UsageRecorderOptions) {
    this.#options = options;
    this.#current = newHour(options.clock.now());
    this.#schedule(SAVE_EVERY_MS);
  }

  /** Takes 0.1 µs; see `bun bench/usage-history.ts`. */
  readonly observe: RequestObserver = ({ principal, decision, operation }, { status }) => {
    if (decision === undefined || typeof principal !== "object" || !("keyId" in principal)) return;
    const now = this.#options.clock.now();
    const { hour } = this.#current;
    if (now < hour || now >= hour + HOUR_MS) this.#startHour(now);
    const counters = this.#current.byKey.get(principal.keyId) ?? this.#addCounters(principal.keyId);
    if (counters === undefined) return;
    counters.lastUsedAt = now;
    if (decision.outcome === "allowed") counters.admit(operation, status);
    else if (decision.outcome === "limited") counters.limited++;
    else counters.banned++;
  };

  /** Stores all counts. Returns whether the store has taken them. */
  async save(): Promise<boolean> {
    // One at a time. The running one may have begun before the last request.
    while (this.#running !== undefined) await this.#running;
    this.#running = this.#saveAll().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Stores all counts, and throws when the store does not take them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const deadline = performance.now() + CLOSE_MS;
    while (!(await this.save())) {
      if (performance.now() >= deadline) {
        throw new Error(`${this.#unsavedRequests()} requests are missing in the usage history`, {
          cause: this.#lastError,
        });
      }
      await Bun.sleep(RETRY_MS / 5);
    }
  }

  #schedule(ms: number): void {
    this.#timer = setTimeout(() => void this.#saveOnTime(), ms).unref();
  }

  async #saveOnTime(): Promise<void> {
    const isSaved = (await this.save()) && (await this.#deleteOld());
    if (!this.#isClosed) this.#schedule(isSaved ? SAVE_EVERY_MS : RETRY_MS);
  }

  async #saveAll(): Promise<boolean> {
    // What an earlier attempt left comes first.
    if (!(await this.#saveQueue())) return false;
    this.#queueCurrent();
    return this.#saveQueue();
  }

  async #saveQueue(): Promise<boolean> {
    for (;;) {
      this.#batch ??= this.#nextBatch();
      const batch = this.#batch;
      if (batch === undefined) return true;
      if (!(await this.#attempt(() => this.#options.store.addUsage(batch)))) return false;
      this.#size -= batch.keys.length;
      this.#batch = undefined;
      // Requests come between two batches.
      await giveWay();
    }
  }

  #nextBatch(): UsageBatch | undefined {
    const [first] = this.#queue;
    if (first === undefined) return undefined;
    const entries = first.entries.splice(-KEYS_PER_BATCH).toReversed();
    if (first.entries.length === 0) this.#queue.shift();
    const keys = entries.map(([keyId, counters]) => counters.countsOf(keyId));
    return { writer: this.#writer, sequence: ++this.#sequence, hour: first.hour, keys };
  }

  /** Some at a time, so that nothing waits for long. */
  async #deleteOld(): Promise<boolean> {
    const now = this.#options.clock.steadyNow();
    if (now < this.#deleteAt) return true;
    return this.#attempt(async () => {
      const hasMore = await this.#options.store.deleteOldUsage(this.#options.clock.now());
      this.#deleteAt = hasMore ? now : now + DELETE_EVERY_MS;
    });
  }

  async #attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
    } catch (error) {
      this.#lastError = error;
      if (!this.#isFailing) this.#options.onFailure(error);
      this.#isFailing = true;
      return false;
    }
    if (this.#isFailing || this.#lostRequests > 0) this.#options.onRecovery(this.#lostRequests);
    this.#isFailing = false;
    this.#lostRequests = 0;
    return true;
  }

  #startHour(now: number): void {
    this.#queueCurrent();
    this.#current = newHour(now);
  }

  /** Sorted, because keys that are close to each other are on the same pages of the database. */
  #queueCurrent(): void {
    const { hour, byKey } = this.#current;
    if (byKey.size === 0) return;
    this.#queue.push({ hour, entries: [...byKey].toSorted(([a], [b]) => b - a) });
    this.#current = { hour, byKey: new Map() };
  }

  #addCounters(keyId: number): RequestCounters | undefined {
    if (this.#size >= (this.#options.maxCounters ?? MAX_COUNTERS)) {
      this.#lostRequests++;
      return undefined;
    }
    this.#size++;
    const counters = new RequestCounters();
    this.#current.byKey.set(keyId, counters);
    return counters;
  }

  #unsavedRequests(): number {
    const queued = this.#queue.flatMap(({ entries }) => entries).concat([...this.#current.byKey]);
    const counts = queued.map(([keyId, counters]) => counters.countsOf(keyId));
    return [...(this.#batch?.keys ?? []), ...counts].reduce(
      (sum, each) => sum + requestsOf(each),
      this.#lostRequests,
    );
  }
}

function newHour(now: number): HourCounters {
  return { hour: startOf("hour", now), byKey: new Map() };
}
