import type { SQL } from "bun";
import { Overloaded, Unavailable } from "../../api/errors.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import type { ConnectionPool, ConnectionPoolOptions } from "./connection-pool.ts";
import { isLocked } from "./errors.ts";
import { commitsWait } from "./standby-watch.ts";

const ROW_RETRY_MS = 10;

/**
 * Runs transactions that lock rows with NOWAIT. The transactions of one row take turns, so that only one at a time asks
 * for the lock.
 */
export class RowTransactions {
  /** For each row, the end of its last transaction. */
  readonly #ends = new Map<string, Promise<void>>();
  #queued = 0;

  constructor(
    private readonly pool: Pick<ConnectionPool, "transaction">,
    private readonly options: Required<
      Pick<ConnectionPoolOptions, "maxQueued" | "timeoutMs" | "waitsForStandby">
    >,
  ) {}

  /** If a row is locked, the transaction waits here, where it holds nothing that others need. */
  async run<T>(row: string, work: (sql: SQL) => Promise<T>): Promise<T> {
    const { maxQueued, timeoutMs, waitsForStandby } = this.options;
    if (this.#queued >= maxQueued) throw new Overloaded(`${maxQueued} writes wait for locked rows`);
    const deadline = scheduler.now() + timeoutMs / 2;
    const [earlier, end] = [this.#ends.get(row), Promise.withResolvers<void>()];
    this.#ends.set(row, end.promise);
    this.#queued++;
    try {
      await earlier;
      while (scheduler.now() <= deadline) {
        try {
          return await this.pool.transaction(work);
        } catch (error) {
          if (!(error instanceof Unavailable && isLocked(error.cause))) throw error;
        }
        await scheduler.sleep(ROW_RETRY_MS);
      }
      const reason = `the ${row} is locked`;
      throw new Unavailable((await waitsForStandby()) ? commitsWait(reason) : reason);
    } finally {
      this.#queued--;
      if (this.#ends.get(row) === end.promise) this.#ends.delete(row);
      end.resolve();
    }
  }
}
