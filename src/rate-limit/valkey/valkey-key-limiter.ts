import type { Awaitable } from "../../runtime/awaitable.ts";
import { BoundedMap } from "../../runtime/bounded-map.ts";
import { type ScheduledTimer, type Scheduler, scheduler } from "../../runtime/scheduler.ts";
import { Overloaded } from "../../api/errors.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import type { BanRules } from "../../domain/ban-rules.ts";
import {
  copyOf,
  type Decision,
  decisionOf,
  isExpired,
  type KeySubject,
  type Limits,
  merge,
  NEVER,
  newQuota,
  shift,
  shiftDecision,
  type Quota,
} from "../../domain/rate-limit.ts";
import { BanReporter } from "../../domain/key-counting.ts";
import type { BanListeners, KeyCounter, KeyLimiter } from "../../domain/ports/rate-limiter.ts";
import { type QuotaHandOver, KnownQuotas } from "../known-quotas.ts";
import { Availability, type AvailabilityOptions } from "./availability.ts";
import type { LimiterConnection } from "./connection.ts";
import type { DecisionRequest, GroupReply, KeyHandOver, Replies, RequestGroup } from "./script.ts";

export interface ValkeyKeyLimiterOptions
  extends
    Pick<AvailabilityOptions, "timeoutMs">,
    Partial<Pick<AvailabilityOptions, "onStateChange" | "scheduler">>,
    BanListeners {
  readonly clock: Clock;
  /** The rules now. */
  readonly ban: () => BanRules;
  /** Counts while Valkey is unavailable. The rate limiter closes it. */
  readonly counter: KeyCounter;
  /** Called after each batch of decisions. */
  readonly onResponse?: ((ms: number) => void) | undefined;
}

/** What a batch may contain, and how many are sent at once. */
interface BatchingOptions {
  /** Whether a batch may contain one key only. */
  readonly isCluster: boolean;
  /** The maximum of requests in a batch. */
  readonly maxBatchSize: number;
  readonly maxConcurrentBatches: number;
}

/** The maximum of unbans of an outage in a batch. */
const MAX_UNBANS = 32;
/** The maximum of unbans that wait until Valkey is available; the oldest are forgotten. */
const MAX_WAITING_UNBANS = 50_000;
/** The maximum of requests that wait for a batch. Valkey decides as many in about a tenth of a second. */
const MAX_QUEUED = 10_000;
/**
 * The timeout is counted in ticks of our own event loop. When this process itself is blocked, its timer fires once,
 * however late, and replies that arrived meanwhile are read before it fires again. The first tick of a batch may follow
 * at once, so one more has to pass.
 */
const TICKS_PER_TIMEOUT = 10;

interface WaitingRequest extends DecisionRequest {
  readonly resolve: (decision: Awaitable<Decision>) => void;
}

interface Group extends RequestGroup {
  readonly requests: WaitingRequest[];
}

/** What is handed over and requests that are sent together. Either may be missing. */
interface Batch {
  readonly handOvers: readonly KeyHandOver[];
  readonly groups: readonly Group[];
  /** The time by the steady clock. */
  readonly sentAt: number;
  /** The unbans that are handed over. */
  readonly unbans: readonly (readonly [keyId: number, at: number])[];
  ticks: number;
  /** Whether Valkey did not reply in time, so the KeyCounter decides the requests. */
  isLate: boolean;
  /** Called when Valkey has replied, or nothing may wait for it any longer. */
  readonly onEnd: () => void;
}

/**
 * Limits keys together with all servers on a Valkey, which counts exactly, by its own clock. Requests that arrive in
 * one iteration of the event loop, or while a batch is sent, form a batch, so a busy server sends few large ones.
 *
 * An outage begins when Valkey has not replied for `timeoutMs` or its connection fails. From then on a KeyCounter
 * decides, until Valkey replies again. Whoever takes over learns with the first request of a key what this server knows
 * of it. So each request that a server knows to be allowed is counted in at least one of the two, and each of them
 * allows the limit: together twice the limit at most.
 *
 * A silent connection stays open: Valkey may reply on it. A request without a reply may be counted by both.
 *
 * A cluster is available as a whole or not at all: it is unavailable until every node serves its keys.
 */
export class ValkeyKeyLimiter implements KeyLimiter {
  readonly #options: ValkeyKeyLimiterOptions;
  readonly #openConnection: AvailabilityOptions["open"];
  readonly #batching: BatchingOptions;
  readonly #scheduler: Scheduler;
  readonly #known: KnownQuotas;
  /** The times of unbans that Valkey does not know of, by key. */
  readonly #unbans = new BoundedMap<number, number>(MAX_WAITING_UNBANS);
  readonly #valkey: Availability;
  readonly #bans: BanReporter;
  readonly #timeoutMs: number;
  #queue: WaitingRequest[] = [];
  /** The batches without a reply. */
  readonly #sent = new Set<Batch>();
  #timeout: ScheduledTimer | undefined;
  /** The time of Valkey's clock minus that of the steady clock. It is never too small: no window closes early. */
  #valkeyAheadMs = 0;

  constructor(
    options: ValkeyKeyLimiterOptions,
    openConnection: AvailabilityOptions["open"],
    batching: BatchingOptions,
  ) {
    this.#options = options;
    this.#openConnection = openConnection;
    this.#batching = batching;
    this.#scheduler = options.scheduler ?? scheduler;
    this.#timeoutMs = options.timeoutMs;
    this.#bans = new BanReporter(options);
    this.#known = new KnownQuotas(options.clock);
    this.#valkey = new Availability(
      {
        ...options,
        open: (subject) => this.#connect(subject),
        timeoutMs: this.#timeoutMs,
        scheduler: this.#scheduler,
      },
      {
        isWaiting: () => this.#sent.size > 0,
        onUnavailable: () => this.#leaveValkey(),
        onAvailable: () => this.#returnToValkey(),
        onDrop: () => this.#sent.clear(),
      },
    );
  }

  start(): Promise<void> {
    return this.#valkey.start();
  }

  /** The number of requests that wait for a decision. */
  get queueLength(): number {
    return this.#queue.length + this.#options.counter.queueLength;
  }

  decide(subject: KeySubject, limits: Limits): Promise<Decision> {
    if (!this.#valkey.isAvailable) return this.#decideWithoutValkey({ subject, limits });
    // An overload is different from an outage: Valkey still counts.
    if (this.#queue.length >= MAX_QUEUED) {
      return Promise.reject(new Overloaded(`the queue for Valkey is full (${MAX_QUEUED} requests)`));
    }
    return new Promise((resolve) => {
      if (this.#queue.push({ subject, limits, resolve }) > 1) return;
      this.#scheduler.atEndOfIteration(() => this.#valkey.isAvailable && this.#sendQueue());
    });
  }

  peek({ id }: KeySubject, limits: Limits): Decision {
    return this.#known.peek(id, limits);
  }

  /** While Valkey does not reply, returns what this server and the other counter know. */
  async quota(subject: KeySubject): Promise<Quota | undefined> {
    const { connection, isAvailable } = this.#valkey;
    const { clock, counter } = this.#options;
    if (connection && isAvailable) {
      try {
        const { quota, now } = await connection.quota(subject);
        if (quota) shift(quota, clock.now() - now);
        return quota;
      } catch {
        // A failed read does not begin an outage.
      }
    }
    const quota = (await counter.quota(subject.id)) ?? newQuota();
    const now = clock.steadyNow();
    merge(quota, this.#known.quotaOf(subject.id), now);
    if (isExpired(quota, now)) return undefined;
    shift(quota, clock.stepMs);
    return quota;
  }

  /** Resolves when both counters have applied the unban; in an outage Valkey does it afterwards. */
  async unban(subject: KeySubject, agoMs: number): Promise<void> {
    const { id } = subject;
    const at = this.#options.clock.steadyNow() - agoMs;
    this.#known.unban(id, at);
    this.#unbans.set(id, Math.max(at, this.#unbans.get(id) ?? NEVER));
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    if (this.#valkey.isAvailable) void this.#send([], [subject], resolve);
    else resolve();
    await Promise.all([this.#options.counter.unban(id, agoMs), ended]);
  }

  async close(): Promise<void> {
    this.#timeout?.close();
    this.#valkey.close();
    await this.#options.counter.close();
  }

  #decideWithoutValkey({ subject, limits }: DecisionRequest): Promise<Decision> {
    return this.#known.decide(this.#options.counter, subject.id, limits);
  }

  #sendQueue(): void {
    const { isCluster, maxBatchSize, maxConcurrentBatches } = this.#batching;
    while (this.#queue.length > 0 && this.#sent.size < maxConcurrentBatches) {
      const groups = groupsOf(this.#queue.splice(0, maxBatchSize));
      if (isCluster) for (const group of groups) void this.#send([group]);
      else void this.#send(groups);
    }
  }

  /** Sends what Valkey has to learn of these keys, and then the requests. */
  async #send(
    groups: readonly Group[],
    subjects = groups.map(({ subject }) => subject),
    onEnd = () => {},
  ): Promise<void> {
    const { connection } = this.#valkey;
    if (connection === undefined) return onEnd();
    const handOvers = groups.map(({ subject }) => this.#known.handOverFor(subject.id));
    const keys = this.#keyHandOversOf(subjects, handOvers);
    const unbans = subjects.flatMap(({ id }) => {
      const at = this.#unbans.get(id);
      return at === undefined ? [] : [[id, at] as const];
    });
    const sentAt = this.#options.clock.steadyNow();
    const batch: Batch = { handOvers: keys, groups, sentAt, unbans, ticks: 0, isLate: false, onEnd };
    this.#sent.add(batch);
    this.#timeout ??= this.#startTimeout();
    const startedAt = this.#scheduler.now();
    try {
      const replies = await connection.decide(groups, keys);
      if (connection !== this.#valkey.connection) return;
      this.#sent.delete(batch);
      if (groups.length > 0) this.#options.onResponse?.(this.#scheduler.now() - startedAt);
      // The next batch is sent before the responses to this one.
      if (this.#valkey.isAvailable) this.#sendQueue();
      this.#takeReplies(batch, handOvers, replies);
    } catch (cause) {
      this.#valkey.failed(connection, cause, firstOf(batch));
      return;
    }
    onEnd();
    if (this.#sent.size === 0) this.#valkey.replied();
  }

  /** Times are those of Valkey's clock, since a batch may be late. */
  #keyHandOversOf(
    subjects: readonly KeySubject[],
    handOvers: readonly QuotaHandOver[],
  ): readonly KeyHandOver[] {
    return subjects.flatMap((subject, i) => {
      const [known, unbannedAt] = [handOvers[i]?.quota, this.#unbans.get(subject.id)];
      if (known === undefined && unbannedAt === undefined) return [];
      const quota = known ? copyOf(known) : newQuota();
      shift(quota, this.#valkeyAheadMs);
      return [
        { subject, quota, unbannedAt: unbannedAt === undefined ? NEVER : unbannedAt + this.#valkeyAheadMs },
      ];
    });
  }

  /** Opens a connection, and learns what time it is there. */
  async #connect(subject: KeySubject): Promise<LimiterConnection> {
    const connection = await this.#openConnection(subject);
    const { clock } = this.#options;
    const askedAt = clock.steadyNow();
    try {
      this.#valkeyAheadMs = (await connection.time()) - askedAt;
    } catch (error) {
      connection.close();
      throw error;
    }
    return connection;
  }

  /**
   * Applies the replies. Their times, by Valkey's clock, are moved to this server's clock. A late reply may be of any
   * age, so its times are unknown.
   */
  #takeReplies(
    { unbans, groups, sentAt, isLate }: Batch,
    handOvers: readonly QuotaHandOver[],
    { now: valkeyNow, decided }: Replies,
  ): void {
    const now = this.#options.clock.steadyNow();
    for (const [id, at] of unbans) if (this.#unbans.get(id) === at) this.#unbans.delete(id);
    if (!isLate) this.#valkeyAheadMs = valkeyNow - sentAt;
    groups.forEach((group, i) => {
      const [reply, handOver] = [decided[i], handOvers[i]];
      if (reply === undefined || handOver === undefined) return;
      const { subject, requests } = group;
      const { allowed, limited, isNewBan, quota } = reply;
      if (allowed + limited < requests.length) this.#bans.report(subject.id, quota, isNewBan);
      if (isLate) return;
      shift(quota, now - valkeyNow);
      this.#respond(group, reply, now);
      this.#known.learn(subject.id, quota, handOver, now);
    });
  }

  /** Resolves each request with its own count: `quota` is that after all requests of the group. */
  #respond({ limits, requests }: Group, { allowed, limited, quota }: GroupReply, now: number): void {
    const { minute, day } = quota;
    minute.used -= allowed;
    day.used -= allowed;
    requests.forEach(({ resolve }, i) => {
      const outcome = i < allowed ? "allowed" : i < allowed + limited ? "limited" : "banned";
      if (outcome === "allowed") {
        minute.used++;
        day.used++;
      }
      resolve(shiftDecision(decisionOf(outcome, quota, limits, now), this.#options.clock.stepMs));
    });
  }

  #startTimeout(): ScheduledTimer {
    return this.#scheduler.setTimeout(() => this.#tick(), this.#timeoutMs / TICKS_PER_TIMEOUT);
  }

  #tick(): void {
    this.#timeout = undefined;
    if (!this.#valkey.isAvailable) return;
    for (const batch of this.#sent) {
      batch.ticks++;
      if (batch.ticks > TICKS_PER_TIMEOUT) {
        const cause = new Error(`no response within ${this.#timeoutMs} ms`);
        return this.#valkey.beginOutage(cause, firstOf(batch));
      }
    }
    if (this.#sent.size > 0) this.#timeout = this.#startTimeout();
  }

  #leaveValkey(): void {
    this.#known.beginPeriod();
    for (const batch of this.#sent) {
      if (batch.isLate) continue;
      batch.isLate = true;
      for (const { requests } of batch.groups)
        for (const request of requests) request.resolve(this.#decideWithoutValkey(request));
      batch.onEnd();
    }
    for (const request of this.#queue.splice(0)) request.resolve(this.#decideWithoutValkey(request));
  }

  #returnToValkey(): void {
    this.#known.beginPeriod();
    const keys = [...this.#unbans.keys()].map((id) => ({ kind: "key", id }) as const);
    const size = this.#batching.isCluster ? 1 : MAX_UNBANS;
    for (let from = 0; from < keys.length; from += size) void this.#send([], keys.slice(from, from + size));
  }
}

/** Valkey reads and writes the quota of a key once for all requests of a group. */
function groupsOf(requests: readonly WaitingRequest[]): readonly Group[] {
  const groups: Group[] = [];
  const lastOf = new Map<number, Group>();
  for (const request of requests) {
    const { subject, limits } = request;
    const last = lastOf.get(subject.id);
    if (last?.limits.perMinute === limits.perMinute && last.limits.perDay === limits.perDay) {
      last.requests.push(request);
      continue;
    }
    const group = { subject, limits, requests: [request] };
    lastOf.set(subject.id, group);
    groups.push(group);
  }
  return groups;
}

function firstOf({ handOvers, groups }: Batch): KeySubject | undefined {
  return (handOvers[0] ?? groups[0])?.subject;
}
