import type { Clock, RateLimiter, QuotaStore } from "../../domain/ports.ts";
import {
  type BanRules,
  charge,
  type Decision,
  describe,
  expire,
  isExpired,
  type Limits,
  NEVER,
  newQuota,
  type OnBan,
  peek,
  shift,
  type Subject,
  unban,
  type Quota,
} from "../../domain/rate-limit.ts";
import { type ScheduledTimer, type Scheduler, scheduler } from "../../runtime/scheduler.ts";
import { loadQuota, storeQuota, subjectOf, type QuotaEntry, QuotaTable } from "./quota-table.ts";
import { FailureReporter } from "../../runtime/failure-reporter.ts";

interface MemoryRateLimiterOptions {
  readonly clock: Clock;
  /** Returns the rules that apply now. */
  readonly ban: () => BanRules;
  /** Keeps counts and bans across a restart. The rate limiter closes it. */
  readonly quotaStore?: QuotaStore;
  /**
   * The maximum of addresses, of which anybody may have many. Beyond it, addresses with few requests are evicted. Keys
   * stay until their quota has expired: an evicted key would get its limits twice, and the database bounds them.
   */
  readonly maxAddresses?: number;
  readonly flushEveryMs?: number;
  /** Called when the quota store begins to fail. */
  readonly onQuotaStoreError?: (error: unknown) => void;
  readonly onBan?: OnBan | undefined;
  /** Called when the quota store works again. */
  readonly onQuotaStoreRecovery?: () => void;
  readonly scheduler?: Scheduler;
}

export function createMemoryRateLimiter(options: MemoryRateLimiterOptions): MemoryRateLimiter {
  return new MemoryRateLimiter(options);
}

/** The rate limiter of a single process. It is exact, because nothing runs between reading a quota and writing it. */
class MemoryRateLimiter implements RateLimiter {
  readonly #clock: Clock;
  readonly #ban: () => BanRules;
  readonly #onBan: OnBan | undefined;
  readonly #maxAddresses: number;
  readonly #table = new QuotaTable();
  /** The quota of the entry that a call reads or changes. */
  readonly #scratch = newQuota();
  readonly #writeBehind: WriteBehind | undefined;
  readonly #scheduler: Scheduler;
  /** Keys that had a ban when the store was loaded: a current ban, or one that makes the next one longer. */
  readonly restoredBans: number[] = [];
  /** Keys that were banned and may still be. */
  readonly #bannedKeys = new Set<number>();
  readonly #timer: ScheduledTimer;
  #isClosed = false;
  #stepMs: number;

  constructor(options: MemoryRateLimiterOptions) {
    const { clock, ban, quotaStore, maxAddresses = 100_000, flushEveryMs = 500 } = options;
    this.#clock = clock;
    this.#stepMs = clock.stepMs;
    this.#ban = ban;
    this.#onBan = options.onBan;
    this.#maxAddresses = maxAddresses;
    this.#scheduler = options.scheduler ?? scheduler;
    this.#writeBehind = quotaStore && new WriteBehind(quotaStore, options);
    for (const [subject, quota] of quotaStore?.load() ?? []) this.#restore(subject, quota);
    this.#timer = this.#scheduler.setInterval(() => this.#tick(), flushEveryMs);
    this.#timer.unref();
  }

  decide(subject: Subject, limits: Limits): Decision {
    const now = this.#now();
    const entry = this.#table.find(subject) ?? this.#add(subject, now);
    const quota = loadQuota(entry, this.#scratch);
    const outcome = charge(quota, limits, now, this.#rulesFor(subject));
    storeQuota(entry, quota);
    if (outcome === "new ban") this.#banned(entry);
    else this.#writeBehind?.changed(entry);
    return describe(outcome, quota, limits, now);
  }

  #banned(entry: QuotaEntry): void {
    this.#writeBehind?.changedUrgently(entry);
    const { id, ban } = entry;
    if (typeof id !== "number") return;
    const { bannedAt, bannedUntil } = ban;
    this.#bannedKeys.add(id);
    this.#onBan?.(id, { bannedAt, bannedUntil });
  }

  peek(subject: Subject, limits: Limits): Decision {
    const now = this.#now();
    const entry = this.#table.find(subject);
    const quota = entry ? loadQuota(entry) : newQuota();
    return peek(quota, limits, now, this.#rulesFor(subject));
  }

  quota(subject: Subject): Quota | undefined {
    const entry = this.#table.find(subject);
    if (entry === undefined) return undefined;
    const now = this.#now();
    const quota = loadQuota(entry);
    expire(quota, now, this.#rulesFor(subject));
    return isExpired(quota, now) ? undefined : quota;
  }

  bannedKeys(): readonly number[] {
    for (const id of this.#bannedKeys) {
      const { bannedAt } = this.quota({ kind: "key", id }) ?? newQuota();
      if (bannedAt === NEVER) this.#bannedKeys.delete(id);
    }
    return [...this.#bannedKeys];
  }

  unban(subject: Subject, agoMs: number): void {
    const entry = this.#table.find(subject);
    if (entry === undefined) return;
    const now = this.#now();
    const quota = loadQuota(entry);
    expire(quota, now, this.#rulesFor(subject));
    unban(quota, now - agoMs);
    storeQuota(entry, quota);
    this.#writeBehind?.changedUrgently(entry);
  }

  /** Resolves when the quota store has every count and ban, and rejects if it cannot save them. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer.close();
    this.#writeBehind?.close();
  }

  /** Returns wall-clock time, which headers, the store and commands show. A step of the clock moves the windows too. */
  #now(): number {
    const steadyNow = this.#clock.steadyNow();
    if (this.#stepMs !== this.#clock.stepMs) this.#followStep();
    return steadyNow + this.#stepMs;
  }

  #followStep(): void {
    const byMs = this.#clock.stepMs - this.#stepMs;
    this.#stepMs += byMs;
    for (const entry of this.#table.entries()) {
      const quota = loadQuota(entry, this.#scratch);
      shift(quota, byMs);
      storeQuota(entry, quota);
      this.#writeBehind?.changed(entry);
    }
  }

  /** Only keys can be banned: an address may stand for many clients. */
  #rulesFor({ kind }: Subject): BanRules | undefined {
    return kind === "key" ? this.#ban() : undefined;
  }

  #add(subject: Subject, now: number, quota?: Quota): QuotaEntry {
    const isFull = subject.kind === "address" && this.#table.addresses >= this.#maxAddresses;
    const evicted = isFull ? this.#table.leastUsedAddress(now) : undefined;
    if (evicted) this.#remove(evicted);
    const entry = this.#table.add(subject, quota);
    this.#writeBehind?.keepRow(subject);
    return entry;
  }

  #remove(entry: QuotaEntry): void {
    this.#writeBehind?.deleteRow(entry);
    this.#table.remove(entry);
  }

  #restore(subject: Subject, quota: Quota): void {
    const now = this.#now();
    if (isExpired(quota, now)) return this.#writeBehind?.deleteRow(subject);
    this.#add(subject, now, quota);
    if (subject.kind !== "key" || quota.bannedUntil === NEVER) return;
    this.restoredBans.push(subject.id);
    this.#bannedKeys.add(subject.id);
  }

  #tick(): void {
    for (const entry of this.#table.nextExpired(this.#now())) this.#remove(entry);
    this.#writeBehind?.startPass();
  }
}

export type { MemoryRateLimiter };

/** The rows that one time slice writes, so that requests wait for a short time only. */
const BATCH_ROWS = 256;
/**
 * The time slices of a pass at most. With more rows, each time slice writes more of them. So a count is in the store
 * within a second, half of which it waits for the pass, if a time slice takes 7 ms on average.
 */
const SLICES_PER_PASS = 64;

/** While the store fails, rows of more deleted subjects stay in it. The next start drops them if they have expired. */
const MAX_DELETED = 100_000;

/** Writes changes of quotas to the store, after the responses to the requests that made them. */
class WriteBehind {
  readonly #scheduler: Scheduler;
  readonly #failures: FailureReporter;
  /** Entries that changed since the current pass began, each once. `#pass` has those of the pass, the oldest last. */
  #changed: QuotaEntry[] = [];
  #pass: QuotaEntry[] = [];
  #batchRows = BATCH_ROWS;
  /** Entries of bans and unbans, which are also among the changed ones. */
  #urgent: QuotaEntry[] = [];
  /** The identifiers of subjects without an entry whose rows may still be in the store. */
  readonly #deleted = new Set<Subject["id"]>();
  /** The number of deletions left in the current pass. */
  #deletionsLeft = 0;
  #isScheduled = false;
  #isClosed = false;
  #lastError: unknown;

  constructor(
    private readonly store: QuotaStore,
    options: MemoryRateLimiterOptions,
  ) {
    this.#scheduler = options.scheduler ?? scheduler;
    this.#failures = new FailureReporter(
      (error) => options.onQuotaStoreError?.(error),
      options.onQuotaStoreRecovery,
    );
  }

  changed(entry: QuotaEntry): void {
    if (entry.isQueued) return;
    entry.isQueued = true;
    this.#changed.push(entry);
  }

  /** Writes the entry in the next time slice, before everything that waits for a pass. */
  changedUrgently(entry: QuotaEntry): void {
    this.changed(entry);
    this.#urgent.push(entry);
    this.#schedule();
  }

  /** Must be called for each new subject, because the store may still have its row. */
  keepRow({ id }: Pick<Subject, "id">): void {
    this.#deleted.delete(id);
  }

  /** Must be called for each subject that loses its entry, because the store may have its row. */
  deleteRow({ id }: Pick<Subject, "id">): void {
    if (this.#deleted.size < MAX_DELETED) this.#deleted.add(id);
  }

  /** A pass contains the rest of the last one, without removed entries, so it has at most as many as the table. */
  startPass(): void {
    const before = this.#pass.length > 0 ? this.#batchRows : BATCH_ROWS;
    this.#pass = this.#changed.concat(this.#pass).filter(({ isRemoved }) => !isRemoved);
    this.#changed = [];
    this.#deletionsLeft = this.#deleted.size;
    const rows = Math.max(this.#pass.length, this.#deletionsLeft);
    this.#batchRows = Math.max(before, Math.ceil(rows / SLICES_PER_PASS));
    if (this.#hasMore()) this.#schedule();
  }

  /** Writes everything, closes the store, and throws if the store cannot save all of it. */
  close(): void {
    this.startPass();
    let isSaved = true;
    while (isSaved && this.#hasMore()) isSaved = this.#writeBatch();
    this.#isClosed = true;
    this.store.close();
    if (!isSaved) throw new Error("counts and bans could not be saved", { cause: this.#lastError });
  }

  #hasMore(): boolean {
    return this.#urgent.length + this.#pass.length + Math.min(this.#deletionsLeft, this.#deleted.size) > 0;
  }

  #schedule(): void {
    if (!this.#isScheduled) this.#scheduler.setImmediate(this.#runSlice);
    this.#isScheduled = true;
  }

  readonly #runSlice = (): void => {
    this.#isScheduled = false;
    if (!this.#isClosed && this.#writeBatch() && this.#hasMore()) this.#schedule();
  };

  #writeBatch(): boolean {
    const urgent = this.#urgent.splice(0, BATCH_ROWS);
    if (urgent.length > 0) return this.#save(urgent, []);
    const deleted = [...this.#deleted.values().take(Math.min(this.#deletionsLeft, this.#batchRows))];
    const entries = this.#pass.slice(-this.#batchRows);
    if (!this.#save(entries, deleted)) return false;
    this.#pass.length -= entries.length;
    for (const entry of entries) entry.isQueued = false;
    for (const id of deleted) this.#deleted.delete(id);
    this.#deletionsLeft -= deleted.length;
    return true;
  }

  /** After an error everything waits for the next pass. */
  #save(entries: readonly QuotaEntry[], deleted: readonly Subject["id"][]): boolean {
    const rows = [
      ...deleted.map((id) => [subjectOf(id), undefined] as const),
      ...entries.flatMap((entry) =>
        entry.isRemoved ? [] : [[subjectOf(entry.id), loadQuota(entry)] as const],
      ),
    ];
    if (rows.length === 0) return true;
    try {
      this.store.save(rows);
      this.#failures.succeeded();
      return true;
    } catch (error) {
      this.#urgent = [];
      this.#lastError = error;
      this.#failures.failed(error);
      return false;
    }
  }
}
