import { Latch } from "../api/latch.ts";
import type { Clock, SettingsStore } from "../domain/ports.ts";
import { DAY_MS } from "../domain/rate-limit.ts";
import { type ScheduledTimer, scheduler } from "../event-loop.ts";

const CHECK_EVERY_MS = 600_000;
/** Names of settings. */
const TRUSTED_AT = "clock-trusted-at";
const DOUBTED_AT = "clock-doubted-at";
const DOUBTED_FOR = "clock-doubted-for";

/** The same moment by both clocks. */
interface Moment {
  readonly wall: number;
  readonly steady: number;
}

/**
 * The time by which old data is deleted: that of the machine's clock, as long as it is within a day of what the steady
 * clock and the time stored with the data say. Otherwise the earlier of the two, so that a clock that was set forward
 * deletes nothing. A clock that has kept its difference for a day is trusted: the server was off, or was wrong before.
 */
export class RetentionClock {
  readonly #latch: Latch;
  #trusted: Moment;
  #doubted: (Moment & { readonly forMs: number }) | undefined;
  #settings: Pick<SettingsStore, "readSettings" | "saveSettings"> | undefined;
  #timer: ScheduledTimer | undefined;

  /** `onDoubt` is called once each time that the machine's clock is found to differ. */
  constructor(
    private readonly clock: Clock,
    onDoubt: () => void,
    onTrust: () => void,
  ) {
    this.#latch = new Latch(onDoubt, onTrust);
    this.#trusted = this.#moment();
  }

  /** Continues from the times that the last server stored, and stores its own from time to time. */
  async start(settings: Pick<SettingsStore, "readSettings" | "saveSettings">): Promise<void> {
    this.#settings = settings;
    const stored = await settings.readSettings();
    const { wall, steady } = this.#moment();
    this.#trusted = { wall: Number(stored[TRUSTED_AT]) || wall, steady };
    const doubtedAt = Number(stored[DOUBTED_AT]);
    if (doubtedAt > 0) this.#doubted = { wall: doubtedAt, steady, forMs: Number(stored[DOUBTED_FOR]) };
    void this.check();
    this.#timer = scheduler.setInterval(() => void this.check(), CHECK_EVERY_MS);
    this.#timer.unref();
  }

  readonly now = (): number => {
    const moment = this.#moment();
    const aheadMs = aheadOf(moment, this.#trusted);
    return aheadMs <= DAY_MS ? moment.wall : moment.wall - aheadMs;
  };

  /** The timer calls it. */
  async check(): Promise<void> {
    const moment = this.#moment();
    const earlier = this.#doubted;
    const forMs = earlier && isNear(moment, earlier) ? earlier.forMs + moment.steady - earlier.steady : 0;
    if (isNear(moment, this.#trusted) || forMs >= DAY_MS) {
      this.#trusted = moment;
      this.#doubted = undefined;
      this.#latch.worked();
    } else {
      this.#doubted = { ...moment, forMs };
      this.#latch.failed(undefined);
    }
    // Without it, a later server trusts its clock a day later.
    await this.#store().catch(() => {});
  }

  async stop(): Promise<void> {
    this.#timer?.close();
    await this.check();
  }

  async #store(): Promise<void> {
    await this.#settings?.saveSettings({
      [TRUSTED_AT]: `${this.#trusted.wall}`,
      [DOUBTED_AT]: `${this.#doubted?.wall ?? 0}`,
      [DOUBTED_FOR]: `${this.#doubted?.forMs ?? 0}`,
    });
  }

  #moment(): Moment {
    return { wall: this.clock.now(), steady: this.clock.steadyNow() };
  }
}

/** How much further the machine's clock has moved than the steady clock since. */
function aheadOf(moment: Moment, earlier: Moment): number {
  return moment.wall - earlier.wall - (moment.steady - earlier.steady);
}

function isNear(moment: Moment, earlier: Moment): boolean {
  return Math.abs(aheadOf(moment, earlier)) <= DAY_MS;
}
