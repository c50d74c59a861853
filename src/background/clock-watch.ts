import { CLOCK_TOLERANCE_MS } from "../domain/clock-difference.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { ValueStore } from "../domain/ports/stored-values.ts";
import type { Log } from "../observe/log.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";
import { repeat } from "../runtime/repeat.ts";

const COMPARE_EVERY_MS = 5_000;
/** A difference that shrinks counts as over below this, so that one near the tolerance is reported once. */
const AGREEMENT_MS = CLOCK_TOLERANCE_MS / 2;
/** Half of the time of the query is the error of the comparison. */
const MAX_QUERY_MS = 1_000;

interface WatchOptions {
  readonly storedValues: Pick<ValueStore, "readTime">;
  readonly clock: Clock;
  readonly log: Pick<Log, "event">;
}

/** Compares the clock of this machine with that of the database, all the time, and reports steps of the latter. */
export class ClockWatch {
  readonly #options: WatchOptions;
  readonly #reporter: FailureReporter;
  #aheadMs: number | undefined;
  #steadyAheadMs: number | undefined;
  readonly #comparing = repeat(0, async () => {
    await this.#compare().catch(() => {
      // The outage of the database is in the log. The last difference stays.
    });
    return COMPARE_EVERY_MS;
  });

  constructor(options: WatchOptions) {
    this.#options = options;
    const { log } = options;
    this.#reporter = new FailureReporter(
      () => log.event("clock.differs", { aheadMs: this.#aheadMs }),
      () => log.event("clock.agrees", { aheadMs: this.#aheadMs }),
    );
  }

  /**
   * The clock of this machine minus that of the database. Undefined if the database has none of its own, or did not
   * respond yet.
   */
  get aheadMs(): number | undefined {
    return this.#aheadMs;
  }

  async #compare(): Promise<void> {
    const { storedValues, clock } = this.#options;
    const startedAt = clock.steadyNow();
    const time = await storedValues.readTime();
    const tookMs = clock.steadyNow() - startedAt;
    if (time === undefined || tookMs > MAX_QUERY_MS) return;
    const [before, steadyBefore] = [this.#aheadMs, this.#steadyAheadMs];
    this.#aheadMs = Math.round(clock.now() - tookMs / 2 - time);
    this.#steadyAheadMs = Math.round(startedAt + tookMs / 2 - time);
    if (before !== undefined && steadyBefore !== undefined)
      this.#reportStep(before - this.#aheadMs, steadyBefore - this.#steadyAheadMs);
    const difference = Math.abs(this.#aheadMs);
    if (difference > CLOCK_TOLERANCE_MS) this.#reporter.failed(undefined);
    else if (difference <= AGREEMENT_MS) this.#reporter.succeeded();
  }

  /**
   * Both clocks of this machine show a step of the database's clock. A step of this machine's clock changes only the
   * first difference, and the time for which this machine was suspended only the second.
   */
  #reportStep(byMs: number, bySteadyMs: number): void {
    const isStep = Math.min(Math.abs(byMs), Math.abs(bySteadyMs)) > CLOCK_TOLERANCE_MS;
    if (isStep && byMs > 0 === bySteadyMs > 0)
      this.#options.log.event("clock.database-changed", { byMs: bySteadyMs });
  }

  async close(): Promise<void> {
    await this.#comparing.close();
  }
}
