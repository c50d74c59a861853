import {
  addReport,
  type Ban,
  type BanRules,
  type CountedWindow,
  DAY_MS,
  decide,
  type Decision,
  expire,
  isExpired,
  MINUTE_MS,
  newUsage,
  NEVER,
  type OnBan,
  peek,
  type Report,
  shift,
  unban,
  type Usage,
  type Window,
} from "../../domain/rate-limit.ts";
import { GivenRequests } from "./given-requests.ts";
import type { DecisionRequest, KeyReport, KeySubject } from "./script.ts";

interface LedgerOptions {
  readonly ban: BanRules;
  /** For bans that begin here. Times are of the steady clock. */
  readonly onBan?: OnBan | undefined;
  readonly maxKeys?: number;
}

/** How many servers share what Valkey had left, and the time of the steady clock. */
interface Sharing {
  readonly servers: number;
  readonly now: number;
}

/** What happened to a key since the outage began. */
interface OutageRecord {
  readonly minute: GivenRequests;
  readonly day: GivenRequests;
  /** A ban that Valkey does not know of. */
  ban: Ban | undefined;
  /** Bans that began by then have ended, which Valkey does not know; or NEVER. */
  unbannedAt: number;
  /** What Valkey has replied since; shares are those of the usage before. */
  latest: Usage | undefined;
}

interface Entry {
  /** As Valkey last replied, with strikes and bans of this server. */
  usage: Usage;
  record: OutageRecord | undefined;
}

interface RecordedKey {
  readonly usage: Usage;
  readonly record: OutageRecord;
}

/** 50,000 keys take 15 MB. */
const MAX_KEYS = 50_000;
/** So many of the oldest keys are looked at to find one without anything to report. */
const MAX_LOOKS = 64;

/**
 * What this server knows of the keys: what Valkey last replied, and what this server has given since the outage began.
 * It decides in an outage. Of what was left in a window, each server gives its share; the shares of the others count as
 * used. So the rules are those of every other decision, and the headers tell what this server will still give.
 *
 * A window that Valkey opened closes in its time. After that, the requests of a server count until each of them is as
 * old as a window is long: whenever the other servers began, all of them together give the limit in any such time, and
 * one request more for each server, because shares are rounded up.
 *
 * A key of which nothing is known has its whole limit left. When there are too many keys, the oldest are forgotten,
 * those without anything to report first. Times are of the steady clock.
 */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #maxKeys: number;
  /** By key, the oldest first. */
  readonly #entries = new Map<number, Entry>();
  /** The keys with something to report that was not sent. */
  readonly #unsent = new Set<number>();

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#maxKeys = options.maxKeys ?? MAX_KEYS;
  }

  get size(): number {
    return this.#entries.size;
  }

  get hasReports(): boolean {
    return this.#unsent.size > 0;
  }

  /** Takes over a usage that Valkey replied; `byMs` is our clock minus Valkey's. */
  learn({ id }: KeySubject, usage: Usage, byMs: number): void {
    shift(usage, byMs);
    const entry = this.#entries.get(id);
    if (entry === undefined) this.#add(id, usage);
    else if (entry.record === undefined) entry.usage = usage;
    else entry.record.latest = usage;
  }

  /** Decides by this server's share. The request is counted by Valkey too, or has to be reported. */
  decide({ subject, limits }: DecisionRequest, sharing: Sharing, state: "new" | "counted"): Decision {
    const { ban, onBan } = this.#options;
    const { usage, record } = this.#record(subject.id);
    const { bannedAt } = usage;
    const decision = this.#withShares({ usage, record, limits }, sharing, (now) =>
      decide(usage, limits, now, ban),
    );
    if (decision.outcome === "allowed") {
      record.minute.add(sharing.now, state);
      record.day.add(sharing.now, state);
      if (state === "new") this.#unsent.add(subject.id);
    } else if (decision.outcome === "banned" && usage.bannedAt !== bannedAt && bannedAt < sharing.now) {
      record.ban = { bannedAt: usage.bannedAt, bannedUntil: usage.bannedUntil };
      this.#unsent.add(subject.id);
      onBan?.(subject.id, record.ban);
    }
    return decision;
  }

  /** Valkey has counted a request that this server gave at this time. It stays a part of the share. */
  countedLate({ id }: KeySubject, givenAt: number): void {
    const record = this.#entries.get(id)?.record;
    record?.minute.countedLate(givenAt);
    record?.day.countedLate(givenAt);
  }

  peek({ subject, limits }: DecisionRequest, sharing: Sharing): Decision {
    const { usage = newUsage(), record = newRecord() } = this.#entries.get(subject.id) ?? {};
    return this.#withShares({ usage, record, limits }, sharing, (now) =>
      peek(usage, limits, now, this.#options.ban),
    );
  }

  /** Undefined when nothing of it is current. */
  usage({ id }: KeySubject, now: number): Usage | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    const usage = structuredClone(entry.record?.latest ?? entry.usage);
    const { ban } = this.#options;
    if (entry.record)
      addReport(usage, reportOf({ usage: entry.usage, record: entry.record }, now, UNCOUNTED), now, ban);
    else expire(usage, now, ban);
    return isExpired(usage, now) ? undefined : usage;
  }

  /** Ends a ban that began at or before `at`, here at once, and in Valkey with the next report. */
  unban({ id }: KeySubject, at: number): void {
    const { usage, record } = this.#record(id);
    unban(usage, at);
    if (record.ban && record.ban.bannedAt <= at) record.ban = undefined;
    record.unbannedAt = Math.max(record.unbannedAt, at);
    this.#unsent.add(id);
  }

  /** What to report: of all these keys, and of others up to `count` in all. What was sent is not sent again. */
  reports(first: readonly KeySubject[], count: number, now: number): readonly KeyReport[] {
    const reports: KeyReport[] = [];
    const add = (id: number) => {
      const { usage, record } = this.#entries.get(id) ?? {};
      if (!this.#unsent.delete(id) || !usage || !record) return;
      this.#expire({ usage, record }, now);
      if (!hasReport(record)) return;
      reports.push({ subject: { kind: "key", id }, ...reportOf({ usage, record }, now, ["new"]) });
      record.minute.mark("new", "sent");
      record.day.mark("new", "sent");
    };
    for (const { id } of first) add(id);
    for (const id of this.#unsent) {
      if (reports.length >= count) break;
      add(id);
    }
    return reports;
  }

  /** Valkey has added the report, and replied with the usage since then. */
  reported({ subject, ban, unbannedAt }: KeyReport, usage: Usage, byMs: number): void {
    const record = this.#entries.get(subject.id)?.record;
    if (record) {
      record.minute.mark("sent", "counted");
      record.day.mark("sent", "counted");
      if (record.ban === ban) record.ban = undefined;
      if (record.unbannedAt === unbannedAt) record.unbannedAt = NEVER;
    }
    this.learn(subject, usage, byMs);
  }

  /** Nobody knows whether Valkey has added the report: it is sent again. */
  notReported({ subject: { id } }: KeyReport): void {
    const record = this.#entries.get(id)?.record;
    record?.minute.mark("sent", "new");
    record?.day.mark("sent", "new");
    if (record) this.#unsent.add(id);
  }

  /** What Valkey has replied about these keys, or about all, counts from now on, for shares too. */
  settle(ids: Iterable<number> = this.#entries.keys()): void {
    for (const id of ids) {
      const entry = this.#entries.get(id);
      if (entry?.record === undefined) continue;
      const { record } = entry;
      record.minute.dropCounted();
      record.day.dropCounted();
      if (record.latest) {
        entry.usage = record.latest;
        keepOwnBan(entry.usage, record);
      }
      record.latest = undefined;
      if (!hasReport(record)) entry.record = undefined;
    }
  }

  /** Calls `rule` while the usage includes what was given here and the shares of the other servers. */
  #withShares(
    { usage, record, limits }: RecordedKey & Pick<DecisionRequest, "limits">,
    { servers, now }: Sharing,
    rule: (now: number) => Decision,
  ): Decision {
    const { minute, day } = usage;
    this.#expire({ usage, record }, now);
    const [minuteUsed, dayUsed] = [minute.used, day.used];
    addShares(minute, record.minute, { limit: limits.perMinute, servers, now });
    addShares(day, record.day, { limit: limits.perDay, servers, now });
    try {
      return rule(now);
    } finally {
      minute.used = minuteUsed;
      day.used = dayUsed;
    }
  }

  /** A window that Valkey opened takes the requests that were given in it along when it closes. */
  #expire({ usage, record }: RecordedKey, now: number): void {
    const [minuteUsed, dayUsed] = [usage.minute.used, usage.day.used];
    expire(usage, now, this.#options.ban);
    if (usage.minute.used === 0) record.minute[minuteUsed > 0 ? "clear" : "expire"](now);
    if (usage.day.used === 0) record.day[dayUsed > 0 ? "clear" : "expire"](now);
  }

  #record(id: number): RecordedKey {
    const entry = this.#entries.get(id) ?? this.#add(id, newUsage());
    entry.record ??= newRecord();
    return { usage: entry.usage, record: entry.record };
  }

  #add(id: number, usage: Usage): Entry {
    if (this.#entries.size >= this.#maxKeys) this.#forgetOne();
    const entry = { usage, record: undefined };
    this.#entries.set(id, entry);
    return entry;
  }

  /** No unban is forgotten: then there is one key more. */
  #forgetOne(): void {
    let looks = 0;
    for (const [id, entry] of this.#entries) {
      this.#entries.delete(id);
      looks++;
      const { record } = entry;
      const isKept = record && (looks > MAX_LOOKS ? record.unbannedAt !== NEVER : hasReport(record));
      if (!isKept) {
        this.#unsent.delete(id);
        return;
      }
      this.#entries.set(id, entry);
      if (looks === 2 * MAX_LOOKS) return;
    }
  }
}

function newRecord(): OutageRecord {
  return {
    minute: new GivenRequests(MINUTE_MS),
    day: new GivenRequests(DAY_MS),
    ban: undefined,
    unbannedAt: NEVER,
    latest: undefined,
  };
}

/** What Valkey has to be told of. */
const UNCOUNTED = ["new", "sent"] as const;

function hasReport({ minute, day, ban, unbannedAt }: OutageRecord): boolean {
  return (
    minute.count(...UNCOUNTED) > 0 || day.count(...UNCOUNTED) > 0 || ban !== undefined || unbannedAt !== NEVER
  );
}

interface SharesOptions extends Sharing {
  readonly limit: number;
}

/** Adds what this server has given, and what the others may give of what was left. */
function addShares(window: Window, given: GivenRequests, { limit, servers, now }: SharesOptions): void {
  const left = Math.max(0, limit - window.used);
  if (window.used === 0) window.openedAt = given.oldestAt ?? now;
  window.used += given.count("counted", ...UNCOUNTED) + left - Math.ceil(left / servers);
}

function reportOf(
  { usage, record: { minute, day, ban, unbannedAt } }: RecordedKey,
  now: number,
  states: readonly ("new" | "sent")[],
): Report {
  const countedIn = ({ used, openedAt }: Window, given: GivenRequests): CountedWindow => ({
    openedAt: used > 0 ? openedAt : (given.firstUncountedAt(now) ?? now),
    used: given.count(...states),
  });
  return {
    madeAt: now,
    minute: countedIn(usage.minute, minute),
    day: countedIn(usage.day, day),
    ban,
    unbannedAt: unbannedAt === NEVER ? undefined : unbannedAt,
  };
}

/** Valkey knows neither the ban nor the unban yet. */
function keepOwnBan(usage: Usage, { ban, unbannedAt }: OutageRecord): void {
  if (unbannedAt !== NEVER) unban(usage, unbannedAt);
  if (ban && ban.bannedUntil > usage.bannedUntil) Object.assign(usage, ban);
}
