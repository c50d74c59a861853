import { MINUTE_MS } from "../../text/time-units.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import type { OperatorAccess } from "../../domain/operators.ts";
import type { OperatorStore } from "../../domain/ports/operators.ts";
import type { Clock } from "../../domain/ports/clock.ts";

/**
 * The greatest age of what was read. After a revocation or a sign-out on another server, access ends within this time.
 */
const FRESH_MS = 500;
/**
 * How long the last read remains valid while the database is unavailable. An operator may have been revoked meanwhile.
 */
const MAX_AGE_MS = MINUTE_MS;
/**
 * The least time between a read and the next one for what is not known, which may be new. Anybody can send unknown
 * tokens. All who wait share the read, so nobody uses up what others need.
 */
const BETWEEN_READS_MS = 50;

/**
 * The tokens, sessions and codes of operators, as they were at most 500 ms ago. They are few, so all of them are read
 * together, and a wrong token costs no query of its own. In an outage of the database, the last read remains valid for
 * a minute, unless this server has changed an operator since.
 */
export class AccessReader {
  readonly #store: Pick<OperatorStore, "readAccess">;
  readonly #now: () => number;
  readonly #sleep: (ms: number) => Promise<void>;
  #last: { readonly access: OperatorAccess; readonly number: number; readonly at: number } | undefined;
  #reading: Promise<OperatorAccess> | undefined;
  /** The read that begins soon. */
  #soon: Promise<OperatorAccess> | undefined;
  /** When the last read began. */
  #readAt = -Infinity;
  /** The number of reads that have begun so far. */
  #reads = 0;
  /** The value of `#reads` at the last change. The reads up to this one are outdated. */
  #readsAtChange = 0;

  constructor(
    store: Pick<OperatorStore, "readAccess">,
    clock: Pick<Clock, "steadyNow">,
    sleep = (ms: number) => scheduler.sleep(ms),
  ) {
    this.#store = store;
    this.#now = () => clock.steadyNow();
    this.#sleep = sleep;
  }

  /** Called after a change on this server. Reads again, so that an outage which begins later finds what was read. */
  changed(): void {
    this.#readsAtChange = this.#reads;
    void this.#current().catch(() => {});
  }

  /**
   * Returns what `pick` finds, if need be in a read that begins later, or undefined if it does not exist. Throws
   * Unavailable if that needs the database and it is unavailable.
   */
  async find<T>(pick: (access: OperatorAccess) => T | undefined): Promise<T | undefined> {
    const readsBefore = this.#reads;
    const found = pick(await this.#current());
    if (found !== undefined || (this.#last?.number ?? 0) > readsBefore) return found;
    return pick(await (this.#soon ??= this.#readSoon()));
  }

  /** Returns what `pick` finds, without another read for what is unknown. */
  async findKnown<T>(pick: (access: OperatorAccess) => T | undefined): Promise<T | undefined> {
    return pick(await this.#current());
  }

  async #current(): Promise<OperatorAccess> {
    const fresh = this.#lastWithin(FRESH_MS);
    if (fresh) return fresh;
    // A read that began before the change may have missed it.
    if (this.#reading && this.#reads <= this.#readsAtChange) await this.#reading.catch(() => {});
    return this.#read().catch((error: unknown) => {
      const last = this.#lastWithin(MAX_AGE_MS);
      if (last === undefined) throw error;
      return last;
    });
  }

  /** What was read before a change on this server is not used: it may show an operator who is revoked. */
  #lastWithin(ms: number): OperatorAccess | undefined {
    const last = this.#last;
    const isUsable = last && last.number > this.#readsAtChange && this.#now() - last.at < ms;
    return isUsable ? last.access : undefined;
  }

  async #readSoon(): Promise<OperatorAccess> {
    const waitMs = this.#readAt + BETWEEN_READS_MS - this.#now();
    await (waitMs > 0 ? this.#sleep(waitMs) : undefined);
    // A read that is in progress may have missed it.
    while (this.#reading) await this.#reading.catch(() => {});
    this.#soon = undefined;
    return this.#read();
  }

  #read(): Promise<OperatorAccess> {
    return (this.#reading ??= this.#readNow().finally(() => (this.#reading = undefined)));
  }

  async #readNow(): Promise<OperatorAccess> {
    const [number, at] = [++this.#reads, this.#now()];
    this.#readAt = at;
    const access = await this.#store.readAccess();
    this.#last = { access, number, at };
    return access;
  }
}
