import {
  addReport,
  decide,
  type Decision,
  expire,
  isExpired,
  type Limits,
  newQuota,
  NEVER,
  peek,
  type Report,
  type ReportedWindow,
  unban,
  type Quota,
  type Window,
} from "../../domain/rate-limit.ts";
import type { DecisionRequest, KeyReport, KeySubject } from "./script.ts";

/** What a decision depends on besides the quota: how many servers share what is left, and the time. */
interface DecisionContext {
  readonly servers: number;
  readonly now: number;
}

/** Requests that this server allowed without Valkey in the current window. */
interface Allowance {
  count: number;
  /** The requests that were not reported to Valkey. */
  unreported: number;
}

interface KnownKey {
  /** The last reply of Valkey, and what this server has allowed since. */
  quota: Quota;
  readonly minute: Allowance;
  readonly day: Allowance;
  /** The time of an unban that was not reported to Valkey, or NEVER. */
  unbannedAt: number;
}

/** 50,000 keys take 15 MB. */
const MAX_KEYS = 50_000;
/** Each new key evicts up to two keys, so that the table shrinks after an outage. */
const MAX_FORGOTTEN = 2;

/**
 * The quotas of keys that this server knows, by which it decides while Valkey does not reply. Each server allows its
 * share of what was left in a window, once: the shares of the others count as used. So the rules are those of every
 * other decision, and the headers show what this server will still allow. No ban begins in an outage.
 *
 * When there are too many keys, the oldest are forgotten, except those with something to report. An unknown key has its
 * whole limit left. Times are of the steady clock.
 */
export class Shares {
  /** Keys by their identifier, the oldest first. */
  readonly #keys = new Map<number, KnownKey>();
  /** The keys with something to report. */
  readonly #unreported = new Set<number>();

  get size(): number {
    return this.#keys.size;
  }

  get hasReports(): boolean {
    return this.#unreported.size > 0;
  }

  /** Stores a reply of Valkey. */
  learn({ id }: KeySubject, quota: Quota, now: number): void {
    const known = this.#keys.get(id);
    if (known === undefined) return void this.#add(id, quota);
    if (known.minute.count + known.day.count > 0 || known.unbannedAt !== NEVER) {
      expireKnown(known, now);
      addReport(quota, reportOf(known, now), now);
    }
    known.quota = quota;
  }

  /** Allows or rejects a request by this server's share. */
  decide({ subject: { id }, limits }: DecisionRequest, context: DecisionContext): Decision {
    const known = this.#keys.get(id) ?? this.#add(id, newQuota());
    const decision = withShares(known, limits, context, () => decide(known.quota, limits, context.now));
    if (decision.outcome !== "allowed") return decision;
    for (const granted of [known.minute, known.day]) {
      granted.count++;
      granted.unreported++;
    }
    this.#unreported.add(id);
    return decision;
  }

  /** Must be called when Valkey has counted `count` of the requests that this server allowed. */
  countedLate({ id }: KeySubject, count: number): void {
    const { minute, day } = this.#keys.get(id) ?? newKey();
    for (const granted of [minute, day]) granted.unreported = Math.max(0, granted.unreported - count);
  }

  peek({ subject: { id }, limits }: DecisionRequest, context: DecisionContext): Decision {
    const known = this.#keys.get(id) ?? newKey();
    return withShares(known, limits, context, () => peek(known.quota, limits, context.now));
  }

  /** Returns undefined if none of the quota is current. */
  quota({ id }: KeySubject, now: number): Quota | undefined {
    const { quota } = structuredClone(this.#keys.get(id) ?? newKey());
    expire(quota, now);
    return isExpired(quota, now) ? undefined : quota;
  }

  /** Ends a ban that began at or before `at`: here at once, and in Valkey with the next report. */
  unban({ id }: KeySubject, at: number): void {
    const known = this.#keys.get(id) ?? this.#add(id, newQuota());
    unban(known.quota, at);
    known.unbannedAt = Math.max(known.unbannedAt, at);
    this.#unreported.add(id);
  }

  /** Returns the reports of these keys, and of others up to `count` in all, and removes them. */
  takeReports(first: readonly KeySubject[], count: number, now: number): readonly KeyReport[] {
    const reports: KeyReport[] = [];
    const take = (id: number) => {
      const known = this.#keys.get(id);
      if (!this.#unreported.delete(id) || known === undefined) return;
      expireKnown(known, now);
      const report = reportOf(known, now);
      if (known.unbannedAt === NEVER && report.minute.used + report.day.used === 0) return;
      reports.push({ subject: { kind: "key", id }, ...report });
      known.minute.unreported = 0;
      known.day.unreported = 0;
      known.unbannedAt = NEVER;
    };
    for (const { id } of first) take(id);
    for (const id of this.#unreported) {
      if (reports.length >= count) break;
      take(id);
    }
    return reports;
  }

  /** Adds a report again, made at `madeAt`, because Valkey may not have counted it. */
  putBack({ subject: { id }, minute, day, unbannedAgoMs }: KeyReport, madeAt: number): void {
    const known = this.#keys.get(id) ?? this.#add(id, newQuota());
    const isOpen = (window: Window, { openedAgoMs }: ReportedWindow) =>
      window.used > 0 && window.openedAt <= madeAt - openedAgoMs;
    if (isOpen(known.quota.minute, minute)) known.minute.unreported += minute.used;
    if (isOpen(known.quota.day, day)) known.day.unreported += day.used;
    if (unbannedAgoMs !== undefined) known.unbannedAt = Math.max(known.unbannedAt, madeAt - unbannedAgoMs);
    this.#unreported.add(id);
  }

  #add(id: number, quota: Quota): KnownKey {
    let looks = 0;
    for (const [oldest, known] of this.#keys) {
      if (this.#keys.size < MAX_KEYS || looks === MAX_FORGOTTEN) break;
      this.#keys.delete(oldest);
      if (this.#unreported.has(oldest)) this.#keys.set(oldest, known);
      looks++;
    }
    const known = newKey(quota);
    this.#keys.set(id, known);
    return known;
  }
}

function newKey(quota = newQuota()): KnownKey {
  return {
    quota,
    minute: { count: 0, unreported: 0 },
    day: { count: 0, unreported: 0 },
    unbannedAt: NEVER,
  };
}

/** When a window closes, what was allowed in it is forgotten. */
function expireKnown({ quota, minute, day }: KnownKey, now: number): void {
  expire(quota, now);
  if (quota.minute.used === 0) minute.count = minute.unreported = 0;
  if (quota.day.used === 0) day.count = day.unreported = 0;
}

function reportOf({ quota, minute, day, unbannedAt }: KnownKey, now: number): Report {
  return {
    minute: { openedAgoMs: now - quota.minute.openedAt, used: minute.unreported },
    day: { openedAgoMs: now - quota.day.openedAt, used: day.unreported },
    unbannedAgoMs: unbannedAt === NEVER ? undefined : now - unbannedAt,
  };
}

/** Calls `rule` with the shares of the other servers counted as used. */
function withShares(
  known: KnownKey,
  { perMinute, perDay }: Limits,
  context: DecisionContext,
  rule: () => Decision,
): Decision {
  const { minute, day } = known.quota;
  expireKnown(known, context.now);
  const minuteOthers = addOthers(minute, { limit: perMinute, granted: known.minute, ...context });
  const dayOthers = addOthers(day, { limit: perDay, granted: known.day, ...context });
  const decision = rule();
  minute.used -= minuteOthers;
  day.used -= dayOthers;
  return decision;
}

interface ShareOptions extends DecisionContext {
  readonly limit: number;
  readonly granted: Allowance;
}

/** Adds the shares of the other servers, which this server's own requests do not change, and returns their sum. */
function addOthers(window: Window, { limit, granted, servers, now }: ShareOptions): number {
  if (window.used === 0) window.openedAt = now;
  const left = limit - Math.min(limit, Math.max(0, window.used - granted.count));
  const others = left - Math.ceil(left / servers);
  window.used += others;
  return others;
}
