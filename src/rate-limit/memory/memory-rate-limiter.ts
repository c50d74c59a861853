import type { Clock, RateLimiter, UsageStore } from "../../domain/ports.ts";
import {
  type BanRules,
  decide,
  type Decision,
  expire,
  isExpired,
  type Limits,
  NEVER,
  newUsage,
  type OnBan,
  peek,
  shift,
  type Subject,
  unban,
  type Usage,
} from "../../domain/rate-limit.ts";
import { type ScheduledTimer, type Scheduler, scheduler } from "../../event-loop.ts";
import { NONE, QUEUED, UsageTable } from "./usage-table.ts";
import { Latch } from "../../api/latch.ts";

interface MemoryRateLimiterOptions {
  readonly clock: Clock;
  readonly ban: BanRules;
  /** Where counts and bans survive a restart; the rate limiter closes it. */
  readonly usageStore?: UsageStore;
  /** Beyond that, those with the fewest requests are evicted. Keys stay: they would get their quota twice. */
  readonly maxAddresses?: number;
  readonly flushEveryMs?: number;
  /** Called once each time that the usage store begins to fail. */
  readonly onUsageStoreError?: (error: unknown) => void;
  readonly onBan?: OnBan | undefined;
  /** Called once each time that it works again. */
  readonly onUsageStoreRecovery?: () => void;
  readonly scheduler?: Scheduler;
}

/** One for the new address and one more, so that a table over its bound shrinks back to it. */
const MAX_EVICTED = 2;

export function createMemoryRateLimiter(options: MemoryRateLimiterOptions): MemoryRateLimiter {
  return new MemoryRateLimiter(options);
}

/** The rate limiter of a single process. It is exact, because nothing runs between reading a usage and writing it. */
class MemoryRateLimiter implements RateLimiter {
  readonly #clock: Clock;
  readonly #ban: BanRules;
  readonly #onBan: OnBan | undefined;
  readonly #maxAddresses: number;
  readonly #table = new UsageTable();
  readonly #writeBehind: WriteBehind | undefined;
  readonly #scheduler: Scheduler;
  /** Keys with a ban when the store was loaded, a current one or one that makes the next one longer. */
  readonly restoredBans: number[] = [];
  /** Keys that were banned and may still be. */
  readonly #bannedKeys = new Set<number>();
  readonly #timer: ScheduledTimer;
  /** One for all requests: each is finished with it before the next begins. */
  readonly #scratch = newUsage();
  #isClosed = false;
  #stepMs: number;

  constructor(options: MemoryRateLimiterOptions) {
    const { clock, ban, usageStore, maxAddresses = 1_000_000, flushEveryMs = 500 } = options;
    this.#clock = clock;
    this.#stepMs = clock.stepMs;
    this.#ban = ban;
    this.#onBan = options.onBan;
    this.#maxAddresses = maxAddresses;
    this.#scheduler = options.scheduler ?? scheduler;
    this.#writeBehind = usageStore && new WriteBehind(this.#table, usageStore, options);
    for (const [subject, usage] of usageStore?.load() ?? []) this.#restore(subject, usage);
    this.#timer = this.#scheduler.setInterval(() => this.#tick(), flushEveryMs);
    this.#timer.unref();
  }

  decide(subject: Subject, limits: Limits): Decision {
    const now = this.#now();
    const table = this.#table;
    const found = table.find(subject);
    const slot = found === NONE ? this.#add(subject, now) : found;

    const usage = table.load(slot, this.#scratch);
    const rules = this.#rulesFor(subject);
    expire(usage, now, rules);
    const wasBanned = now < usage.bannedUntil;
    const decision = decide(usage, limits, now, rules);
    table.store(slot, usage);
    if (decision.outcome === "banned" && !wasBanned) this.#banned(slot, subject, usage);
    else this.#writeBehind?.changed(slot);
    return decision;
  }

  #banned(slot: number, subject: Subject, { bannedAt, bannedUntil }: Usage): void {
    this.#writeBehind?.changedUrgently(slot);
    if (subject.kind !== "key") return;
    this.#bannedKeys.add(subject.id);
    this.#onBan?.(subject.id, { bannedAt, bannedUntil });
  }

  peek(subject: Subject, limits: Limits): Decision {
    const now = this.#now();
    const slot = this.#table.find(subject);
    const usage = slot === NONE ? newUsage() : this.#table.load(slot);
    return peek(usage, limits, now, this.#rulesFor(subject));
  }

  usage(subject: Subject): Usage | undefined {
    const slot = this.#table.find(subject);
    if (slot === NONE) return undefined;
    const now = this.#now();
    const usage = this.#table.load(slot);
    expire(usage, now, this.#rulesFor(subject));
    return isExpired(usage, now) ? undefined : usage;
  }

  bannedKeys(): readonly number[] {
    for (const id of this.#bannedKeys) {
      const { bannedUntil } = this.usage({ kind: "key", id }) ?? newUsage();
      if (bannedUntil <= NEVER) this.#bannedKeys.delete(id);
    }
    return [...this.#bannedKeys];
  }

  unban(subject: Subject, agoMs: number): void {
    const slot = this.#table.find(subject);
    if (slot === NONE) return;
    const now = this.#now();
    const usage = this.#table.load(slot);
    expire(usage, now, this.#rulesFor(subject));
    unban(usage, now - agoMs);
    this.#table.store(slot, usage);
    this.#writeBehind?.changedUrgently(slot);
  }

  /** Resolves when the usage store has every count and ban, and rejects when it did not take them. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer.close();
    this.#writeBehind?.close();
  }

  /** Wall-clock time, which response headers, the store and commands show. A step of the clock ends no window early. */
  #now(): number {
    const steadyNow = this.#clock.steadyNow();
    if (this.#stepMs !== this.#clock.stepMs) this.#followStep();
    return steadyNow + this.#stepMs;
  }

  #followStep(): void {
    const byMs = this.#clock.stepMs - this.#stepMs;
    this.#stepMs += byMs;
    for (const slot of this.#table.liveSlots()) {
      const usage = this.#table.load(slot);
      shift(usage, byMs);
      this.#table.store(slot, usage);
      this.#writeBehind?.changed(slot);
    }
  }

  /** Only keys can be banned: an address may stand for many clients. */
  #rulesFor({ kind }: Subject): BanRules | undefined {
    return kind === "key" ? this.#ban : undefined;
  }

  #add(subject: Subject, now: number): number {
    if (subject.kind === "address") this.#makeRoom(now);
    const slot = this.#table.add(subject);
    this.#writeBehind?.keepRow(subject);
    return slot;
  }

  /** A random sample can miss all addresses when most subjects are keys with ids beyond a million. */
  #makeRoom(now: number): void {
    for (let i = 0; i < MAX_EVICTED && this.#table.addresses >= this.#maxAddresses; i++) {
      const slot = this.#table.leastUsedAddress(now, () => this.#scheduler.random());
      if (slot !== NONE) this.#remove(slot);
    }
  }

  #remove(slot: number): void {
    this.#writeBehind?.deleteRow(this.#table.subjectAt(slot));
    this.#table.remove(slot);
  }

  #restore(subject: Subject, usage: Usage): void {
    const now = this.#now();
    if (isExpired(usage, now)) return this.#writeBehind?.deleteRow(subject);
    const slot = this.#add(subject, now);
    if (subject.kind === "key" && usage.bannedAt !== NEVER) {
      this.restoredBans.push(subject.id);
      this.#bannedKeys.add(subject.id);
    }
    this.#table.store(slot, usage);
  }

  #tick(): void {
    for (const slot of this.#table.nextExpired(this.#now())) this.#remove(slot);
    this.#writeBehind?.startPass();
  }
}

export type { MemoryRateLimiter };

/** Rows written in one time slice, so that requests wait for a short time only. */
const BATCH_ROWS = 256;
/**
 * A pass takes at most this many time slices; with more rows to write, the batches grow. So a count is in the store
 * within a second, half of which it waits for the pass, as long as a time slice takes 7 ms on average.
 */
const SLICES_PER_PASS = 64;

/** While the store fails, rows of more subjects stay in it. A start drops them when they have expired. */
const MAX_DELETED = 100_000;

/** Writes changes of the table to the store, after the requests that made them. No request sees the store's errors. */
class WriteBehind {
  readonly #scheduler: Scheduler;
  readonly #latch: Latch;
  /** Slots that changed since the current pass began, each once; those of the pass, the oldest last. */
  #changed: number[] = [];
  #pass: number[] = [];
  #batchRows = BATCH_ROWS;
  /** Slots of bans and unbans, which are also among the changed ones. */
  #urgent: number[] = [];
  /** Subjects without a slot whose rows may still be in the store: the number of a key, or an address. */
  readonly #deleted = new Set<Subject["id"]>();
  /** Those that belong to the current pass. */
  #deletionsLeft = 0;
  #isScheduled = false;
  #isClosed = false;
  #lastError: unknown;

  constructor(
    private readonly table: UsageTable,
    private readonly store: UsageStore,
    options: MemoryRateLimiterOptions,
  ) {
    this.#scheduler = options.scheduler ?? scheduler;
    this.#latch = new Latch((error) => options.onUsageStoreError?.(error), options.onUsageStoreRecovery);
  }

  changed(slot: number): void {
    const flags = this.table.flags(slot);
    if (flags & QUEUED) return;
    this.table.setFlags(slot, flags | QUEUED);
    this.#changed.push(slot);
  }

  /** Writes the slot in the next time slice, before everything that waits for a pass. */
  changedUrgently(slot: number): void {
    this.changed(slot);
    this.#urgent.push(slot);
    this.#schedule();
  }

  /** Must be called for each new subject: the store may still have its row. */
  keepRow({ id }: Subject): void {
    this.#deleted.delete(id);
  }

  /** Must be called for each subject that loses its slot: the store may have its row. */
  deleteRow({ id }: Subject): void {
    if (this.#deleted.size < MAX_DELETED) this.#deleted.add(id);
  }

  /** The rest of the last pass is a part of it. */
  startPass(): void {
    const before = this.#pass.length > 0 ? this.#batchRows : BATCH_ROWS;
    this.#pass = this.#changed.concat(this.#pass);
    this.#changed = [];
    this.#deletionsLeft = this.#deleted.size;
    const rows = Math.max(this.#pass.length, this.#deletionsLeft);
    this.#batchRows = Math.max(before, Math.ceil(rows / SLICES_PER_PASS));
    if (this.#hasMore()) this.#schedule();
  }

  /** Writes everything, closes the store, and throws when the store did not take all of it. */
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
    const slots = this.#pass.slice(-this.#batchRows);
    if (!this.#save(slots, deleted)) return false;
    this.#pass.length -= slots.length;
    for (const slot of slots) this.table.setFlags(slot, this.table.flags(slot) & ~QUEUED);
    for (const id of deleted) this.#deleted.delete(id);
    this.#deletionsLeft -= deleted.length;
    return true;
  }

  /** After an error everything waits for the next pass. */
  #save(slots: readonly number[], deleted: readonly Subject["id"][]): boolean {
    const live = slots.filter((slot) => this.table.isLive(slot));
    const rows = [
      ...deleted.map((id) => [subjectOf(id), undefined] as const),
      ...live.map((slot) => [this.table.subjectAt(slot), this.table.load(slot)] as const),
    ];
    if (rows.length === 0) return true;
    try {
      this.store.save(rows);
      this.#latch.worked();
      return true;
    } catch (error) {
      this.#urgent = [];
      this.#lastError = error;
      this.#latch.failed(error);
      return false;
    }
  }
}

function subjectOf(id: Subject["id"]): Subject {
  return typeof id === "number" ? { kind: "key", id } : { kind: "address", id };
}
