import type { ApiKey, KeySecret } from "../../domain/api-keys.ts";
import { hintPartOf, type KeyFilter, matcherOf } from "../../domain/key-filter.ts";
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
import { requestsOf } from "../../domain/usage-history.ts";
import { forEachInTurns, giveWay, Turn } from "../../event-loop.ts";
import { FirstItems } from "../../first-items.ts";
import { AllKeys } from "./all-keys.ts";
import { FilteredApiKey } from "./filtered-api-key.ts";

export interface KeyDirectoryOptions {
  readonly keys: KeyStore;
  readonly rateLimiter: Pick<RateLimiter, "usage" | "bannedKeys">;
  readonly usageHistory: Pick<UsageHistoryStore, "lastUsed" | "usageByKey" | "lastDeprecatedUse">;
  readonly audit: Pick<AuditStore, "listAudit">;
  readonly clock: Clock;
  readonly plans: Plans;
  readonly ban: BanRules;
  /** The longest that a ban can last. */
  readonly maxBanMs: number;
  /** Whether the counts can be read now. */
  readonly canReadUsage: () => boolean;
}

export type KeySort = "id" | "name" | "plan" | "createdAt" | "lastUsedAt" | "usedToday";

export interface KeyListQuery {
  readonly filter: KeyFilter;
  /** Only keys that have called a deprecated operation since. */
  readonly deprecatedSince?: number | undefined;
  readonly sort: KeySort;
  readonly isDescending: boolean;
  /** The last key of the page before. */
  readonly after: number | undefined;
  readonly limit: number;
}

export interface KeyList {
  readonly items: readonly KeyView[];
  /** Of all pages. */
  readonly total: number;
  readonly hasMore: boolean;
}

/** Valkey decides requests meanwhile: a few reads at a time do not delay them. */
const READS_AT_A_TIME = 16;
/** Of keys that are looked up one by one; for more, all keys are read. */
const MAX_LOOK_UPS = 200;
const UNAVAILABLE: UsageUnavailable = { reason: "the rate limiter is unavailable" };

/** API keys with everything that operators see of them, which comes from four places. */
export class KeyDirectory {
  readonly #options: KeyDirectoryOptions;
  readonly #all: AllKeys;

  constructor(options: KeyDirectoryOptions) {
    this.#options = options;
    this.#all = new AllKeys(options.keys);
  }

  /** Those that exist, in any order. */
  async keysOf(ids: readonly number[]): Promise<readonly ApiKey[]> {
    if (ids.length <= MAX_LOOK_UPS) {
      const found = await Promise.all(ids.map((id) => this.#options.keys.getKey(id)));
      return found.flatMap((key) => key ?? []);
    }
    const asked = new Set(ids);
    return (await this.#all.keys()).filter(({ id }) => asked.has(id));
  }

  async view(key: ApiKey): Promise<KeyView> {
    const [view] = await this.views([key]);
    if (view === undefined) throw new Error("one key has one view");
    return view;
  }

  /** In the order of the keys. */
  async views(keys: readonly ApiKey[]): Promise<readonly KeyView[]> {
    const ids = keys.map(({ id }) => id);
    await giveWay();
    // One after the other: together they would be one long turn.
    const turn = new Turn();
    const usage = await this.#usageOf(ids);
    if (turn.isOver) await turn.next();
    const secrets = await this.#options.keys.listSecrets(ids);
    if (turn.isOver) await turn.next();
    const lastUsed = await this.#options.usageHistory.lastUsed(ids);
    const views: KeyView[] = [];
    for (const key of keys) {
      if (turn.isOver) await turn.next();
      views.push(this.#view(key, { usage, secrets, lastUsed }));
    }
    return views;
  }

  async list(query: KeyListQuery): Promise<KeyList> {
    const { filter, deprecatedSince, sort, isDescending, after, limit } = query;
    const all = await this.#keysWith(deprecatedSince);
    const isMatch = await this.#matcher(filter);
    const ascending = await this.#comparison(sort);
    const compare = isDescending ? reverse(ascending) : ascending;
    const last = after === undefined ? undefined : all.find(({ id }) => id === after);
    const page = new FirstItems(limit, compare);
    let total = 0;
    let following = 0;
    await forEachInTurns(all, (key) => {
      if (!isMatch(key)) return;
      total++;
      // The last key of the page before need not match any more.
      if (last !== undefined && compare(key, last) <= 0) return;
      following++;
      page.add(key);
    });
    return { items: await this.views(page.items), total, hasMore: following > limit };
  }

  /** All keys, or those that have called a deprecated operation since. */
  async #keysWith(deprecatedSince: number | undefined): Promise<readonly ApiKey[]> {
    if (deprecatedSince === undefined) return this.#all.keys();
    const calls = await this.#options.usageHistory.lastDeprecatedUse(deprecatedSince);
    return (await this.#all.keys()).filter(({ id }) => calls.has(id));
  }

  /** Those whose bans end first come first. */
  async banned(limit: number): Promise<KeyList> {
    const bannedUntil = await this.#bannedUntil();
    const now = this.#options.clock.now();
    const banned = (await this.keysOf([...bannedUntil.keys()]))
      .filter((key) => stateOf(key, true, now) === "banned")
      .toSorted(byNumber(({ id }) => bannedUntil.get(id) ?? NEVER));
    return {
      items: await this.views(banned.slice(0, limit)),
      total: banned.length,
      hasMore: banned.length > limit,
    };
  }

  /** Reads from each of the places only what the filter needs. */
  async #matcher(filter: KeyFilter): Promise<(key: ApiKey) => boolean> {
    if (Object.values(filter).every((condition) => condition === undefined)) return () => true;
    const { keys, usageHistory, clock } = this.#options;
    const now = clock.now();
    const hintPart = hintPartOf(filter);
    const [bannedUntil, withHint, lastUsed] = await Promise.all([
      filter.state === undefined ? new Map<number, number>() : this.#bannedUntil(),
      hintPart === undefined ? new Set<number>() : keys.findByHint(hintPart, now),
      filter.unusedSince === undefined ? new Map<number, number>() : usageHistory.lastUsed(),
    ]);
    const known = { bannedUntil, withHint, lastUsed, now };
    const isMatch = matcherOf(filter);
    return (key) => isMatch(new FilteredApiKey(key, known));
  }

  /** Ascending. Keys that compare as equal are in the order of their identifiers. */
  async #comparison(sort: KeySort): Promise<Comparison> {
    const { usageHistory, clock } = this.#options;
    if (sort === "lastUsedAt") {
      const lastUsed = await usageHistory.lastUsed();
      return byNumber(({ id }) => lastUsed.get(id) ?? 0);
    }
    if (sort === "usedToday") {
      const now = clock.now();
      const totals = await usageHistory.usageByKey({
        by: "day",
        since: now,
        until: now,
        isUnordered: true,
      });
      const requests = new Map<number, number>();
      await forEachInTurns(totals, (counts) => void requests.set(counts.keyId, requestsOf(counts)));
      return byNumber(({ id }) => requests.get(id) ?? 0);
    }
    return COMPARISONS[sort];
  }

  #view(
    key: ApiKey,
    known: {
      readonly usage: KeyUsage | UsageUnavailable;
      readonly secrets: ReadonlyMap<number, readonly KeySecret[]>;
      readonly lastUsed: ReadonlyMap<number, number>;
    },
  ): KeyView {
    const { plans, ban, clock } = this.#options;
    return keyView(key, { plans, ban, now: clock.now(), ...known });
  }

  async #usageOf(ids: readonly number[]): Promise<KeyUsage | UsageUnavailable> {
    const usages = new Map<number, Usage>();
    const { rateLimiter, canReadUsage } = this.#options;
    const turn = new Turn();
    for (let start = 0; start < ids.length; start += READS_AT_A_TIME) {
      if (turn.isOver) await turn.next();
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
    await giveWay();
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

const MAX_BANS = 10_000;

type Comparison = (a: ApiKey, b: ApiKey) => number;

const byNumber =
  (of: (key: ApiKey) => number): Comparison =>
  (a, b) =>
    of(a) - of(b) || a.id - b.id;
const byText =
  (of: (key: ApiKey) => string): Comparison =>
  (a, b) =>
    compareText(of(a), of(b)) || a.id - b.id;

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const COMPARISONS = {
  id: byNumber(({ id }) => id),
  name: byText(({ name }) => name.toLowerCase()),
  plan: byText(({ plan }) => plan),
  createdAt: byNumber(({ createdAt }) => createdAt),
} as const satisfies Partial<Record<KeySort, Comparison>>;

const reverse =
  (compare: Comparison): Comparison =>
  (a, b) =>
    compare(b, a);
