import { type ApiKey, type KeySecret, keyState } from "../../domain/api-keys.ts";
import type { KeyList, KeyListQuery } from "../../domain/key-lists.ts";
import { limitsOf } from "../../domain/plans.ts";
import { shownValuesOf } from "../../domain/fields.ts";
import { KEY_FIELDS } from "../../domain/key-fields.ts";
import {
  expire,
  isBanned,
  NEVER,
  newQuota,
  type Quota,
  usedPercent,
  type Window,
} from "../../domain/rate-limit.ts";
import { DAY_MS, MINUTE_MS } from "../../text/time-units.ts";
import type { KeyTotals } from "../../domain/usage-history.ts";
import { reuseByCost } from "../../runtime/reuse-by-cost.ts";
import { yieldToEventLoop } from "../../runtime/scheduler.ts";
import { formatOptionalTime, formatTime } from "../../text/formatting.ts";
import type { Key } from "../operations.ts";
import type { Services } from "../services.ts";

/** The number of quotas that are read at a time: so few reads do not delay requests that need a decision meanwhile. */
const READS_AT_A_TIME = 16;
const MAX_BANS = 10_000;
const MAX_WINDOWS = 10_000;
const WINDOWS_AT_A_TIME = 500;

/** A key shows the limits that apply, and its state instead of the time when it was disabled. */
const { perMinute: _perMinute, perDay: _perDay, disabledAt: _disabledAt, ...SHOWN_FIELDS } = KEY_FIELDS;

interface KeyViewQuery extends Omit<KeyListQuery, "now" | "bannedKeys" | "usedToday"> {
  /** Selects only keys that have used at least so much of a window. */
  readonly usedPercent?: number | undefined;
}

/** How much of its windows a key has used. */
interface KeyWindows {
  readonly id: number;
  readonly usedToday: number;
  /** The larger share of the two windows. */
  readonly percent: number;
}

export interface KeyViewServices extends Pick<
  Services,
  "keys" | "usageHistory" | "audit" | "rateLimiter" | "policy" | "clock"
> {
  /** Whether the quotas can be read from the rate limiter now. */
  readonly limiterMonitor: Pick<Services["limiterMonitor"], "isAvailable">;
}

/** API keys with everything that operators see, which comes from four sources. */
export class KeyViews {
  constructor(private readonly services: KeyViewServices) {}

  async view(key: ApiKey): Promise<Key> {
    const [view] = await this.views([key]);
    if (view === undefined) throw new Error("one key has one view");
    return view;
  }

  /** Returns the views in the order of the keys. */
  async views(keys: readonly ApiKey[]): Promise<readonly Key[]> {
    const ids = keys.map(({ id }) => id);
    const quotas = await this.#quotasOf(ids);
    const secrets = await this.services.keys.listSecrets(ids);
    const lastUsed = await this.services.usageHistory.lastUsed(ids);
    return keys.map((key) => ({
      ...this.#viewOf(key, quotas && (quotas.get(key.id) ?? newQuota()), secrets.get(key.id)),
      lastUsedAt: formatOptionalTime(lastUsed.get(key.id)),
    }));
  }

  /** The view of a key. `current` is undefined while it cannot be read. */
  #viewOf(key: ApiKey, current?: Quota, secrets: readonly KeySecret[] = []): Omit<Key, "lastUsedAt"> {
    const { policy, clock } = this.services;
    const { plans, ban } = policy.current;
    const now = clock.now();
    const { access, createdAt, expiresAt, revokedAt, ...shown } = shownValuesOf(SHOWN_FIELDS, key);
    const limits = limitsOf(key.plan, key.limits, plans);
    if (current) expire(current, now, ban);
    const bannedUntil = current && isBanned(current, now) ? current.bannedUntil : undefined;
    return {
      ...shown,
      limits,
      access,
      state: keyState(key, { isBanned: bannedUntil !== undefined, now }),
      secrets: secrets.filter(({ validUntil = Infinity }) => now < validUntil).map(secretView),
      usage: current
        ? {
            minute: windowView(current.minute, limits.perMinute, MINUTE_MS),
            day: windowView(current.day, limits.perDay, DAY_MS),
          }
        : null,
      strikes: current ? Math.max(current.minute.strikes, current.day.strikes) : null,
      bannedUntil: formatOptionalTime(bannedUntil),
      createdAt,
      expiresAt,
      revokedAt,
    };
  }

  async list({ usedPercent, ...query }: KeyViewQuery): Promise<KeyList<Key>> {
    const { keys, clock } = this.services;
    const bannedKeys = [...(await this.#bannedUntil()).keys()];
    const windows = usedPercent !== undefined || query.sort === "usedToday" ? await this.#readWindows() : [];
    const close = usedPercent && windows.filter((each) => each.percent >= usedPercent);
    const page = await keys.listKeys({
      ...query,
      filter: { ...query.filter, ...(close && { ids: close.map(({ id }) => id) }) },
      now: clock.now(),
      bannedKeys,
      usedToday: windows.map(({ id, usedToday }) => [id, usedToday]),
    });
    return { ...page, items: await this.views(page.items) };
  }

  /** The windows of the keys with the most requests of the last day: another key has no window open. */
  readonly #readWindows = reuseByCost(async () => {
    const { clock, usageHistory } = this.services;
    const now = clock.now();
    const day = { by: "day", since: now - DAY_MS, until: now, limit: MAX_WINDOWS } as const;
    return this.windowsOf(await usageHistory.usageByKey(day));
  });

  /**
   * How much of their windows keys have used, at most 10,000 of them. Only keys of the Enterprise plan are read, for
   * their limits.
   */
  async windowsOf(used: readonly Pick<KeyTotals, "keyId" | "plan">[]): Promise<readonly KeyWindows[]> {
    const { keys, policy } = this.services;
    const windows: KeyWindows[] = [];
    for (let start = 0; start < Math.min(used.length, MAX_WINDOWS); start += WINDOWS_AT_A_TIME) {
      const some = used.slice(start, start + WINDOWS_AT_A_TIME);
      const custom = await keys.getKeys(
        some.filter(({ plan }) => plan === "enterprise").map(({ keyId }) => keyId),
      );
      const limits = new Map(custom.map((key) => [key.id, key.limits]));
      const quotas = await this.#quotasOf(some.map(({ keyId }) => keyId));
      for (const { keyId: id, plan } of some) {
        if (plan === null) continue;
        const { minute, day } = quotas?.get(id) ?? newQuota();
        const { perMinute, perDay } = limitsOf(plan, limits.get(id), policy.current.plans);
        const percent = Math.max(usedPercent(minute.used, perMinute), usedPercent(day.used, perDay));
        windows.push({ id, usedToday: day.used, percent });
      }
      await yieldToEventLoop();
    }
    return windows;
  }

  /** Lists the banned keys, beginning with the key whose ban ends first. */
  async banned(limit: number): Promise<Pick<KeyList<Key>, "items" | "total">> {
    const bannedUntil = await this.#bannedUntil();
    const now = this.services.clock.now();
    const endOf = ({ id }: ApiKey) => bannedUntil.get(id) ?? NEVER;
    const banned = (await this.services.keys.getKeys([...bannedUntil.keys()]))
      .filter((key) => keyState(key, { isBanned: true, now }) === "banned")
      .toSorted((a, b) => endOf(a) - endOf(b) || a.id - b.id);
    return { items: await this.views(banned.slice(0, limit)), total: banned.length };
  }

  /**
   * The quotas by key. A key without one has not been used. The result is undefined while quotas cannot be read.
   */
  async #quotasOf(ids: readonly number[]): Promise<ReadonlyMap<number, Quota> | undefined> {
    const quotas = new Map<number, Quota>();
    const { rateLimiter, limiterMonitor } = this.services;
    for (let start = 0; start < ids.length; start += READS_AT_A_TIME) {
      if (!limiterMonitor.isAvailable) return undefined;
      const some = ids.slice(start, start + READS_AT_A_TIME);
      const read = await Promise.all(some.map((id) => rateLimiter.quota({ kind: "key", id })));
      some.forEach((id, i) => {
        const quota = read[i];
        if (quota) quotas.set(id, quota);
      });
    }
    return limiterMonitor.isAvailable ? quotas : undefined;
  }

  /** When each current ban ends, by key. */
  async #bannedUntil(): Promise<ReadonlyMap<number, number>> {
    const { rateLimiter, clock } = this.services;
    const quotas = await this.#quotasOf(rateLimiter.bannedKeys() ?? (await this.#bannedLately()));
    const ends = new Map<number, number>();
    const now = clock.now();
    for (const [id, each] of quotas ?? []) if (isBanned(each, now)) ends.set(id, each.bannedUntil);
    return ends;
  }

  /** Finds the keys with recent bans in the audit trail: PostgreSQL would have to read every quota. */
  async #bannedLately(): Promise<readonly number[]> {
    const { audit, clock } = this.services;
    // A ban keeps its length when the rules change, but ends when it has lasted as long as the longest may.
    const since = clock.now() - this.services.policy.current.ban.maxLengthMs;
    const { items } = await audit.listAudit({ action: "key.banned", since, limit: MAX_BANS });
    return [...new Set(items.flatMap(({ target }) => (target ? Number(target.id) : [])))];
  }
}

function secretView({ hint, createdAt, validUntil }: KeySecret) {
  return {
    hint: hint ?? null,
    createdAt: formatOptionalTime(createdAt),
    validUntil: formatOptionalTime(validUntil),
  };
}

function windowView({ used, openedAt }: Window, limit: number, lengthMs: number) {
  return { used, limit, resetsAt: used === 0 ? null : formatTime(openedAt + lengthMs) };
}
