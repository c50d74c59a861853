import { Latch } from "../api/latch.ts";
import type { Clock, UsageHistoryStore } from "../domain/ports.ts";
import {
  HOUR_MS,
  type KeyCounts,
  type OperationCounts,
  type OperationId,
  requestsOf,
  startOf,
} from "../domain/usage-history.ts";
import { repeat, type RepeatedWork, scheduler, yieldToEventLoop } from "../event-loop.ts";
import type { Log } from "./log.ts";
import type { RequestObserver } from "./request-metrics.ts";

/** With a store that responds within three seconds, counts are stored within five. */
const SAVE_EVERY_MS = 2_000;
const RETRY_MS = 500;
/** Keys in one transaction: up to 5 ms on SQLite, during which requests wait. */
const KEYS_PER_BATCH = 50;
/** Keys and hours that are counted and not stored yet: about 25 MB, which is reached only while the store fails. */
const MAX_COUNTERS = 100_000;
/** How long closing tries to save. */
const CLOSE_MS = 3_000;

interface UsageRecorderOptions {
  readonly store: Pick<UsageHistoryStore, "addUsage">;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
  readonly maxCounters?: number;
}

/** The counters of one hour by key. */
interface HourCounters {
  readonly hour: number;
  readonly byKey: Map<number, RequestCounters>;
}

/** Counters to be stored in one transaction. Its number tells the store whether it has them already. */
interface QueuedCounters {
  readonly sequence: number;
  readonly hour: number;
  readonly entries: readonly [keyId: number, counters: RequestCounters][];
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
  /** Oldest first. Each is repeated as it is until it is known to be stored. */
  readonly #queue: QueuedCounters[] = [];
  /** Counters in the current hour and the queue. */
  #size = 0;
  #lostRequests = 0;
  readonly #latch: Latch;
  #lastError: unknown;
  #running: Promise<boolean> | undefined;
  readonly #saving: RepeatedWork;

  constructor(options: UsageRecorderOptions) {
    this.#options = options;
    this.#latch = new Latch((error) => options.log.event("usage-history.save-failed", { error }));
    this.#current = newHour(options.clock.now());
    this.#saving = repeat(SAVE_EVERY_MS, async () => ((await this.save()) ? SAVE_EVERY_MS : RETRY_MS));
  }

  /** Takes 0.1 µs. */
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
    void this.#saving.close();
    const deadline = scheduler.now() + CLOSE_MS;
    while (!(await this.save())) {
      if (scheduler.now() >= deadline) {
        throw new Error(`${this.#unsavedRequests()} requests are missing in the usage history`, {
          cause: this.#lastError,
        });
      }
      await scheduler.sleep(RETRY_MS / 5);
    }
  }

  async #saveAll(): Promise<boolean> {
    // What an earlier attempt left comes first.
    if (!(await this.#saveQueue())) return false;
    this.#queueCurrent();
    return this.#saveQueue();
  }

  async #saveQueue(): Promise<boolean> {
    const { store, log } = this.#options;
    for (let first = this.#queue[0]; first; first = this.#queue[0]) {
      const { entries, ...batch } = first;
      const keys = entries.map(([keyId, counters]) => counters.countsOf(keyId));
      try {
        await store.addUsage({ writer: this.#writer, ...batch, keys });
      } catch (error) {
        this.#lastError = error;
        this.#latch.failed(error);
        return false;
      }
      this.#queue.shift();
      this.#size -= entries.length;
      const lostRequests = this.#lostRequests;
      if (this.#latch.isFailing || lostRequests > 0) log.event("usage-history.saved-again", { lostRequests });
      this.#latch.worked();
      this.#lostRequests = 0;
      // Requests come between two batches.
      await yieldToEventLoop();
    }
    return true;
  }

  #startHour(now: number): void {
    this.#queueCurrent();
    this.#current = newHour(now);
  }

  /** Sorted, because keys that are close to each other are on the same pages of the database. */
  #queueCurrent(): void {
    const { hour, byKey } = this.#current;
    const sorted = [...byKey].toSorted(([a], [b]) => a - b);
    for (let start = 0; start < sorted.length; start += KEYS_PER_BATCH) {
      const entries = sorted.slice(start, start + KEYS_PER_BATCH);
      this.#queue.push({ sequence: ++this.#sequence, hour, entries });
    }
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
    const unsaved = [...this.#queue.flatMap(({ entries }) => entries), ...this.#current.byKey];
    const counts = unsaved.map(([keyId, counters]) => requestsOf(counters.countsOf(keyId)));
    return counts.reduce((sum, requests) => sum + requests, this.#lostRequests);
  }
}

function newHour(now: number): HourCounters {
  return { hour: startOf("hour", now), byKey: new Map() };
}

/** Requests of one key in one hour that are not stored yet. */
class RequestCounters {
  limited = 0;
  banned = 0;
  lastUsedAt = 0;
  readonly #admitted = new Map<OperationId | undefined, { admitted: number; errors: number }>();

  admit(operation: OperationId | undefined, status: number): void {
    let counts = this.#admitted.get(operation);
    if (counts === undefined) this.#admitted.set(operation, (counts = { admitted: 0, errors: 0 }));
    counts.admitted++;
    if (status >= 400) counts.errors++;
  }

  countsOf(keyId: number): KeyCounts {
    const { limited, banned, lastUsedAt } = this;
    let [admitted, errors] = [0, 0];
    const byOperation: OperationCounts[] = [];
    for (const [operation, counts] of this.#admitted) {
      admitted += counts.admitted;
      errors += counts.errors;
      if (operation !== undefined) byOperation.push({ operation, ...counts });
    }
    return { keyId, admitted, limited, banned, errors, lastUsedAt, byOperation };
  }
}
