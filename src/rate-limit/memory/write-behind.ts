import { newUsage, type Usage, type Subject } from "../../domain/rate-limit.ts";
import { QUEUED, SAVED, type Slots } from "./slots.ts";

/** Undefined means forgotten. */
export type Row = readonly [Subject, Usage | undefined];
/** Hands rows to the usageStore; false when it did not take them. Never throws. */
export type Save = (rows: readonly Row[]) => boolean;

/** Rows that are written between two turns of the event loop: less than a millisecond of SQLite. */
const SLICE_ROWS = 256;
/**
 * A pass takes no more turns than this; with more to write than that holds the slices grow instead. So what was
 * counted is written within a second, half of it spent waiting for the pass, as long as the turns of a pass take 7
 * ms on average. On the machine where this was measured that holds up to 50,000 different subjects a second.
 */
const TURNS_PER_PASS = 64;

/** Carries the changes of some slots to the usageStore, behind the requests. */
export class WriteBehind {
  readonly #slots: Slots;
  readonly #save: Save;
  /** Slots that changed since the pass that is under way began, each once. */
  #waiting: number[] = [];
  #pass: number[] = [];
  #position = 0;
  #turnsLeft = 0;
  #sliceRows = SLICE_ROWS;
  #urgent: number[] = [];
  /** Rows that the usageStore has of subjects that are gone; never one that has a slot. */
  readonly #forgotten = new Set<Subject>();

  constructor(slots: Slots, save: Save) {
    this.#slots = slots;
    this.#save = save;
  }

  changed(slot: number): void {
    const flags = this.#slots.flags(slot);
    if (flags & QUEUED) return;
    this.#slots.setFlags(slot, flags | QUEUED);
    this.#waiting.push(slot);
  }

  /** WriteResult at the next turn of the loop, ahead of everything that waits for its pass. */
  changedUrgently(slot: number): void {
    this.changed(slot);
    if (this.#urgent.push(slot) === 1) setImmediate(this.#writeUrgent);
  }

  /** To be told of every newcomer: it may have left a row behind that is now its own again. */
  added(slot: number): void {
    if (this.#forgotten.size === 0 || !this.#forgotten.delete(this.#slots.subjectAt(slot))) return;
    this.#slots.setFlags(slot, this.#slots.flags(slot) | SAVED);
  }

  removing(slot: number): void {
    if (this.#slots.flags(slot) & SAVED) this.forget(this.#slots.subjectAt(slot));
  }

  forget(subject: Subject): void {
    this.#forgotten.add(subject);
  }

  /** Begins a pass, unless one is under way. */
  begin(): void {
    if (this.#turnsLeft > 0) return;
    this.#takeWaiting();
    if (!this.#hasMore()) return;
    this.#turnsLeft = TURNS_PER_PASS;
    this.#sliceRows = Math.max(SLICE_ROWS, Math.ceil(this.#pass.length / TURNS_PER_PASS));
    this.#turn();
  }

  /** Writes everything now; false when the usageStore did not take it. */
  finish(): boolean {
    this.#takeWaiting();
    while (this.#hasMore()) {
      if (!this.#writeSlice()) return false;
    }
    return true;
  }

  /** What an interrupted pass had left goes first. */
  #takeWaiting(): void {
    this.#pass = this.#pass.slice(this.#position).concat(this.#waiting);
    this.#position = 0;
    this.#waiting = [];
  }

  readonly #turn = (): void => {
    const written = this.#writeSlice();
    this.#turnsLeft = written && this.#hasMore() ? this.#turnsLeft - 1 : 0;
    if (this.#turnsLeft > 0) setImmediate(this.#turn);
  };

  #hasMore(): boolean {
    return this.#position < this.#pass.length || this.#forgotten.size > 0;
  }

  #writeSlice(): boolean {
    const gone = this.#forgotten.values().take(SLICE_ROWS).toArray();
    const slots = this.#pass.slice(this.#position, this.#position + this.#sliceRows);
    const rows: Row[] = gone.map((subject) => [subject, undefined]);
    if (!this.#write(slots, rows)) return false;
    this.#position += slots.length;
    for (const slot of slots) this.#slots.setFlags(slot, this.#slots.flags(slot) & ~QUEUED);
    for (const subject of gone) this.#forgotten.delete(subject);
    return true;
  }

  readonly #writeUrgent = (): void => {
    const slots = this.#urgent.splice(0, SLICE_ROWS);
    // On failure they still wait for the next pass, like everything else.
    if (this.#write(slots, []) && this.#urgent.length > 0) setImmediate(this.#writeUrgent);
    else this.#urgent = [];
  };

  #write(slots: readonly number[], rows: Row[]): boolean {
    const live = slots.filter((slot) => this.#slots.isLive(slot));
    for (const slot of live) rows.push([this.#slots.subjectAt(slot), this.#copyOf(slot)]);
    if (rows.length > 0 && !this.#save(rows)) return false;
    for (const slot of live) this.#slots.setFlags(slot, this.#slots.flags(slot) | SAVED);
    return true;
  }

  /** The usageStore may keep what it is given, so each row is its own. */
  #copyOf(slot: number): Usage {
    const usage = newUsage();
    this.#slots.load(slot, usage);
    return usage;
  }
}
