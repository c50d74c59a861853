import type { Ban, OnBan } from "./rate-limit.ts";

/** Whom a counter that servers share reports bans to. */
export interface BanListeners {
  /** Called for each ban that this server has decided. */
  readonly onBan?: OnBan | undefined;
  /**
   * Called for each other ban that this server sees. Its own is one of them if the response of the counter was lost.
   */
  readonly onEarlierBan?: OnBan | undefined;
}

const MAX_REPORTED_BANS = 10_000;

/** Reports each ban once, although the counter shows it with each request. Times are those of the counter. */
export class BanReporter {
  /** The ends of bans that were reported, by key; the oldest is dropped when there are too many. */
  readonly #ends = new Map<number, number>();

  constructor(private readonly listeners: BanListeners) {}

  report(keyId: number, { bannedAt, bannedUntil }: Ban, isNew: boolean): void {
    if (this.#ends.get(keyId) === bannedUntil) return;
    this.#ends.delete(keyId);
    this.#ends.set(keyId, bannedUntil);
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > MAX_REPORTED_BANS && oldest !== undefined) this.#ends.delete(oldest);
    const { onBan, onEarlierBan } = this.listeners;
    (isNew ? onBan : onEarlierBan)?.(keyId, { bannedAt, bannedUntil });
  }
}
