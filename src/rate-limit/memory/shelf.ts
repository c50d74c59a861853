import { DAY_MS, isForgettable, MINUTE_MS, newUsage, type Subject } from "../../domain/rate-limit.ts";
import { DAY_SPENT, IS_KEY, MINUTE_SPENT, NONE, type Slots } from "./slots.ts";
import { type Save, WriteBehind } from "./write-behind.ts";

/** What losing a subject would cost: nothing, some requests of an address, some of a key, or what may not be lost. */
export const EXPIRED = -1;
export const PROTECTED = Infinity;
/** More than any address has requests to its count. */
const ANY_KEY = 2 ** 52;

export interface Candidate {
  readonly slot: number;
  readonly cost: number;
}

const SAMPLES = 16;
/** Slots looked at in one sweep, a fraction of a millisecond's work; at two a second a million take two minutes. */
const SWEEP_SLOTS = 4_096;

/** Slots, with the way subjects come into them, are written down, and go. */
export class Shelf {
  readonly slots: Slots;
  readonly behind: WriteBehind | undefined;
  readonly #scratch = newUsage();
  #hand = 0;

  constructor(slots: Slots, save: Save | undefined) {
    this.slots = slots;
    this.behind = save && new WriteBehind(slots, save);
  }

  add(subject: Subject): number {
    const slot = this.slots.add(subject);
    if (subject.startsWith("key:")) this.slots.setFlags(slot, this.slots.flags(slot) | IS_KEY);
    this.behind?.added(slot);
    return slot;
  }

  drop(slot: number): void {
    this.behind?.removing(slot);
    this.slots.remove(slot);
  }

  /** The cheapest of a few subjects picked at random. */
  sample(now: number): Candidate {
    let best: Candidate = { slot: NONE, cost: PROTECTED };
    for (let i = 0; i < SAMPLES && this.slots.size > 0; i++) {
      const slot = Math.floor(Math.random() * this.slots.reach);
      const cost = this.#costOf(slot, now);
      if (cost === EXPIRED) return { slot, cost };
      if (cost < best.cost) best = { slot, cost };
    }
    return best;
  }

  /** Drops what has expired among the next few slots. */
  sweep(now: number): void {
    for (let i = Math.min(SWEEP_SLOTS, this.slots.reach); i > 0; i--) {
      this.#hand = (this.#hand + 1) % this.slots.reach;
      if (this.#costOf(this.#hand, now) === EXPIRED) this.drop(this.#hand);
    }
  }

  #costOf(slot: number, now: number): number {
    if (!this.slots.isLive(slot)) return PROTECTED;
    this.slots.load(slot, this.#scratch);
    const { minute, day, bannedUntil } = this.#scratch;
    if (isForgettable(this.#scratch, now)) return EXPIRED;
    const flags = this.slots.flags(slot);
    if (!(flags & IS_KEY)) return day.used;
    if (now < bannedUntil) return PROTECTED;
    if (flags & MINUTE_SPENT && now < minute.openedAt + MINUTE_MS) return PROTECTED;
    if (flags & DAY_SPENT && now < day.openedAt + DAY_MS) return PROTECTED;
    return ANY_KEY + day.used;
  }
}
