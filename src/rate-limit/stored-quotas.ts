import { Unavailable } from "../api/errors.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { QuotaStore, RateLimiter } from "../domain/ports/rate-limiter.ts";
import { canUnban, isBanned, type KeySubject, type Quota, unban } from "../domain/rate-limit.ts";

export interface StoredQuotasOptions {
  /** Opens the store; undefined if no server has stored any quota. */
  readonly open: () => QuotaStore | undefined;
  readonly keys: Pick<KeyStore, "getKey">;
  readonly clock: Pick<Clock, "now">;
  /** Called once if the quotas cannot be read. Returns the error of an unban. */
  readonly onProblem: (error: unknown) => Error;
}

/**
 * What a server has stored of the quotas in its memory, for other processes. A running server stores each change
 * within about a second. The store is opened when it is used. While it cannot be read, nothing is known of any key.
 */
export class StoredQuotas implements Pick<
  RateLimiter<KeySubject>,
  "quota" | "bannedKeys" | "unban" | "close"
> {
  #store: QuotaStore | undefined;
  #problem: Error | undefined;
  /**
   * The quotas of banned keys, each undefined until it is asked for. Every page of a list asks for all of them, and
   * finding the banned keys takes a read of the whole file. A list of 100,000 keys, of which 1,000 are banned, takes
   * 4 s of processor time, and 8 s if only the identifiers are kept.
   */
  #banned: Map<number, Quota | undefined> | undefined;

  constructor(private readonly options: StoredQuotasOptions) {}

  get isAvailable(): boolean {
    return this.#problem === undefined;
  }

  async quota({ kind, id }: KeySubject): Promise<Quota | undefined> {
    const known = this.#banned?.get(id);
    if (known !== undefined) return known;
    const quota = this.#read((store) => store.find({ kind, id }));
    if (quota === undefined || !canUnban(quota)) return quota;
    const unbannedAt = (await this.options.keys.getKey(id))?.unbannedAt;
    // A running server may have written the ban again before it saw the unban.
    if (unbannedAt !== undefined) unban(quota, unbannedAt);
    if (this.#banned?.has(id)) this.#banned.set(id, quota);
    return quota;
  }

  bannedKeys(): readonly number[] {
    const now = this.options.clock.now();
    this.#banned ??= this.#read((store) => {
      const banned = new Map<number, undefined>();
      for (const [{ kind, id }, quota] of store.load())
        if (kind === "key" && isBanned(quota, now)) banned.set(id, undefined);
      return banned;
    });
    return [...(this.#banned?.keys() ?? [])];
  }

  /** Running servers also unban the key when they see the change of it; this is for the server that starts next. */
  unban(subject: KeySubject): void {
    if (this.#problem !== undefined) throw this.#problem;
    this.#banned = undefined;
    try {
      const store = this.#opened();
      const quota = store?.find(subject);
      if (quota === undefined) return;
      unban(quota, Infinity);
      store?.save([[subject, quota]]);
    } catch (error) {
      // The store is busy, so a server is running, and it unbans the key itself.
      if (!(error instanceof Unavailable)) throw error;
    }
  }

  #read<T>(work: (store: QuotaStore) => T): T | undefined {
    if (this.#problem !== undefined) return undefined;
    try {
      const store = this.#opened();
      return store && work(store);
    } catch (error) {
      this.#problem = this.options.onProblem(error);
      return undefined;
    }
  }

  #opened(): QuotaStore | undefined {
    return (this.#store ??= this.options.open());
  }

  async close(): Promise<void> {
    this.#store?.close();
  }
}
