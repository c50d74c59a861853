import type { Scheduler } from "../../event-loop.ts";
import { DAY_MS, isExpired, MINUTE_MS, newUsage } from "../../domain/rate-limit.ts";
import {
  DAY_EXHAUSTED,
  IS_KEY,
  MINUTE_EXHAUSTED,
  NONE,
  type SlotRange,
  type UsageTable,
} from "./usage-table.ts";

/** The value of a slot: nothing, the requests counted for an address, those for a key, or too much to be evicted. */
const EXPIRED = -1;
const PROTECTED = Infinity;
/** More than the requests of any address. */
const ANY_KEY = 2 ** 52;

const SAMPLES = 16;
/** One for the new subject and one more, so that a table over its bound shrinks back to it. */
const MAX_EVICTED = 2;
/** Slots checked by one sweep. There are two sweeps a second, so a million slots take two minutes. */
const SWEEP_SLOTS = 4_096;

interface EvictionOptions {
  readonly scheduler: Pick<Scheduler, "random">;
  remove(slot: number): void;
}

interface Candidate {
  readonly slot: number;
  readonly value: number;
}

/** Removes subjects from the table: expired ones in time, and the least valuable ones when the table is full. */
export class Eviction {
  readonly #table: UsageTable;
  readonly #options: EvictionOptions;
  readonly #scratch = newUsage();
  /** The last slot that was swept, of each range. */
  readonly #sweptTo: number[] = [];

  constructor(table: UsageTable, options: EvictionOptions) {
    this.#table = table;
    this.#options = options;
  }

  /**
   * Makes room for a new subject. Expired subjects go first, then the address with the fewest requests, then the key
   * with the fewest; each is the least valuable of a random sample. A key that is banned or has exhausted a window
   * stays, or it would get its quota twice. When only such keys are left, the table grows beyond its bound: by as many
   * keys as an operator has created, and by one address.
   */
  makeRoom(maxSubjects: number, now: number): void {
    for (let i = 0; i < MAX_EVICTED && this.#table.size >= maxSubjects; i++) {
      const samples = this.#table.ranges.map((range) => this.#sample(range, now));
      const least = samples.reduce((one, other) => (other.value < one.value ? other : one));
      if (least.value < PROTECTED) this.#options.remove(least.slot);
    }
  }

  #sample({ start, end }: SlotRange, now: number): Candidate {
    let least: Candidate = { slot: NONE, value: PROTECTED };
    for (let i = 0; i < SAMPLES; i++) {
      const slot = start + Math.floor(this.#options.scheduler.random() * (end - start));
      const value = this.#valueOf(slot, now);
      if (value < least.value) least = { slot, value };
      if (value === EXPIRED) break;
    }
    return least;
  }

  /** Removes the expired subjects among the next few slots. */
  sweep(now: number): void {
    this.#table.ranges.forEach(({ start, end }, i) => {
      let slot = this.#sweptTo[i] ?? start;
      for (let left = Math.min(SWEEP_SLOTS, end - start); left > 0; left--) {
        slot = slot + 1 < end ? slot + 1 : start;
        if (this.#valueOf(slot, now) === EXPIRED) this.#options.remove(slot);
      }
      this.#sweptTo[i] = slot;
    });
  }

  #valueOf(slot: number, now: number): number {
    if (!this.#table.isLive(slot)) return PROTECTED;
    const usage = this.#scratch;
    this.#table.load(slot, usage);
    if (isExpired(usage, now)) return EXPIRED;
    const flags = this.#table.flags(slot);
    if (!(flags & IS_KEY)) return usage.day.used;
    if (now < usage.bannedUntil) return PROTECTED;
    if (flags & MINUTE_EXHAUSTED && now < usage.minute.openedAt + MINUTE_MS) return PROTECTED;
    if (flags & DAY_EXHAUSTED && now < usage.day.openedAt + DAY_MS) return PROTECTED;
    return ANY_KEY + usage.day.used;
  }
}
