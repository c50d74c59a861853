import { MINUTE_MS } from "../text/time-units.ts";
import type { ValueStore } from "../domain/ports/stored-values.ts";
import { LAST_BACKUP } from "../domain/stored-values.ts";
import { repeat } from "../runtime/repeat.ts";

const READ_EVERY_MS = MINUTE_MS;

/** Reads when the last backup was made, once a minute. A command records it in the database. */
export class LastBackup {
  #at: number | undefined;
  readonly #reading = repeat(0, async () => {
    try {
      const { [LAST_BACKUP]: saved } = await this.storedValues.readValues();
      this.#at = saved === undefined ? undefined : Number.parseInt(saved, 10);
    } catch {
      // The outage of the database is in the log. The last value stays.
    }
    return READ_EVERY_MS;
  });

  constructor(private readonly storedValues: Pick<ValueStore, "readValues">) {}

  /** The time in milliseconds since the epoch; undefined if none is recorded. */
  get at(): number | undefined {
    return this.#at;
  }

  async close(): Promise<void> {
    await this.#reading.close();
  }
}
