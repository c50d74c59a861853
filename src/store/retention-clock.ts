import type { ValueStore } from "../domain/ports/stored-values.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { CLOCK_DOUBTED_AT, CLOCK_DOUBTED_FOR, CLOCK_TRUSTED_AT } from "../domain/stored-values.ts";
import { DAY_MS } from "../text/time-units.ts";
import { type ScheduledTimer, scheduler } from "../runtime/scheduler.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";

/** Returns the time by which old data is deleted. */
export type RetentionNow = () => number;

/**
 * The time by which a change deletes what has ended before it. The time of the change is by the clock of the machine,
 * and `retentionNow` may be earlier.
 */
export function deletionTime(at: number, retentionNow: RetentionNow = () => Infinity): number {
  return Math.min(at, retentionNow());
}

const TRUST_CHECK_EVERY_MS = 600_000;

/** One moment by both clocks. */
interface Moment {
  readonly wall: number;
  readonly steady: number;
}

/**
 * The time by which old data is deleted. This is the time of the machine's clock, while it is within a day of the
 * steady clock and of the time stored with the data. Otherwise it is the earlier of the two, so that a clock that was
 * set forward deletes nothing. A clock that has kept its difference for a day is trusted: the server was off or wrong.
 * It is never later than the time of a database that has a clock of its own, by which all servers agree.
 */
export class RetentionClock {
  readonly #failures: FailureReporter;
  #trusted: Moment;
  #doubted: (Moment & { readonly forMs: number }) | undefined;
  #storedValues: ValueStore | undefined;
  /** The time of the database, and that of the steady clock when it was read. */
  #database: Moment | undefined;
  #timer: ScheduledTimer | undefined;

  /** `onDoubt` is called when the machine's clock begins to differ. */
  constructor(
    private readonly clock: Clock,
    onDoubt: () => void,
    onTrust: () => void,
  ) {
    this.#failures = new FailureReporter(onDoubt, onTrust);
    this.#trusted = this.#moment();
  }

  /** Continues from the times that the last server stored, and stores its own from time to time. */
  async start(storedValues: ValueStore): Promise<void> {
    this.#storedValues = storedValues;
    await this.#readDatabaseTime();
    const stored = await storedValues.readValues();
    const { wall, steady } = this.#moment();
    this.#trusted = { wall: Number(stored[CLOCK_TRUSTED_AT]) || wall, steady };
    const doubtedAt = Number(stored[CLOCK_DOUBTED_AT]);
    if (doubtedAt > 0) this.#doubted = { wall: doubtedAt, steady, forMs: Number(stored[CLOCK_DOUBTED_FOR]) };
    void this.check();
    this.#timer = scheduler.setInterval(() => void this.check(), TRUST_CHECK_EVERY_MS);
    this.#timer.unref();
  }

  readonly now = (): number => {
    const moment = this.#moment();
    const aheadMs = aheadOf(moment, this.#trusted);
    const trusted = aheadMs <= DAY_MS ? moment.wall : moment.wall - aheadMs;
    if (this.#database === undefined) return trusted;
    return Math.min(trusted, this.#database.wall + moment.steady - this.#database.steady);
  };

  /** Compares the machine's clock with the trusted time, and stores what it finds. The timer calls this method. */
  async check(): Promise<void> {
    const moment = this.#moment();
    const earlier = this.#doubted;
    const forMs = earlier && isNear(moment, earlier) ? earlier.forMs + moment.steady - earlier.steady : 0;
    if (isNear(moment, this.#trusted) || forMs >= DAY_MS) {
      this.#trusted = moment;
      this.#doubted = undefined;
      this.#failures.succeeded();
    } else {
      this.#doubted = { ...moment, forMs };
      this.#failures.failed(undefined);
    }
    const { wall, forMs: doubtedFor } = this.#doubted ?? { wall: 0, forMs: 0 };
    const times = {
      [CLOCK_TRUSTED_AT]: `${this.#trusted.wall}`,
      [CLOCK_DOUBTED_AT]: `${wall}`,
      [CLOCK_DOUBTED_FOR]: `${doubtedFor}`,
    };
    try {
      await this.#readDatabaseTime();
      await this.#storedValues?.saveValues(times);
    } catch {
      // If the times cannot be stored, a later server trusts its clock a day later.
    }
  }

  async #readDatabaseTime(): Promise<void> {
    const { steady } = this.#moment();
    const wall = await this.#storedValues?.readTime();
    this.#database = wall === undefined ? undefined : { wall, steady };
  }

  async stop(): Promise<void> {
    this.#timer?.close();
    await this.check();
  }

  #moment(): Moment {
    return { wall: this.clock.now(), steady: this.clock.steadyNow() };
  }
}

/** Returns how much further the machine's clock has moved since than the steady clock. */
function aheadOf(moment: Moment, earlier: Moment): number {
  return moment.wall - earlier.wall - (moment.steady - earlier.steady);
}

function isNear(moment: Moment, earlier: Moment): boolean {
  return Math.abs(aheadOf(moment, earlier)) <= DAY_MS;
}
