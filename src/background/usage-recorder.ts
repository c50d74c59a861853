import { FailureReporter } from "../runtime/failure-reporter.ts";
import { isPrincipal } from "../domain/api-keys.ts";
import type { UsageHistoryStore } from "../domain/ports/usage-history.ts";
import type { Clock } from "../domain/ports/clock.ts";
import {
  type KeyCounts,
  type OperationCounts,
  requestsOf,
  intervalStart,
  type UsageBatch,
} from "../domain/usage-history.ts";
import { HOUR_MS } from "../text/time-units.ts";
import { repeat, type RepeatedWork } from "../runtime/repeat.ts";
import { scheduler, yieldToEventLoop } from "../runtime/scheduler.ts";
import type { Log } from "../observe/log.ts";
import type { RequestObserver } from "../observe/request-record.ts";

/** How often counts are stored. If the store responds within three seconds, each count is stored within five. */
const SAVE_EVERY_MS = 2_000;
const RETRY_MS = 500;
/** The number of keys in one transaction, which takes up to 5 ms on SQLite, during which requests wait. */
const KEYS_PER_BATCH = 50;
/**
 * The number of counters, one for each key and hour, that are not stored yet: about 25 MB. Only a failing store lets
 * them grow so far.
 */
const MAX_COUNTERS = 100_000;
const CLOSE_MS = 3_000;

interface UsageRecorderOptions {
  readonly store: Pick<UsageHistoryStore, "addUsage">;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
  readonly maxCounters?: number;
}

type Mutable<T> = { -readonly [Field in keyof T]: T[Field] };

/** The requests of one key in one hour that are not stored yet. */
interface Counters extends Mutable<Omit<KeyCounts, "byOperation">> {
  readonly byOperation: Mutable<OperationCounts>[];
}

/**
 * Counts the requests of each key, and adds the counts to the stored ones in the background. Counts that cannot be
 * stored now are kept and stored later.
 */
export class UsageRecorder {
  readonly #options: UsageRecorderOptions;
  readonly #writer = crypto.randomUUID();
  #sequence = 0;
  /** The start of the hour that is counted now. `#counters` has its counters by key. */
  #hour: number;
  #counters = new Map<number, Counters>();
  /** The batches to store, oldest first. Each is repeated unchanged until it is known to be stored. */
  readonly #queue: UsageBatch[] = [];
  /** The number of counters in the current hour and in the queue. */
  #size = 0;
  #lostRequests = 0;
  readonly #failures: FailureReporter;
  #lastError: unknown;
  #running: Promise<boolean> | undefined;
  readonly #saving: RepeatedWork;

  constructor(options: UsageRecorderOptions) {
    this.#options = options;
    this.#failures = new FailureReporter((error) =>
      options.log.event("usage-history.save-failed", { error }),
    );
    this.#hour = intervalStart("hour", options.clock.now());
    this.#saving = repeat(SAVE_EVERY_MS, async () => ((await this.save()) ? SAVE_EVERY_MS : RETRY_MS));
  }

  /** Counts a request, which takes 0.1 µs. */
  readonly observe: RequestObserver = ({ authentication, decision, operation }, { status }) => {
    if (decision === undefined || !isPrincipal(authentication)) return;
    const now = this.#options.clock.now();
    if (now < this.#hour || now >= this.#hour + HOUR_MS) {
      this.#queueCounters();
      this.#hour = intervalStart("hour", now);
    }
    const counters = this.#counters.get(authentication.keyId) ?? this.#addCounters(authentication.keyId);
    if (counters === undefined) return;
    counters.lastUsedAt = now;
    const { outcome } = decision;
    if (outcome !== "allowed") {
      counters[outcome]++;
      return;
    }
    const isError = status >= 400 ? 1 : 0;
    counters.admitted++;
    counters.errors += isError;
    if (operation === undefined) return;
    const counts = counters.byOperation.find((each) => each.operation === operation);
    if (counts === undefined) counters.byOperation.push({ operation, admitted: 1, errors: isError });
    else {
      counts.admitted++;
      counts.errors += isError;
    }
  };

  /** Stores all counts. Returns whether the store accepted them. */
  async save(): Promise<boolean> {
    // One save runs at a time. The running one may have begun before the last request.
    while (this.#running !== undefined) await this.#running;
    this.#running = this.#saveAll().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Stores all counts, and throws if the store does not accept them in time. */
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
    // The batches that an earlier attempt left come first.
    if (!(await this.#saveQueue())) return false;
    this.#queueCounters();
    return this.#saveQueue();
  }

  async #saveQueue(): Promise<boolean> {
    const { store, log } = this.#options;
    for (let first = this.#queue[0]; first; first = this.#queue[0]) {
      try {
        await store.addUsage(first);
      } catch (error) {
        this.#lastError = error;
        this.#failures.failed(error);
        return false;
      }
      this.#queue.shift();
      this.#size -= first.keys.length;
      const lostRequests = this.#lostRequests;
      if (this.#failures.isFailing || lostRequests > 0)
        log.event("usage-history.saved-again", { lostRequests });
      if (lostRequests > 0) log.event("usage-history.requests-lost", { lostRequests });
      this.#failures.succeeded();
      this.#lostRequests = 0;
      // Requests run between two batches.
      await yieldToEventLoop();
    }
    return true;
  }

  /**
   * Makes batches of the counters. They are sorted: the database has keys with similar identifiers on the same pages.
   */
  #queueCounters(): void {
    const sorted = [...this.#counters.values()].toSorted((a, b) => a.keyId - b.keyId);
    for (let start = 0; start < sorted.length; start += KEYS_PER_BATCH) {
      const keys = sorted.slice(start, start + KEYS_PER_BATCH);
      this.#queue.push({ writer: this.#writer, sequence: ++this.#sequence, hour: this.#hour, keys });
    }
    this.#counters = new Map();
  }

  #addCounters(keyId: number): Counters | undefined {
    if (this.#size >= (this.#options.maxCounters ?? MAX_COUNTERS)) {
      this.#lostRequests++;
      return undefined;
    }
    this.#size++;
    const counters = { keyId, admitted: 0, limited: 0, banned: 0, errors: 0, lastUsedAt: 0, byOperation: [] };
    this.#counters.set(keyId, counters);
    return counters;
  }

  #unsavedRequests(): number {
    const unsaved = [...this.#queue.flatMap(({ keys }) => keys), ...this.#counters.values()];
    return unsaved.reduce((sum, counts) => sum + requestsOf(counts), this.#lostRequests);
  }
}
