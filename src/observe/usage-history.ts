import { Latch } from "../api/latch.ts";
import type { Clock, UsageHistoryStore } from "../domain/ports.ts";
import {
  HOUR_MS,
  type KeyCounts,
  type OperationCounts,
  type OperationId,
  requestsOf,
  startOf,
  type UsageBatch,
} from "../domain/usage-history.ts";
import { type Awaitable, type ScheduledTimer, scheduler, yieldToEventLoop } from "../event-loop.ts";
import type { RequestObserver } from "./request-metrics.ts";

/** With a store that responds within three seconds, counts are stored within five. */
const SAVE_EVERY_MS = 2_000;
const RETRY_MS = 500;
/** Keys in one transaction: up to 5 ms on SQLite, during which requests wait. */
const KEYS_PER_BATCH = 50;
/** Keys and hours that are counted and not stored yet: about 25 MB, which is reached only while the store fails. */
const MAX_COUNTERS = 100_000;
const DELETE_EVERY_MS = 600_000;
/** How long closing tries to save. */
const CLOSE_MS = 3_000;

interface UsageRecorderOptions {
  readonly store: Pick<UsageHistoryStore, "addUsage" | "deleteOldUsage">;
  readonly clock: Clock;
  /** The time by which old counts are deleted. */
  readonly retentionNow: () => number;
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
  readonly #latch: Latch;
  #lastError: unknown;
  /** By the steady clock. */
  #deleteAt = 0;
  #running: Promise<boolean> | undefined;
  #timer: ScheduledTimer | undefined;
  #isClosed = false;

  constructor(options: UsageRecorderOptions) {
    this.#options = options;
    this.#latch = new Latch(options.onFailure);
    this.#current = newHour(options.clock.now());
    this.#schedule(SAVE_EVERY_MS);
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
    this.#isClosed = true;
    this.#timer?.close();
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

  #schedule(ms: number): void {
    this.#timer = scheduler.setTimeout(() => void this.#saveOnTime(), ms);
    this.#timer.unref();
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
      await yieldToEventLoop();
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
      const hasMore = await this.#options.store.deleteOldUsage(this.#options.retentionNow());
      this.#deleteAt = hasMore ? now : now + DELETE_EVERY_MS;
    });
  }

  async #attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
    } catch (error) {
      this.#lastError = error;
      this.#latch.failed(error);
      return false;
    }
    if (this.#latch.isFailing || this.#lostRequests > 0) this.#options.onRecovery(this.#lostRequests);
    this.#latch.worked();
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

/** Reading sums takes at most a hundredth of the time, however many consoles are open. */
const REUSED_FOR_COST = 100;
const MAX_REUSED_MS = 30_000;
const MAX_RESULTS = 4;

type UsageSums = Pick<UsageHistoryStore, "usageByKey" | "countDeprecatedUse">;

interface Result {
  readonly value: Promise<unknown>;
  /** By the scheduler. */
  validUntil: number;
}

/**
 * Reuses the sums over all keys for a while, which grows with the time they took: with 10,000 keys that are used in
 * every hour, 24 hours take 10 to 40 ms (`npm run bench:admin`), and a console asks every two seconds.
 */
export function reusedSums(store: UsageSums, elapsed = () => scheduler.now()): UsageSums {
  /** By what was asked for: equal names have values of the same type. */
  const results = new Map<string, Result>();

  /** Concurrent calls wait for one result. An error is not reused. */
  function reuse<T>(name: string, read: () => Awaitable<T>): Promise<T> {
    const earlier = results.get(name);
    if (earlier && elapsed() < earlier.validUntil) return earlier.value as Promise<T>;
    const startedAt = elapsed();
    const value = Promise.try(read);
    const result: Result = { value, validUntil: Infinity };
    value.then(
      () => {
        const now = elapsed();
        result.validUntil = now + Math.min(MAX_REUSED_MS, REUSED_FOR_COST * (now - startedAt));
      },
      () => (result.validUntil = 0),
    );
    results.delete(name);
    results.set(name, result);
    const [oldest] = results.keys();
    if (results.size > MAX_RESULTS && oldest !== undefined) results.delete(oldest);
    return value;
  }

  return {
    usageByKey(query) {
      const { by, since, until, limit } = query;
      const name = `${by} ${startOf(by, since)} ${startOf(by, until)} ${limit}`;
      return reuse(name, () => store.usageByKey(query));
    },
    countDeprecatedUse: (since) => reuse(`deprecated ${since}`, () => store.countDeprecatedUse(since)),
  };
}
