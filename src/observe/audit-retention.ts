import type { AuditStore, Clock } from "../domain/ports.ts";

const DELETE_EVERY_MS = 600_000;
/** Between two transactions while there are more old entries. */
const PAUSE_MS = 100;

export interface AuditRetentionOptions {
  readonly audit: Pick<AuditStore, "deleteAudit">;
  readonly clock: Pick<Clock, "now">;
  readonly retentionMs: number;
  readonly onError: (error: unknown) => void;
  readonly pauseMs?: number;
}

/** Deletes old entries of the audit trail, some at a time, so that no request waits for long. */
export class AuditRetention {
  readonly #options: AuditRetentionOptions;
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: AuditRetentionOptions) {
    this.#options = options;
    this.#schedule(PAUSE_MS);
  }

  /** Deletes all entries that are too old. An error ends it until the next time. */
  async run(): Promise<void> {
    const { audit, clock, retentionMs, onError, pauseMs = PAUSE_MS } = this.#options;
    try {
      while (!this.#isClosed && (await audit.deleteAudit(clock.now() - retentionMs)))
        await Bun.sleep(pauseMs);
    } catch (error) {
      onError(error);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#running = this.run().finally(() => {
        if (!this.#isClosed) this.#schedule(DELETE_EVERY_MS);
      });
    }, ms).unref();
  }
}
