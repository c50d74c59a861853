import type { QuotaStore } from "../domain/ports/rate-limiter.ts";
import type { Subject } from "../domain/rate-limit.ts";
import { type Scheduler, scheduler } from "../runtime/scheduler.ts";
import { loadQuota, subjectOf, type QuotaEntry } from "./quota-table.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";

export interface WriteBehindOptions {
  /** Called when the quota store begins to fail. */
  readonly onQuotaStoreError?: (error: unknown) => void;
  /** Called when the quota store works again. */
  readonly onQuotaStoreRecovery?: () => void;
  readonly scheduler?: Scheduler;
}

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
export class WriteBehind {
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
    options: WriteBehindOptions,
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
    // The next pass saves what cannot be saved now.
    if (this.store.isPaused === true) return;
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
