import { Latch } from "../../api/latch.ts";
import type { UsageStore } from "../../domain/ports.ts";
import type { Scheduler } from "../../event-loop.ts";
import { newUsage, type Subject, type Usage } from "../../domain/rate-limit.ts";
import { QUEUED, SAVED, type UsageTable } from "./usage-table.ts";

type Row = readonly [Subject, Usage | undefined];

/** Rows written in one time slice, so that requests wait for a short time only. */
const BATCH_ROWS = 256;
/**
 * A pass takes at most this many time slices; with more rows to write, the batches grow. So a count is in the store
 * within a second, half of which it waits for the pass, as long as a time slice takes 7 ms on average.
 */
const SLICES_PER_PASS = 64;

interface WriteBehindOptions {
  readonly table: UsageTable;
  readonly store: UsageStore;
  readonly scheduler: Scheduler;
  /** Called once each time that the store begins to fail. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Called once each time that it works again. */
  readonly onRecovery?: (() => void) | undefined;
}

/** Writes changes of the table to the store, after the requests that made them. No request sees the store's errors. */
export class WriteBehind {
  readonly #options: WriteBehindOptions;
  readonly #table: UsageTable;
  /** Slots that changed since the current pass began, each once. */
  #changed: number[] = [];
  #pass: number[] = [];
  #position = 0;
  #slicesLeft = 0;
  #batchRows = BATCH_ROWS;
  #urgent: number[] = [];
  /** Subjects without a slot whose rows are still in the store: the number of a key, or an address. */
  readonly #deleted = new Set<Subject["id"]>();
  readonly #latch: Latch;
  #isClosed = false;
  #lastError: unknown;

  constructor(options: WriteBehindOptions) {
    this.#options = options;
    this.#table = options.table;
    this.#latch = new Latch((error) => options.onError?.(error), options.onRecovery);
  }

  changed(slot: number): void {
    const flags = this.#table.flags(slot);
    if (flags & QUEUED) return;
    this.#table.setFlags(slot, flags | QUEUED);
    this.#changed.push(slot);
  }

  /** Writes the slot in the next time slice, before everything that waits for a pass. */
  changedUrgently(slot: number): void {
    this.changed(slot);
    if (this.#urgent.push(slot) === 1) this.#options.scheduler.setImmediate(this.#writeUrgent);
  }

  /** Must be called for each new subject: the store may still have its row. */
  added(slot: number): void {
    if (this.#deleted.size === 0 || !this.#deleted.delete(this.#table.subjectAt(slot).id)) return;
    this.#table.setFlags(slot, this.#table.flags(slot) | SAVED);
  }

  /** Must be called before a subject loses its slot. */
  removing(slot: number): void {
    if (this.#table.flags(slot) & SAVED) this.deleteRow(this.#table.subjectAt(slot));
  }

  deleteRow(subject: Subject): void {
    this.#deleted.add(subject.id);
  }

  /** Starts a pass, unless one is running. */
  startPass(): void {
    if (this.#slicesLeft > 0) return;
    this.#takeChanged();
    if (!this.#hasMore()) return;
    this.#slicesLeft = SLICES_PER_PASS;
    this.#batchRows = Math.max(BATCH_ROWS, Math.ceil(this.#pass.length / SLICES_PER_PASS));
    this.#runSlice();
  }

  /** Writes everything, closes the store, and throws when the store did not take all of it. */
  close(): void {
    this.#takeChanged();
    let isSaved = true;
    while (isSaved && this.#hasMore()) isSaved = this.#writeBatch();
    this.#isClosed = true;
    this.#options.store.close();
    if (!isSaved) throw new Error("counts and bans could not be saved", { cause: this.#lastError });
  }

  /** The rest of an interrupted pass comes first. */
  #takeChanged(): void {
    this.#pass = this.#pass.slice(this.#position).concat(this.#changed);
    this.#position = 0;
    this.#changed = [];
  }

  readonly #runSlice = (): void => {
    const isSaved = this.#writeBatch();
    this.#slicesLeft = isSaved && this.#hasMore() ? this.#slicesLeft - 1 : 0;
    if (this.#slicesLeft > 0) this.#options.scheduler.setImmediate(this.#runSlice);
  };

  #hasMore(): boolean {
    return this.#position < this.#pass.length || this.#deleted.size > 0;
  }

  #writeBatch(): boolean {
    const deleted = [...this.#deleted.values().take(BATCH_ROWS)];
    const slots = this.#pass.slice(this.#position, this.#position + this.#batchRows);
    if (!this.#write(slots, deleted)) return false;
    this.#position += slots.length;
    for (const slot of slots) this.#table.setFlags(slot, this.#table.flags(slot) & ~QUEUED);
    for (const id of deleted) this.#deleted.delete(id);
    return true;
  }

  readonly #writeUrgent = (): void => {
    const slots = this.#urgent.splice(0, BATCH_ROWS);
    // After an error they wait for the next pass, like every other change.
    if (this.#write(slots, []) && this.#urgent.length > 0)
      this.#options.scheduler.setImmediate(this.#writeUrgent);
    else this.#urgent = [];
  };

  #write(slots: readonly number[], deleted: readonly Subject["id"][]): boolean {
    const live = slots.filter((slot) => this.#table.isLive(slot));
    const rows = [
      ...deleted.map((id): Row => [subjectOf(id), undefined]),
      ...live.map((slot): Row => [this.#table.subjectAt(slot), this.#copyOf(slot)]),
    ];
    if (rows.length > 0 && !this.#save(rows)) return false;
    for (const slot of live) this.#table.setFlags(slot, this.#table.flags(slot) | SAVED);
    return true;
  }

  #save(rows: readonly Row[]): boolean {
    if (this.#isClosed) return false;
    try {
      this.#options.store.save(rows);
      this.#latch.worked();
      return true;
    } catch (error) {
      this.#lastError = error;
      this.#latch.failed(error);
      return false;
    }
  }

  #copyOf(slot: number): Usage {
    const usage = newUsage();
    this.#table.load(slot, usage);
    return usage;
  }
}

function subjectOf(id: Subject["id"]): Subject {
  return typeof id === "number" ? { kind: "key", id } : { kind: "address", id };
}
