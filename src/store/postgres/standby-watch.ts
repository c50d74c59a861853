import { repeat, type RepeatedWork } from "../../runtime/repeat.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import type { Replication } from "./replication.ts";

/** Whether commits wait for a synchronous standby that is away. */
export type StandbyChange =
  | ({ readonly state: "waiting" } & Pick<Replication, "synchronousStandbyNames" | "connectedStandbys">)
  | { readonly state: "released"; readonly afterMs: number };

interface StandbyWatchOptions {
  readonly read: () => Promise<Replication>;
  readonly onChange?: ((change: StandbyChange) => void) | undefined;
}

const CHECK_EVERY_MS = 500;
/** A frozen server responds to nothing, and whoever asks is about to report that. */
const MAX_CHECK_MS = 300;

/** The reason why a write failed while commits wait for a standby. */
export function commitsWait(reason: string): string {
  return `commits wait for a synchronous standby (${reason})`;
}

/**
 * Finds out whether commits wait for a synchronous standby. Without one PostgreSQL commits nothing and reports nothing:
 * the commit has no end, and it keeps its locks, so other writes fail at those. PostgreSQL is asked when a write fails
 * so, and then until no commit waits any longer.
 */
export class StandbyWatch {
  readonly #options: StandbyWatchOptions;
  #checking: Promise<boolean> | undefined;
  #waitingSince: number | undefined;
  #following: RepeatedWork | undefined;

  constructor(options: StandbyWatchOptions) {
    this.#options = options;
  }

  /** Resolves to whether commits wait for a standby, and to false if that cannot be known soon. */
  async waits(): Promise<boolean> {
    if (this.#waitingSince !== undefined) return true;
    this.#checking ??= this.#check().finally(() => (this.#checking = undefined));
    return Promise.race([this.#checking, scheduler.sleep(MAX_CHECK_MS).then(() => false)]);
  }

  async close(): Promise<void> {
    await this.#following?.close();
  }

  async #check(): Promise<boolean> {
    const found = await this.#options.read().catch(() => undefined);
    // The outage of the server itself is reported elsewhere.
    if (found === undefined) return this.#waitingSince !== undefined;
    const { waitingCommits, synchronousStandbyNames, connectedStandbys } = found;
    if (waitingCommits > 0) {
      if (this.#waitingSince === undefined) {
        this.#waitingSince = scheduler.now();
        this.#options.onChange?.({ state: "waiting", synchronousStandbyNames, connectedStandbys });
        this.#following = repeat(CHECK_EVERY_MS, async () => {
          await this.#check();
          return CHECK_EVERY_MS;
        });
      }
      return true;
    }
    if (this.#waitingSince !== undefined) {
      const afterMs = Math.round(scheduler.now() - this.#waitingSince);
      this.#waitingSince = undefined;
      void this.#following?.close();
      this.#options.onChange?.({ state: "released", afterMs });
    }
    return false;
  }
}
