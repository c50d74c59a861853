import type { Awaitable } from "../api/awaitable.ts";
import type { UsageHistoryStore } from "../domain/ports.ts";
import {
  type KeyTotals,
  type KeyTotalsQuery,
  startOf,
  type UsageBatch,
  type UsageQuery,
} from "../domain/usage-history.ts";

/** Reading sums takes at most a hundredth of the time, however many consoles are open. */
const REUSED_FOR_COST = 100;
const MAX_REUSED_MS = 30_000;
const MAX_RESULTS = 4;

interface Result<T = unknown> {
  readonly value: Promise<T>;
  /** By `performance.now`. */
  validUntil: number;
}

/**
 * Reuses the sums over all keys for a while, which grows with the time they took: with 10,000 keys that are used in
 * every hour, 24 hours take 10 to 40 ms (`bun bench/usage-history.ts`), and a console asks every two seconds.
 */
export class CachedUsageHistory implements UsageHistoryStore {
  /** By what was asked for: equal names have values of the same type. */
  readonly #results = new Map<string, Result>();

  constructor(
    private readonly store: UsageHistoryStore,
    private readonly elapsed = () => performance.now(),
  ) {}

  usageByKey(query: KeyTotalsQuery): Promise<readonly KeyTotals[]> {
    const { by, since, until, limit } = query;
    const name = `${by} ${startOf(by, since)} ${startOf(by, until)} ${limit}`;
    return this.#reuse(name, () => this.store.usageByKey(query));
  }

  countDeprecatedUse(since: number): Promise<number> {
    return this.#reuse(`deprecated ${since}`, () => this.store.countDeprecatedUse(since));
  }

  #reuse<T>(name: string, read: () => Awaitable<T>): Promise<T> {
    const earlier = this.#results.get(name) as Result<T> | undefined;
    if (earlier && this.elapsed() < earlier.validUntil) return earlier.value;
    const result = this.#read(read);
    this.#results.delete(name);
    this.#results.set(name, result);
    for (const oldest of this.#results.keys()) {
      if (this.#results.size <= MAX_RESULTS) break;
      this.#results.delete(oldest);
    }
    return result.value;
  }

  /** Concurrent calls wait for one result. An error is not reused. */
  #read<T>(read: () => Awaitable<T>): Result<T> {
    const startedAt = this.elapsed();
    const end = (reusedMs: number) => void (result.validUntil = this.elapsed() + reusedMs);
    const value = (async () => read())();
    const result: Result<T> = { value, validUntil: Infinity };
    value.then(
      () => end(Math.min(MAX_REUSED_MS, REUSED_FOR_COST * (this.elapsed() - startedAt))),
      () => end(0),
    );
    return result;
  }

  addUsage(batch: UsageBatch): Promise<void> {
    return this.store.addUsage(batch);
  }

  readUsage(query: UsageQuery) {
    return this.store.readUsage(query);
  }

  lastUsed(keyIds: readonly number[]): Awaitable<ReadonlyMap<number, number>> {
    return this.store.lastUsed(keyIds);
  }

  deleteOldUsage(now: number): Promise<boolean> {
    return this.store.deleteOldUsage(now);
  }
}
