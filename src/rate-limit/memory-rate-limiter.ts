import type { RateLimiter, QuotaStore } from "../domain/ports/rate-limiter.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { BanRules } from "../domain/ban-rules.ts";
import {
  charge,
  type Decision,
  decisionOf,
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
} from "../domain/rate-limit.ts";
import { type ScheduledTimer, type Scheduler, scheduler } from "../runtime/scheduler.ts";
import { loadQuota, storeQuota, type QuotaEntry, QuotaTable } from "./quota-table.ts";
import { WriteBehind, type WriteBehindOptions } from "./write-behind.ts";

interface MemoryRateLimiterOptions extends WriteBehindOptions {
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
  readonly onBan?: OnBan | undefined;
}

/** The rate limiter of a single process. It is exact, because nothing runs between reading a quota and writing it. */
export class MemoryRateLimiter implements RateLimiter {
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
    return decisionOf(outcome, quota, limits, now);
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
