import { Unavailable } from "../api/errors.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { KeyStore } from "../domain/ports/keys.ts";
import type { QuotaStore, RateLimiter } from "../domain/ports/rate-limiter.ts";
import { canUnban, isBanned, type Quota, type Subject, unban } from "../domain/rate-limit.ts";

/**
 * What a server has stored of the quotas in its memory, for other processes. A running server stores each change
 * within about a second.
 */
export class StoredQuotas implements Pick<RateLimiter, "quota" | "bannedKeys" | "unban" | "close"> {
  /**
   * The quotas of banned keys, each undefined until it is asked for. Every page of a list asks for all of them, and
   * finding the banned keys takes a read of the whole file. A list of 100,000 keys, of which 1,000 are banned, takes
   * 4 s of processor time, and 8 s if only the identifiers are kept.
   */
  #banned: Map<number, Quota | undefined> | undefined;

  /** Closing the quotas closes the store. */
  constructor(
    private readonly store: QuotaStore,
    private readonly keys: Pick<KeyStore, "getKey">,
    private readonly clock: Pick<Clock, "now">,
  ) {}

  async quota(subject: Subject): Promise<Quota | undefined> {
    const id = Number(subject.id);
    return this.#banned?.get(id) ?? this.#read(subject, id);
  }

  async #read(subject: Subject, id: number): Promise<Quota | undefined> {
    const quota = this.store.find(subject);
    if (quota === undefined || !canUnban(quota)) return quota;
    const unbannedAt = (await this.keys.getKey(id))?.unbannedAt;
    // A running server may have written the ban again before it saw the unban.
    if (unbannedAt !== undefined) unban(quota, unbannedAt);
    if (this.#banned?.has(id)) this.#banned.set(id, quota);
    return quota;
  }

  bannedKeys(): readonly number[] {
    this.#banned ??= new Map(this.#findBanned().map((id) => [id, undefined]));
    return [...this.#banned.keys()];
  }

  #findBanned(): number[] {
    const now = this.clock.now();
    const banned: number[] = [];
    for (const [{ kind, id }, quota] of this.store.load())
      if (kind === "key" && isBanned(quota, now)) banned.push(id);
    return banned;
  }

  /** Running servers also unban the key when they see the change of it; this is for the server that starts next. */
  unban(subject: Subject): void {
    this.#banned = undefined;
    try {
      const quota = this.store.find(subject);
      if (quota === undefined) return;
      unban(quota, Infinity);
      this.store.save([[subject, quota]]);
    } catch (error) {
      // The store is busy, so a server is running, and it unbans the key itself.
      if (!(error instanceof Unavailable)) throw error;
    }
  }

  async close(): Promise<void> {
    this.store.close();
  }
}
