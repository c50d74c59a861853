import { formatOptionalTime, formatTime } from "../../api/formatting.ts";
import type { ApiKey, KeySecret } from "../../domain/api-keys.ts";
import { type KeyList, type KeyListQuery, stateOf } from "../../domain/key-list.ts";
import { limitsOf } from "../../domain/plans.ts";
import {
  DAY_MS,
  expire,
  MINUTE_MS,
  NEVER,
  newUsage,
  type Usage,
  type Window,
} from "../../domain/rate-limit.ts";
import { yieldToEventLoop, TimeSlice } from "../../event-loop.ts";
import type { Key } from "../operations.ts";
import type { OperatorServices } from "./services.ts";

/** What the stores have on a key beside the key itself. */
interface KeyDetails {
  /** Undefined while it cannot be read. */
  readonly current: Usage | undefined;
  readonly secrets: readonly KeySecret[] | undefined;
  readonly lastUsed: number | undefined;
}

/** Valkey decides requests meanwhile: a few reads at a time do not delay them. */
const READS_AT_A_TIME = 16;
const MAX_BANS = 10_000;

/** API keys with everything that operators see of them, which comes from four places. */
export class KeyDirectory {
  readonly #options: OperatorServices;

  constructor(options: OperatorServices) {
    this.#options = options;
  }

  async view(key: ApiKey): Promise<Key> {
    const [view] = await this.views([key]);
    if (view === undefined) throw new Error("one key has one view");
    return view;
  }

  /** In the order of the keys. */
  async views(keys: readonly ApiKey[]): Promise<readonly Key[]> {
    const ids = keys.map(({ id }) => id);
    await yieldToEventLoop();
    // One after the other: together they would be one long time slice.
    const timeSlice = new TimeSlice();
    const usage = await this.#usageOf(ids);
    if (timeSlice.isOver) await timeSlice.next();
    const secrets = await this.#options.keys.listSecrets(ids);
    if (timeSlice.isOver) await timeSlice.next();
    const lastUsed = await this.#options.usageHistory.lastUsed(ids);
    const views: Key[] = [];
    for (const key of keys) {
      if (timeSlice.isOver) await timeSlice.next();
      const current = usage && (usage.get(key.id) ?? newUsage());
      views.push(
        this.#viewOf(key, { current, secrets: secrets.get(key.id), lastUsed: lastUsed.get(key.id) }),
      );
    }
    return views;
  }

  #viewOf(key: ApiKey, { current, secrets = [], lastUsed }: KeyDetails): Key {
    const { plans, ban, clock } = this.#options;
    const now = clock.now();
    const { id, name, owner = null, notes = null, labels, plan, access } = key;
    const limits = limitsOf(key, plans);
    if (current) expire(current, now, ban);
    const bannedUntil = current && now < current.bannedUntil ? current.bannedUntil : undefined;
    return {
      id,
      name,
      owner,
      notes,
      labels,
      plan,
      limits,
      access,
      state: stateOf(key, bannedUntil !== undefined, now),
      secrets: secrets.filter(({ validUntil = Infinity }) => now < validUntil).map(secretView),
      usage: current
        ? {
            minute: windowView(current.minute, limits.perMinute, MINUTE_MS),
            day: windowView(current.day, limits.perDay, DAY_MS),
          }
        : null,
      strikes: current ? Math.max(current.minute.strikes, current.day.strikes) : null,
      bannedUntil: formatOptionalTime(bannedUntil),
      createdAt: formatTime(key.createdAt),
      expiresAt: formatOptionalTime(key.expiresAt),
      revokedAt: formatOptionalTime(key.revokedAt),
      lastUsedAt: formatOptionalTime(lastUsed),
    };
  }

  async list(query: Omit<KeyListQuery, "now" | "bannedKeys">): Promise<KeyList<Key>> {
    const { keys, clock } = this.#options;
    const state = query.filter?.state;
    const bannedKeys =
      state === "banned" || state === "active" ? [...(await this.#bannedUntil()).keys()] : [];
    const page = await keys.listKeys({ ...query, now: clock.now(), bannedKeys });
    return { ...page, items: await this.views(page.items) };
  }

  /** Those whose bans end first come first. */
  async banned(limit: number): Promise<KeyList<Key>> {
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

  /** By key; a key without usage has not been used. Undefined while the usage cannot be read. */
  async #usageOf(ids: readonly number[]): Promise<ReadonlyMap<number, Usage> | undefined> {
    const usages = new Map<number, Usage>();
    const { rateLimiter, canReadUsage } = this.#options;
    const timeSlice = new TimeSlice();
    for (let start = 0; start < ids.length; start += READS_AT_A_TIME) {
      if (timeSlice.isOver) await timeSlice.next();
      if (!canReadUsage()) return undefined;
      const some = ids.slice(start, start + READS_AT_A_TIME);
      const read = await Promise.all(some.map((id) => rateLimiter.usage({ kind: "key", id })));
      some.forEach((id, i) => {
        const usage = read[i];
        if (usage) usages.set(id, usage);
      });
    }
    return canReadUsage() ? usages : undefined;
  }

  /** When the bans end that have not ended, by key. */
  async #bannedUntil(): Promise<ReadonlyMap<number, number>> {
    const { rateLimiter, clock } = this.#options;
    await yieldToEventLoop();
    const usage = await this.#usageOf(rateLimiter.bannedKeys() ?? (await this.#bannedLately()));
    const ends = new Map<number, number>();
    const now = clock.now();
    for (const [id, { bannedUntil }] of usage ?? []) if (now < bannedUntil) ends.set(id, bannedUntil);
    return ends;
  }

  /** Valkey would have to read every key: the audit trail has the bans. */
  async #bannedLately(): Promise<readonly number[]> {
    const { audit, clock, ban } = this.#options;
    const since = clock.now() - ban.maxLengthMs;
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
