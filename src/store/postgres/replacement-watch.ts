import { repeat, type RepeatedWork } from "../../runtime/repeat.ts";
import { scheduler } from "../../runtime/scheduler.ts";

interface ReplacementWatchOptions {
  /** Asks other processes and servers. Resolves to an error if there is a later primary. */
  readonly find: () => Promise<Error | undefined>;
  /** In an outage the primary is looked for anyway. */
  readonly isOutage: () => boolean;
  readonly onReplaced: (cause: Error) => void;
}

/** How often it is found out whether there is a later primary. */
const COMPARE_EVERY_MS = 1_000;
const MAX_COMPARISON_MS = 400;
/**
 * The greatest age of a comparison with which a result is used. A process whose last comparison is older may have been
 * paused, so it compares again first.
 */
const MAX_COMPARISON_AGE_MS = 1_500;

/** Finds out whether another server was promoted, which working connections of this process do not show. */
export class ReplacementWatch {
  readonly #options: ReplacementWatchOptions;
  readonly #comparing: RepeatedWork;
  /** When the last comparison began. */
  #comparedAt = scheduler.now();
  #comparison: Promise<void> | undefined;

  constructor(options: ReplacementWatchOptions) {
    this.#options = options;
    this.#comparing = repeat(COMPARE_EVERY_MS, async () => {
      if (!options.isOutage()) await this.#compare();
      return COMPARE_EVERY_MS;
    });
  }

  /** Compares unless that was done shortly before. */
  compareIfDue(): Promise<void> | undefined {
    return scheduler.now() - this.#comparedAt > MAX_COMPARISON_AGE_MS ? this.#compare() : undefined;
  }

  async close(): Promise<void> {
    await this.#comparing.close();
  }

  async #compare(): Promise<void> {
    const startedAt = scheduler.now();
    this.#comparison ??= this.#reportReplacement().finally(() => {
      this.#comparison = undefined;
    });
    // A slow disk, or a server that does not respond, delays no query.
    await Promise.race([this.#comparison, scheduler.sleep(MAX_COMPARISON_MS)]);
    this.#comparedAt = startedAt;
  }

  async #reportReplacement(): Promise<void> {
    const cause = await this.#options.find();
    if (cause) this.#options.onReplaced(cause);
  }
}
