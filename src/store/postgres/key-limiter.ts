import type { ReservedSQL } from "bun";
import { OutcomeUnknown, Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import { repeat } from "../../runtime/repeat.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import type { BanRules } from "../../domain/ban-rules.ts";
import type { KeyLimiterOptions, RateLimiter } from "../../domain/ports/rate-limiter.ts";
import {
  charge,
  copyOf,
  type Decision,
  decisionOf,
  expire,
  isBanned,
  isExpired,
  isOpen,
  isSameTime,
  type KeySubject,
  lacks,
  type Limits,
  merge,
  NEVER,
  newQuota,
  peek,
  type Quota,
  shift,
  shiftDecision,
  unban,
} from "../../domain/rate-limit.ts";
import { BoundedMap } from "../../runtime/bounded-map.ts";
import { toStored } from "../../domain/stored-quota.ts";
import type { OnAudit } from "../audit.ts";
import { BatchQueue } from "../sql/batch-queue.ts";
import { type RecordedBan, recordBans } from "./ban-entries.ts";
import type { Pools } from "./pools.ts";
import { WRITE_TO_LOG } from "./dialect.ts";
import {
  countRequests,
  DELETE_EXPIRED,
  lockQuotas,
  type QuotaRow,
  type QuotaRows,
  readQuotas,
  storeQuotas,
} from "./quota-rows.ts";

const MAX_BATCH = 256;
const MAX_QUEUED = 10_000;
/** Decisions wait for a purge, which takes about a millisecond. */
const BATCHES_PER_PURGE = 100;
/** The quotas of 50,000 keys take 15 MB. */
const MAX_KNOWN_KEYS = 50_000;
const KEYS_PER_READ = 1_000;
const HAND_OVER_EVERY_MS = 250;
/** Servers that lost their connections together have reached PostgreSQL again, and handed over, within this time. */
const HAND_OVER_MS = 500;
/** A ban whose audit entry would have to wait for another one is decided anew after this time. */
const AUDIT_PAUSE_MS = 20;

interface LimitedRequest {
  readonly keyId: number;
  readonly limits: Limits;
}

/** The decision about a request, and the quota afterwards. */
interface Counted {
  readonly decision: Decision;
  readonly quota: Quota;
}

type LimiterPools = Pick<Pools, "limits" | "reads" | "writes" | "timeoutMs">;

/**
 * Limits the requests of keys together with all servers, exactly. PostgreSQL's clock, read after the rows are locked,
 * is that of all servers.
 *
 * A batch is one statement, which counts the requests of each key if its windows are open and all of the requests fit.
 * It returns the quotas as they were, which decide another request too if that changes nothing, such as one over the
 * limit. So rows are locked only while PostgreSQL runs a statement, however far away the servers are.
 *
 * What else changes a quota, such as a window that opens or a strike, follows the rules of domain/rate-limit.ts in a
 * transaction, which holds its locks for a round trip: BEGIN is sent with the statement that locks, and COMMIT with the
 * one that stores. Such transactions have a queue of their own, so that requests in open windows do not wait for them.
 *
 * A commit waits neither for the disk nor for a standby, which may be away: it would hold locks that all servers need.
 * So a crash or a failover loses the last commits, of less than a second. What was answered stays all the same:
 * - A response to a banned request follows a write that has waited for both since the ban.
 * - A server keeps the last quota of each key. Once it has lost a connection, PostgreSQL may have lost commits: the
 *   server hands over what is missing before it decides again, and waits for other servers to do so.
 *
 * Times are those of this server's steady clock; in the database, those of PostgreSQL's.
 */
export class PostgresKeyLimiter implements RateLimiter<KeySubject> {
  readonly #options: KeyLimiterOptions;
  readonly #onAudit: OnAudit | undefined;
  readonly #pools: LimiterPools;
  /** Requests whose windows may be open. */
  readonly #counts: BatchQueue<LimitedRequest, Counted | undefined>;
  /** Requests that need more than counting. */
  readonly #transactions: BatchQueue<LimitedRequest, Counted | undefined>;
  readonly #reads: BatchQueue<number, Quota | undefined>;
  /** Waits until everything that was committed before is on the disk and on the standby. */
  readonly #syncs: BatchQueue<void, void>;
  /** When the last ban of a key ends that is on the disk and on the standby. */
  #settledBans = new BoundedMap<number, number>(MAX_KNOWN_KEYS);
  /** The last quota of each key that this server has seen. */
  readonly #known = new BoundedMap<number, Quota>(MAX_KNOWN_KEYS);
  /** How many connections had been lost at the last hand-over. */
  #handedOverAfter = 0;
  #handOver: Promise<void> | undefined;
  readonly #handOvers = repeat(HAND_OVER_EVERY_MS, async () => {
    // Without requests, too: the client of a banned key may go to another server. A failure is repeated.
    await this.#handOverIfDue()?.catch(() => {});
    return HAND_OVER_EVERY_MS;
  });
  #batchesUntilPurge = BATCHES_PER_PURGE;

  constructor(pools: LimiterPools, options: KeyLimiterOptions, onAudit?: OnAudit) {
    this.#options = options;
    this.#onAudit = onAudit;
    this.#pools = pools;
    const decisions = {
      maxBatch: MAX_BATCH,
      maxQueued: MAX_QUEUED,
      maxQueueMs: pools.timeoutMs,
      onBatch: (_: unknown, ms: number) => options.onResponse?.(ms),
    };
    this.#counts = new BatchQueue({
      ...decisions,
      run: (requests) => this.#afterHandOver(() => this.#count(requests)),
    });
    this.#transactions = new BatchQueue({
      ...decisions,
      run: (requests) => this.#afterHandOver(() => this.#decideLocked(requests)),
    });
    this.#reads = new BatchQueue({
      run: (ids) => this.#readAll(ids),
      maxBatch: MAX_BATCH,
      maxQueued: MAX_QUEUED,
    });
    this.#syncs = new BatchQueue({
      run: async (waiting) => {
        await withKnownOutcome(pools.writes.query(async (sql) => sql.unsafe(WRITE_TO_LOG)));
        return waiting;
      },
      maxBatch: MAX_QUEUED,
      maxQueued: MAX_QUEUED,
      maxQueueMs: pools.timeoutMs,
    });
  }

  get queueLength(): number {
    return this.#counts.queueLength + this.#transactions.queueLength;
  }

  async decide({ id: keyId }: KeySubject, limits: Limits): Promise<Decision> {
    const { clock } = this.#options;
    const request = { keyId, limits };
    const known = this.#known.get(keyId);
    const mayBeOpen = known === undefined || isOpen(known, clock.steadyNow());
    const counted = mayBeOpen ? await this.#counts.submit(request) : undefined;
    const { decision, quota } = counted ?? (await this.#decideUnderLock(request));
    this.#known.set(keyId, quota);
    if (decision.outcome === "banned") await this.#settleBan(keyId, quota);
    return shiftDecision(decision, clock.stepMs);
  }

  /** Waits until the ban, which is committed, is on the disk and on the standby. */
  async #settleBan(keyId: number, { bannedUntil }: Quota): Promise<void> {
    const settled = this.#settledBans;
    if (isSameTime(settled.get(keyId) ?? NEVER, bannedUntil)) return;
    await this.#syncs.submit();
    settled.set(keyId, bannedUntil);
  }

  async #decideUnderLock(request: LimitedRequest): Promise<Counted> {
    const deadline = scheduler.now() + this.#pools.timeoutMs;
    while (scheduler.now() < deadline) {
      const counted = await this.#transactions.submit(request);
      if (counted) return counted;
      await scheduler.sleep(AUDIT_PAUSE_MS);
    }
    throw new Unavailable("PostgreSQL: a ban waits for the commit of another audit entry");
  }

  peek({ id }: KeySubject, limits: Limits): Decision {
    const { clock } = this.#options;
    const known = copyOf(this.#known.get(id) ?? newQuota());
    return shiftDecision(peek(known, limits, clock.steadyNow()), clock.stepMs);
  }

  async quota({ id }: KeySubject): Promise<Quota | undefined> {
    const quota = await this.#reads.submit(id);
    if (quota) shift(quota, this.#options.clock.stepMs);
    return quota;
  }

  async #readAll(ids: readonly number[]): Promise<readonly (Quota | undefined)[]> {
    const { rows, now } = this.#onOurClock(await this.#pools.reads.query((sql) => readQuotas(sql, ids)));
    return ids.map((id) => {
      const quota = rows.get(id)?.quota;
      if (quota) expire(quota, now, this.#options.ban());
      return quota && !isExpired(quota, now) ? quota : undefined;
    });
  }

  /** They would take a read of all quotas. */
  bannedKeys(): undefined {}

  async unban({ id: keyId }: KeySubject, agoMs: number): Promise<void> {
    const known = this.#known.get(keyId);
    if (known) unban(known, this.#options.clock.steadyNow() - agoMs);
    const quota = await this.#transaction([keyId], ({ rows, now }) => {
      const { quota = newQuota() } = rows.get(keyId) ?? {};
      expire(quota, now, this.#options.ban());
      unban(quota, now - agoMs);
      return quota;
    });
    // A decision from before the transaction may have ended in it.
    this.#known.set(keyId, quota);
    await this.#syncs.submit();
  }

  async close(): Promise<void> {
    await this.#counts.close();
    await this.#transactions.close();
    await Promise.all([this.#reads.close(), this.#syncs.close(), this.#handOvers.close()]);
  }

  /** Decides the requests that change nothing but counts of open windows; undefined for each other one. */
  async #count(requests: readonly LimitedRequest[]): Promise<readonly (Counted | undefined)[]> {
    const keys = byKey(requests);
    const testNow = this.#options.testClock?.steadyNow();
    const read = await withKnownOutcome(this.#pools.limits.query((sql) => countRequests(sql, keys, testNow)));
    const { rows, now } = this.#onOurClock(read);
    const results = new Map<LimitedRequest, Counted>();
    for (const { keyId, requests: ofKey } of keys) {
      const row = rows.get(keyId);
      if (row === undefined) continue;
      const before = toStored(row.quota).join();
      const { counted } = chargeAll(ofKey, rows, now, this.#options.ban());
      const isDecided = read.counted.has(keyId) || toStored(row.quota).join() === before;
      if (isDecided) for (const [request, each] of counted) results.set(request, each);
    }
    return requests.map((request) => results.get(request));
  }

  /** Decides all requests but those of a key that is to be banned while the audit trail is locked. */
  async #decideLocked(requests: readonly LimitedRequest[]): Promise<readonly (Counted | undefined)[]> {
    const ids = [...new Set(requests.map(({ keyId }) => keyId))].toSorted((one, other) => one - other);
    const { counted, bans } = await this.#transaction(ids, async (locked, sql) => {
      const { counted, banned } = chargeAll(requests, locked.rows, locked.now, this.#options.ban());
      const bans = await this.#recordBans(sql, banned, locked);
      if (bans === undefined)
        for (const keyId of banned) {
          locked.rows.delete(keyId);
          for (const request of requests) if (request.keyId === keyId) counted.delete(request);
        }
      return { counted, bans };
    });
    for (const { keyId, ban, entry } of bans ?? []) {
      this.#options.onBan?.(keyId, ban);
      this.#onAudit?.(entry);
    }
    return requests.map((request) => counted.get(request));
  }

  /** Adds the audit entries of these keys' bans; undefined if they have to wait for another entry. */
  #recordBans(
    sql: ReservedSQL,
    keyIds: readonly number[],
    { rows, aheadMs }: Quotas,
  ): Promise<readonly RecordedBan[] | undefined> {
    // By PostgreSQL's clock, as every server sees them.
    const bans = keyIds.map((keyId) => {
      const { bannedAt = NEVER, bannedUntil = NEVER } = rows.get(keyId)?.quota ?? {};
      return { keyId, ban: { bannedAt: bannedAt - aheadMs, bannedUntil: bannedUntil - aheadMs } };
    });
    return recordBans(sql, bans, this.#options.server);
  }

  /** Locks the rows of the keys, lets `work` change their quotas, and stores them. */
  #transaction<T>(
    ids: readonly number[],
    work: (locked: Quotas, sql: ReservedSQL) => T | Promise<T>,
  ): Promise<T> {
    return withKnownOutcome(
      this.#pools.limits.onConnection(async (sql) => {
        try {
          const locked = this.#onOurClock(await lockQuotas(sql, ids));
          const result = await work(locked, sql);
          for (const { quota } of locked.rows.values()) shift(quota, -locked.aheadMs);
          await storeQuotas(sql, locked.rows);
          for (const { quota } of locked.rows.values()) shift(quota, locked.aheadMs);
          return result;
        } catch (error) {
          // The connection may be lost, and the transaction with it.
          await sql`ROLLBACK`.catch(() => {});
          throw error;
        }
      }),
    );
  }

  /** Moves times to this server's steady clock. */
  #onOurClock<Read extends QuotaRows>(read: Read): Read & Quotas {
    const { clock, testClock } = this.#options;
    const now = clock.steadyNow();
    const aheadMs = now - (testClock?.steadyNow() ?? read.now);
    for (const { quota } of read.rows.values()) shift(quota, aheadMs);
    return { ...read, now, aheadMs };
  }

  /** Runs a batch with what this and other servers knew before connections were lost. */
  async #afterHandOver<T>(run: () => Promise<T>): Promise<T> {
    const { limits } = this.#pools;
    // During a hand-over another connection may be lost.
    for (let due = this.#handOverIfDue(); due; due = this.#handOverIfDue()) await due;
    const before = limits.lostConnections;
    const result = await run();
    this.#purge();
    if (limits.lostConnections === before) return result;
    throw new Unavailable("a connection to PostgreSQL was lost meanwhile");
  }

  #handOverIfDue(): Promise<void> | undefined {
    if (this.#pools.limits.lostConnections === this.#handedOverAfter) return undefined;
    return (this.#handOver ??= this.#handOverKnown().finally(() => (this.#handOver = undefined)));
  }

  /** It waits even if this server knows nothing, because others may know more. */
  async #handOverKnown(): Promise<void> {
    const { lostConnections } = this.#pools.limits;
    const startedAt = scheduler.now();
    this.#settledBans = new BoundedMap(MAX_KNOWN_KEYS);
    const ids = [...this.#known.keys()].toSorted((one, other) => one - other);
    for (let from = 0; from < ids.length; from += KEYS_PER_READ)
      await this.#handOverMissing(await this.#missingOf(ids.slice(from, from + KEYS_PER_READ)));
    await scheduler.sleep(startedAt + HAND_OVER_MS - scheduler.now());
    this.#handedOverAfter = lostConnections;
  }

  /**
   * Returns the keys of which this server knows more than PostgreSQL. The read opens a connection whose loss shows the
   * next crash or failover, also if this server decides nothing until then.
   */
  async #missingOf(ids: readonly number[]): Promise<readonly number[]> {
    const { rows, now } = this.#onOurClock(await this.#pools.limits.query((sql) => readQuotas(sql, ids)));
    return ids.filter((id) => {
      const known = this.#known.get(id);
      return known !== undefined && lacks(rows.get(id)?.quota ?? newQuota(), known, now, this.#options.ban());
    });
  }

  /** A ban that was lost has its audit entry again, unless that would have to wait for another entry. */
  async #handOverMissing(ids: readonly number[]): Promise<void> {
    for (let from = 0; from < ids.length; from += MAX_BATCH) {
      const bans = await this.#transaction(ids.slice(from, from + MAX_BATCH), (locked, sql) => {
        const banned: number[] = [];
        for (const [id, { quota }] of locked.rows) {
          const known = this.#known.get(id);
          if (!known) continue;
          const { bannedUntil } = quota;
          merge(quota, copyOf(known), locked.now, this.#options.ban());
          if (isBanned(quota, locked.now) && quota.bannedUntil > bannedUntil) banned.push(id);
        }
        return this.#recordBans(sql, banned, locked);
      });
      for (const { entry } of bans ?? []) this.#onAudit?.(entry);
    }
  }

  /** Deletes expired quotas from time to time, in the background. */
  #purge(): void {
    if (--this.#batchesUntilPurge > 0) return;
    this.#batchesUntilPurge = BATCHES_PER_PURGE;
    // The error is ignored: the decisions themselves report an outage, and the next purge comes soon.
    this.#pools.limits.query(async (sql) => sql.unsafe(DELETE_EXPIRED)).catch(() => {});
  }
}

interface Quotas extends QuotaRows {
  /** The time of the steady clock minus that of PostgreSQL's. */
  readonly aheadMs: number;
}

/** Decides one request after the other, and changes the quotas of their keys. `banned` are the keys that this bans. */
function chargeAll(
  requests: readonly LimitedRequest[],
  rows: ReadonlyMap<number, QuotaRow>,
  now: number,
  rules: BanRules,
): { readonly counted: Map<LimitedRequest, Counted>; readonly banned: readonly number[] } {
  const banned: number[] = [];
  const counted = new Map<LimitedRequest, Counted>();
  for (const request of requests) {
    const { keyId, limits } = request;
    const quota = rows.get(keyId)?.quota ?? newQuota();
    const outcome = charge(quota, limits, now, rules);
    if (outcome === "new ban") banned.push(keyId);
    counted.set(request, { decision: decisionOf(outcome, quota, limits, now), quota });
  }
  return { counted, banned };
}

/** The requests of a key. */
interface OfKey {
  readonly keyId: number;
  readonly limits: Limits;
  readonly requests: readonly LimitedRequest[];
}

/** The keys ascend, so that no two servers wait for each other. A key whose limits have just changed has one group. */
function byKey(requests: readonly LimitedRequest[]): readonly OfKey[] {
  const groups = Map.groupBy(requests, ({ keyId }) => keyId);
  return [...groups]
    .toSorted(([one], [other]) => one - other)
    .flatMap(([keyId, [first, ...others]]) => {
      if (first === undefined) return [];
      const { perMinute, perDay } = first.limits;
      const isSame = ({ limits }: LimitedRequest) =>
        limits.perMinute === perMinute && limits.perDay === perDay;
      return { keyId, limits: first.limits, requests: [first, ...others.filter(isSame)] };
    });
}

/** The request is rejected, so nothing but its count is unknown. */
function withKnownOutcome<T>(result: Promise<T>): Promise<T> {
  return result.catch((error: unknown) => {
    throw error instanceof OutcomeUnknown ? new Unavailable(messageOf(error), { cause: error }) : error;
  });
}
