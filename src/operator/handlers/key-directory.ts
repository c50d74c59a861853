import type { ApiKey } from "../../domain/api-keys.ts";
import type { KeyListQuery } from "../../domain/key-list.ts";
import {
  type KeyUsage,
  type KeyView,
  keyView,
  stateOf,
  type UsageUnavailable,
} from "../../domain/key-view.ts";
import type { Plans } from "../../domain/plans.ts";
import type { AuditStore, Clock, KeyStore, RateLimiter, UsageHistoryStore } from "../../domain/ports.ts";
import { type BanRules, NEVER, type Usage } from "../../domain/rate-limit.ts";
import { yieldToEventLoop, TimeSlice } from "../../event-loop.ts";

interface KeyDirectoryOptions {
  readonly keys: KeyStore;
  readonly rateLimiter: Pick<RateLimiter, "usage" | "bannedKeys">;
  readonly usageHistory: Pick<UsageHistoryStore, "lastUsed">;
  readonly audit: Pick<AuditStore, "listAudit">;
  readonly clock: Clock;
  readonly plans: Plans;
  readonly ban: BanRules;
  /** The longest that a ban can last. */
  readonly maxBanMs: number;
  /** Whether the counts can be read now. */
  readonly canReadUsage: () => boolean;
}

export interface KeyList {
  readonly items: readonly KeyView[];
  /** Of all pages. */
  readonly total: number;
  readonly hasMore: boolean;
}

/** Valkey decides requests meanwhile: a few reads at a time do not delay them. */
const READS_AT_A_TIME = 16;
const MAX_BANS = 10_000;
const UNAVAILABLE: UsageUnavailable = { reason: "the rate limiter is unavailable" };

/** API keys with everything that operators see of them, which comes from four places. */
export class KeyDirectory {
  readonly #options: KeyDirectoryOptions;

  constructor(options: KeyDirectoryOptions) {
    this.#options = options;
  }

  async view(key: ApiKey): Promise<KeyView> {
    const [view] = await this.views([key]);
    if (view === undefined) throw new Error("one key has one view");
    return view;
  }

  /** In the order of the keys. */
  async views(keys: readonly ApiKey[]): Promise<readonly KeyView[]> {
    const { plans, ban, clock } = this.#options;
    const ids = keys.map(({ id }) => id);
    await yieldToEventLoop();
    // One after the other: together they would be one long time slice.
    const timeSlice = new TimeSlice();
    const usage = await this.#usageOf(ids);
    if (timeSlice.isOver) await timeSlice.next();
    const secrets = await this.#options.keys.listSecrets(ids);
    if (timeSlice.isOver) await timeSlice.next();
    const lastUsed = await this.#options.usageHistory.lastUsed(ids);
    const views: KeyView[] = [];
    for (const key of keys) {
      if (timeSlice.isOver) await timeSlice.next();
      views.push(keyView(key, { plans, ban, now: clock.now(), usage, secrets, lastUsed }));
    }
    return views;
  }

  async list(query: Omit<KeyListQuery, "now" | "bannedKeys">): Promise<KeyList> {
    const { keys, clock } = this.#options;
    const state = query.filter?.state;
    const bannedKeys =
      state === "banned" || state === "active" ? [...(await this.#bannedUntil()).keys()] : [];
    const page = await keys.listKeys({ ...query, now: clock.now(), bannedKeys });
    return { ...page, items: await this.views(page.items) };
  }

  /** Those whose bans end first come first. */
  async banned(limit: number): Promise<KeyList> {
    const bannedUntil = await this.#bannedUntil();
    const now = this.#options.clock.now();
    const endOf = ({ id }: ApiKey) => bannedUntil.get(id) ?? NEVER;
    const banned = (await this.#options.keys.getKeys([...bannedUntil.keys()]))
      .filter((key) => stateOf(key, true, now) === "banned")
      .toSorted((a, b) => endOf(a) - endOf(b) || a.id - b.id);
    return {
      items: await this.views(banned.slice(0, limit)),
      total: banned.length,
      hasMore: banned.length > limit,
    };
  }

  async #usageOf(ids: readonly number[]): Promise<KeyUsage | UsageUnavailable> {
    const usages = new Map<number, Usage>();
    const { rateLimiter, canReadUsage } = this.#options;
    const timeSlice = new TimeSlice();
    for (let start = 0; start < ids.length; start += READS_AT_A_TIME) {
      if (timeSlice.isOver) await timeSlice.next();
      if (!canReadUsage()) return UNAVAILABLE;
      const some = ids.slice(start, start + READS_AT_A_TIME);
      const read = await Promise.all(some.map((id) => rateLimiter.usage({ kind: "key", id })));
      some.forEach((id, i) => {
        const usage = read[i];
        if (usage) usages.set(id, usage);
      });
    }
    return canReadUsage() ? usages : UNAVAILABLE;
  }

  /** When the bans end that have not ended, by key. */
  async #bannedUntil(): Promise<ReadonlyMap<number, number>> {
    const { rateLimiter, clock } = this.#options;
    await yieldToEventLoop();
    const usage = await this.#usageOf(rateLimiter.bannedKeys() ?? (await this.#bannedLately()));
    const ends = new Map<number, number>();
    if ("reason" in usage) return ends;
    const now = clock.now();
    for (const [id, { bannedUntil }] of usage) if (now < bannedUntil) ends.set(id, bannedUntil);
    return ends;
  }

  /** Valkey would have to read every key: the audit trail has the bans. */
  async #bannedLately(): Promise<readonly number[]> {
    const { audit, clock, maxBanMs } = this.#options;
    const since = clock.now() - maxBanMs;
    const { items } = await audit.listAudit({ action: "key.banned", since, limit: MAX_BANS });
    return [...new Set(items.flatMap(({ target }) => (target ? Number(target.id) : [])))];
  }
}
