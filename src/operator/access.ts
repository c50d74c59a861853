import { TokenBucket } from "../runtime/token-bucket.ts";
import type { OperatorAccess } from "../domain/operators.ts";
import type { Clock, OperatorStore } from "../domain/ports.ts";

/** An operator who is revoked, and a session that has ended on another server, are out after so long. */
const FRESH_MS = 500;
/** So long what was last read goes on while it cannot be read: an operator may be revoked by then. */
const MAX_AGE_MS = 60_000;
/** What is not known may be new: so often the database is asked at once. Anybody can send what is not known. */
const EXTRA_READS = { max: 20, perSecond: 20 };

/**
 * All that lets operators in, as it was at most 500 ms ago. There are few of them, so that all are read together: wrong
 * tokens, however many, cost no query each. In an outage of the database, what was last read goes on for a minute.
 */
export class AccessReader {
  readonly #store: Pick<OperatorStore, "readAccess">;
  readonly #now: () => number;
  readonly #extraReads: TokenBucket;
  #last: { readonly access: OperatorAccess; readonly number: number; readonly at: number } | undefined;
  #reading: Promise<OperatorAccess> | undefined;
  /** Reads that have begun so far. */
  #reads = 0;
  /** What was read by then is not fresh. */
  #readsAtChange = 0;

  constructor(store: Pick<OperatorStore, "readAccess">, clock: Pick<Clock, "steadyNow">) {
    this.#store = store;
    this.#now = () => clock.steadyNow();
    this.#extraReads = new TokenBucket({ ...EXTRA_READS, now: this.#now });
  }

  /** After a change on this server. */
  changed(): void {
    this.#readsAtChange = this.#reads;
  }

  /**
   * What `pick` finds; undefined if there is no such thing now. "unknown" if it cannot be told for the moment. Throws
   * Unavailable if only the database could tell.
   */
  async find<T>(pick: (access: OperatorAccess) => T | undefined): Promise<T | undefined | "unknown"> {
    const readsBefore = this.#reads;
    const found = pick(await this.#current());
    if (found !== undefined || (this.#last?.number ?? 0) > readsBefore) return found;
    if (!this.#extraReads.take()) return "unknown";
    // One that has begun may have missed it.
    await this.#reading?.catch(() => {});
    return pick(await this.#read());
  }

  /** What `pick` finds in what was read at most 500 ms ago. */
  async findRead<T>(pick: (access: OperatorAccess) => T | undefined): Promise<T | undefined> {
    return pick(await this.#current());
  }

  async #current(): Promise<OperatorAccess> {
    const last = this.#last;
    const isFresh = last && last.number > this.#readsAtChange && this.#now() - last.at < FRESH_MS;
    if (isFresh) return last.access;
    // One that began before a change may have missed it.
    if (this.#reading && this.#reads <= this.#readsAtChange) await this.#reading.catch(() => {});
    return this.#read().catch((error: unknown) => {
      if (last === undefined || this.#now() - last.at >= MAX_AGE_MS) throw error;
      return last.access;
    });
  }

  #read(): Promise<OperatorAccess> {
    return (this.#reading ??= this.#readNow().finally(() => (this.#reading = undefined)));
  }

  async #readNow(): Promise<OperatorAccess> {
    const [number, at] = [++this.#reads, this.#now()];
    const access = await this.#store.readAccess();
    this.#last = { access, number, at };
    return access;
  }
}
