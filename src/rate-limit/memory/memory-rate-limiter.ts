import {
  decide,
  type BanRules,
  isForgettable,
  isSpent,
  type Limits,
  newUsage,
  unban,
  settle,
  type Usage,
  type Subject,
  type Decision,
} from "../../domain/rate-limit.ts";
import type { Clock, UsageStore, RateLimiter } from "../../domain/ports.ts";
import { Book } from "./book.ts";
import { Hashed } from "./hashed.ts";
import { Numbered, numberOf } from "./numbered.ts";
import { makeRoom } from "./eviction.ts";
import { Shelf } from "./shelf.ts";
import { DAY_SPENT, IS_KEY, MINUTE_SPENT, NONE, SAVED } from "./slots.ts";

export interface MemoryRateLimiterOptions {
  readonly clock: Clock;
  readonly ban: BanRules;
  /** Where counts and bans outlive the process; the rateLimiter closes it. */
  readonly usageStore?: UsageStore;
  readonly maxSubjects?: number;
  readonly flushEveryMs?: number;
  /** Called once each time the usageStore begins to fail. */
  readonly onUsageStoreFault?: (error: unknown) => void;
}

const SPENT = MINUTE_SPENT | DAY_SPENT;

export function createMemoryRateLimiter(options: MemoryRateLimiterOptions): MemoryRateLimiter {
  return new MemoryRateLimiter(options);
}

/** The rateLimiter of a single process: exact since nothing comes between reading a usage and writing it. */
class MemoryRateLimiter implements RateLimiter {
  readonly #clock: Clock;
  readonly #ban: BanRules;
  readonly #book: Book | undefined;
  readonly #numbered: Shelf;
  readonly #hashed: Shelf;
  readonly #shelves: readonly Shelf[];
  readonly #maxSubjects: number;
  readonly #timer: Timer;
  /** Shared by all requests: each is through with it before the next begins. */
  readonly #scratch = newUsage();
  #closed = false;

  constructor(options: MemoryRateLimiterOptions) {
    const {
      clock,
      ban,
      usageStore,
      maxSubjects = 1_000_000,
      flushEveryMs = 500,
      onUsageStoreFault,
    } = options;
    this.#clock = clock;
    this.#ban = ban;
    this.#maxSubjects = maxSubjects;
    this.#book = usageStore && new Book(usageStore, onUsageStoreFault);
    this.#numbered = new Shelf(new Numbered(), this.#book?.save);
    this.#hashed = new Shelf(new Hashed(), this.#book?.save);
    this.#shelves = [this.#numbered, this.#hashed];
    for (const [subject, usage] of usageStore?.load() ?? []) this.#restore(subject, usage);
    this.#timer = setInterval(() => this.#tick(), flushEveryMs);
    this.#timer.unref();
  }

  decide(subject: Subject, limits: Limits): Decision {
    const now = this.#clock.now();
    const shelf = this.#shelfOf(subject);
    const { slots, behind } = shelf;
    const found = slots.find(subject);
    const slot = found === NONE ? this.#enter(shelf, subject, now) : found;

    const usage = this.#scratch;
    slots.load(slot, usage);
    const { bannedAt } = usage;
    const flags = slots.flags(slot);
    const decision = decide(usage, limits, now, this.#rulesFor(flags));
    slots.store(slot, usage);

    const marked = (flags & ~SPENT) | spentFlags(usage, limits);
    if (marked !== flags) slots.setFlags(slot, marked);
    if (decision.outcome === "banned" && usage.bannedAt !== bannedAt) behind?.changedUrgently(slot);
    else behind?.changed(slot);
    return decision;
  }

  usage(subject: Subject): Usage | undefined {
    const now = this.#clock.now();
    const { slots } = this.#shelfOf(subject);
    const slot = slots.find(subject);
    if (slot === NONE) return undefined;
    const usage = newUsage();
    slots.load(slot, usage);
    settle(usage, now, this.#rulesFor(slots.flags(slot)));
    return isForgettable(usage, now) ? undefined : usage;
  }

  unban(subject: Subject, at: number): void {
    const { slots, behind } = this.#shelfOf(subject);
    const slot = slots.find(subject);
    if (slot === NONE) return;
    slots.load(slot, this.#scratch);
    settle(this.#scratch, this.#clock.now(), this.#rulesFor(slots.flags(slot)));
    unban(this.#scratch, at);
    slots.store(slot, this.#scratch);
    behind?.changedUrgently(slot);
  }

  /** Everything that was counted is in the usageStore when this is done; it fails if that could not be. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    const written = this.#shelves.map((shelf) => shelf.behind?.finish() ?? true);
    this.#book?.close();
    if (written.includes(false)) {
      throw new Error("counts and bans could not be written down", { cause: this.#book?.fault });
    }
  }

  #shelfOf(subject: Subject): Shelf {
    return numberOf(subject) === NONE ? this.#hashed : this.#numbered;
  }

  /** Only keys can be banned: an address may stand for many who did nothing. */
  #rulesFor(flags: number): BanRules | undefined {
    return flags & IS_KEY ? this.#ban : undefined;
  }

  #enter(shelf: Shelf, subject: Subject, now: number): number {
    makeRoom(this.#shelves, this.#maxSubjects, now);
    return shelf.add(subject);
  }

  /** Limits are not written down, so until its next request a key counts as one that has spent both windows. */
  #restore(subject: Subject, usage: Usage): void {
    const now = this.#clock.now();
    const shelf = this.#shelfOf(subject);
    if (isForgettable(usage, now)) return shelf.behind?.forget(subject);
    const slot = this.#enter(shelf, subject, now);
    shelf.slots.store(slot, usage);
    shelf.slots.setFlags(slot, shelf.slots.flags(slot) | SAVED | SPENT);
  }

  #tick(): void {
    const now = this.#clock.now();
    for (const shelf of this.#shelves) {
      shelf.sweep(now);
      shelf.behind?.begin();
    }
  }
}

function spentFlags({ minute, day }: Usage, { perMinute, perDay }: Limits): number {
  return (isSpent(minute, perMinute) ? MINUTE_SPENT : 0) | (isSpent(day, perDay) ? DAY_SPENT : 0);
}

export type { MemoryRateLimiter };
