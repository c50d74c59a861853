import { type Awaitable, type ScheduledTimer, type Scheduler, scheduler } from "../../runtime/event-loop.ts";
import { Overloaded } from "../../api/errors.ts";
import type { Clock, RateLimiter } from "../../domain/ports.ts";
import {
  type Ban,
  type BanRules,
  type Decision,
  DEFAULT_DECISION_TIMEOUT_MS,
  describe,
  type Limits,
  type OnBan,
  shift,
  shiftDecision,
  type Subject,
  type Quota,
} from "../../domain/rate-limit.ts";
import { Availability, type AvailabilityOptions } from "./availability.ts";
import type { DecisionRequest, GroupReply, KeyReport, KeySubject, Replies, RequestGroup } from "./script.ts";
import { Shares } from "./shares.ts";

export interface SharedRateLimiterOptions extends Partial<Omit<AvailabilityOptions, "open">> {
  readonly clock: Clock;
  /** The rules now. */
  readonly ban: () => BanRules;
  /** Returns how many servers share the limits; by default there is no other. */
  readonly serverCount?: (() => number) | undefined;
  /** Decides for addresses. The rate limiter closes it. */
  readonly local: RateLimiter;
  /** Called after each batch of decisions. */
  readonly onResponse?: ((ms: number) => void) | undefined;
  /** Called for each new ban that a request of this server has caused. */
  readonly onBan?: OnBan | undefined;
  /** Called once for each ban that a request of another server has caused, or one whose reply was lost. */
  readonly onEarlierBan?: OnBan | undefined;
}

interface LinkOptions extends Pick<AvailabilityOptions, "open"> {
  /** Whether a batch may contain one key only. */
  readonly isCluster: boolean;
  /** The maximum of requests in a batch. */
  readonly maxBatchSize: number;
  readonly maxConcurrentBatches: number;
}

/** The maximum of keys that a batch reports. */
const MAX_REPORTS = 32;
/** The maximum of requests that wait for a batch. Valkey decides as many in about a tenth of a second. */
const MAX_QUEUED = 10_000;
/**
 * The timeout is counted in ticks of our own event loop. When this process itself is blocked, its timer fires once,
 * however late, and replies that arrived meanwhile are read before it fires again. The first tick of a batch may follow
 * at once, so one more has to pass.
 */
const TICKS_PER_TIMEOUT = 10;

interface WaitingRequest extends DecisionRequest {
  readonly resolve: (decision: Decision) => void;
}

interface Group extends RequestGroup {
  readonly requests: WaitingRequest[];
  /** The number of requests that this server has allowed because Valkey did not reply in time. */
  allowedHere: number;
}

/** Reports and requests that are sent together. Either may be missing. */
interface Batch {
  readonly reports: readonly KeyReport[];
  readonly groups: readonly Group[];
  /** The time by the steady clock. */
  readonly sentAt: number;
  ticks: number;
  /** Whether Valkey did not reply in time, so this server has decided the requests. */
  isLate: boolean;
  readonly onEnd: () => void;
}

/**
 * Rate limits of keys that all servers share. Valkey counts exactly, by its own clock. Requests that arrive in one
 * iteration of the event loop, or while a batch is sent, form a batch, so a busy server sends few large ones. Each
 * server counts addresses in its own process, because anybody can send from many and could fill Valkey.
 *
 * An outage begins when Valkey has not replied for `timeoutMs` or its connection fails. From then on this server
 * decides by its shares, without waiting. When Valkey replies again, this server reports what it has allowed. It
 * decides by its shares for another half second, so that the other servers can report too; then the outage ends. What
 * was allowed meanwhile is reported before the next decision about the key.
 *
 * A silent connection stays open, because what Valkey counts late need not be reported. A report or batch whose
 * connection breaks may have been counted and is reported again: counting twice is safer than not at all.
 *
 * A cluster is available as a whole or not at all: it is unavailable until every node serves its keys.
 */
export class SharedRateLimiter implements RateLimiter {
  readonly #options: SharedRateLimiterOptions;
  readonly #links: LinkOptions;
  readonly #scheduler: Scheduler;
  readonly #shares = new Shares();
  readonly #valkey: Availability;
  readonly #bans: BanReporter;
  readonly #timeoutMs: number;
  #queue: WaitingRequest[] = [];
  /** The batches without a reply. */
  readonly #sent = new Set<Batch>();
  #timeout: ScheduledTimer | undefined;

  constructor(options: SharedRateLimiterOptions, links: LinkOptions) {
    this.#options = options;
    this.#links = links;
    this.#scheduler = options.scheduler ?? scheduler;
    this.#timeoutMs = options.timeoutMs ?? DEFAULT_DECISION_TIMEOUT_MS;
    this.#bans = new BanReporter(options);
    this.#valkey = new Availability(
      { ...options, open: links.open, timeoutMs: this.#timeoutMs, scheduler: this.#scheduler },
      {
        isWaiting: () => this.#sent.size > 0,
        onUnavailable: () => this.#decideAllHere(),
        onReply: () => this.#sendQueue(),
        onDrop: () => this.#forgetSent(),
      },
    );
  }

  start(): Promise<void> {
    return this.#valkey.start();
  }

  /** The number of requests that wait for the next batch. */
  get queueLength(): number {
    return this.#queue.length;
  }

  decide(subject: Subject, limits: Limits): Awaitable<Decision> {
    if (subject.kind === "address") return this.#options.local.decide(subject, limits);
    if (!this.#valkey.isAvailable) return this.#decideHere({ subject, limits });
    // An overload is different from an outage: Valkey still counts.
    if (this.#queue.length >= MAX_QUEUED) {
      return Promise.reject(new Overloaded(`the queue for Valkey is full (${MAX_QUEUED} requests)`));
    }
    return new Promise((resolve) => {
      if (this.#queue.push({ subject, limits, resolve }) > 1) return;
      this.#scheduler.atEndOfIteration(() => this.#valkey.isAvailable && this.#sendQueue());
    });
  }

  peek(subject: Subject, limits: Limits): Decision {
    if (subject.kind === "address") return this.#options.local.peek(subject, limits);
    return this.#onWallClock(this.#shares.peek({ subject, limits }, this.#decisionContext()));
  }

  /** Returns what this server knows while Valkey does not reply. */
  async quota(subject: Subject): Promise<Quota | undefined> {
    if (subject.kind === "address") return this.#options.local.quota(subject);
    const { link, isAvailable } = this.#valkey;
    if (link && isAvailable) {
      try {
        const { quota, now } = await link.quota(subject);
        if (quota) shift(quota, this.#options.clock.now() - now);
        return quota;
      } catch {
        // A failed read does not begin an outage.
      }
    }
    const { clock } = this.#options;
    const quota = this.#shares.quota(subject, clock.steadyNow());
    if (quota) shift(quota, clock.stepMs);
    return quota;
  }

  bannedKeys(): undefined {
    return undefined;
  }

  /** Resolves when Valkey has applied the unban, and at once in an outage. */
  async unban(subject: Subject, agoMs: number): Promise<void> {
    if (subject.kind === "address") return this.#options.local.unban(subject, agoMs);
    this.#shares.unban(subject, this.#options.clock.steadyNow() - agoMs);
    if (!this.#valkey.isAvailable) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    void this.#send([], [subject], resolve);
    await promise;
  }

  async close(): Promise<void> {
    this.#timeout?.close();
    this.#valkey.close();
    await this.#options.local.close();
  }

  #decisionContext() {
    const { clock, serverCount = () => 1 } = this.#options;
    return { servers: this.#valkey.isAvailable ? 1 : serverCount(), now: clock.steadyNow() };
  }

  /** Decides by this server's share. */
  #decideHere(request: DecisionRequest): Decision {
    return this.#onWallClock(this.#shares.decide(request, this.#decisionContext()));
  }

  /** Moves a decision of the shares, which use the steady clock, to the wall clock. */
  #onWallClock(decision: Decision): Decision {
    const { stepMs } = this.#options.clock;
    return stepMs === 0 ? decision : shiftDecision(decision, stepMs);
  }

  #sendQueue(): void {
    const { isCluster, maxBatchSize, maxConcurrentBatches } = this.#links;
    while (this.#queue.length > 0 && this.#sent.size < maxConcurrentBatches) {
      const groups = groupsOf(this.#queue.splice(0, maxBatchSize));
      if (isCluster) for (const group of groups) void this.#send([group]);
      else void this.#send(groups);
    }
    while (this.#valkey.link && this.#shares.hasReports && this.#sent.size < maxConcurrentBatches) {
      void this.#send([]);
    }
  }

  /** Sends what this server has allowed of these keys, and of some more, and then the requests. */
  async #send(
    groups: readonly Group[],
    subjects = groups.map(({ subject }) => subject),
    onEnd = () => {},
  ): Promise<void> {
    const { link } = this.#valkey;
    if (link === undefined) return;
    const sentAt = this.#options.clock.steadyNow();
    const reports = this.#shares.hasReports ? this.#takeReports(subjects, sentAt) : [];
    if (groups.length + reports.length === 0) return onEnd();
    const batch: Batch = { reports, groups, sentAt, ticks: 0, isLate: false, onEnd };
    this.#sent.add(batch);
    this.#timeout ??= this.#startTimeout();
    const startedAt = this.#scheduler.now();
    try {
      const replies = await link.decide(groups, reports);
      if (link !== this.#valkey.link) return;
      this.#sent.delete(batch);
      if (groups.length > 0) this.#options.onResponse?.(this.#scheduler.now() - startedAt);
      // The next batch is sent before the responses to this one.
      if (this.#valkey.isReplying) this.#sendQueue();
      this.#takeReplies(batch, replies);
    } catch (cause) {
      this.#valkey.failed(link, cause, firstOf(batch));
      return;
    }
    onEnd();
    if (this.#sent.size === 0) this.#valkey.replied();
  }

  #takeReports(subjects: readonly KeySubject[], now: number): readonly KeyReport[] {
    const ofOneKey = subjects.length > 0 ? 0 : 1;
    return this.#shares.takeReports(subjects, this.#links.isCluster ? ofOneKey : MAX_REPORTS, now);
  }

  /**
   * Applies the replies. Their times, by Valkey's clock, are moved to this server's clock. A late reply may be of any
   * age, so its times are unknown, and it only says what need not be reported.
   */
  #takeReplies({ reports, groups, isLate }: Batch, { now: valkeyNow, reported, decided }: Replies): void {
    const now = this.#options.clock.steadyNow();
    reports.forEach(({ subject }, i) => {
      const quota = reported[i];
      if (quota === undefined || isLate) return;
      shift(quota, now - valkeyNow);
      this.#shares.learn(subject, quota, now);
    });
    groups.forEach((group, i) => {
      const reply = decided[i];
      if (reply === undefined) return;
      const { subject, requests, allowedHere } = group;
      const { allowed, limited, isNewBan, quota } = reply;
      if (allowed + limited < requests.length) this.#bans.report(subject.id, quota, isNewBan);
      if (isLate) return this.#shares.countedLate(subject, Math.min(allowed, allowedHere));
      shift(quota, now - valkeyNow);
      this.#respond(group, reply, now);
      this.#shares.learn(subject, quota, now);
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
      resolve(this.#onWallClock(describe(outcome, quota, limits, now)));
    });
  }

  #startTimeout(): ScheduledTimer {
    return this.#scheduler.setTimeout(() => this.#tick(), this.#timeoutMs / TICKS_PER_TIMEOUT);
  }

  #tick(): void {
    this.#timeout = undefined;
    if (!this.#valkey.isReplying) return;
    for (const batch of this.#sent) {
      batch.ticks++;
      if (batch.ticks > TICKS_PER_TIMEOUT) {
        const cause = new Error(`no response within ${this.#timeoutMs} ms`);
        return this.#valkey.beginOutage(cause, firstOf(batch));
      }
    }
    if (this.#sent.size > 0) this.#timeout = this.#startTimeout();
  }

  #decideAllHere(): void {
    for (const batch of this.#sent) {
      if (batch.isLate) continue;
      batch.isLate = true;
      for (const group of batch.groups) {
        for (const request of group.requests) {
          const decision = this.#decideHere(request);
          if (decision.outcome === "allowed") group.allowedHere++;
          request.resolve(decision);
        }
      }
      batch.onEnd();
    }
    for (const request of this.#queue.splice(0)) request.resolve(this.#decideHere(request));
  }

  /** Valkey may not have counted what it has not replied to, so it is reported again. */
  #forgetSent(): void {
    for (const { reports, sentAt } of this.#sent)
      for (const report of reports) this.#shares.putBack(report, sentAt);
    this.#sent.clear();
  }
}

const MAX_REPORTED_BANS = 10_000;

/** Reports each ban once, although Valkey repeats it in each reply about the key. */
class BanReporter {
  /** The ends of bans that were reported, by key; the oldest is dropped when there are too many. */
  readonly #ends = new Map<number, number>();

  constructor(private readonly options: Pick<SharedRateLimiterOptions, "onBan" | "onEarlierBan">) {}

  report(keyId: number, { bannedAt, bannedUntil }: Ban, isNew: boolean): void {
    if (this.#ends.get(keyId) === bannedUntil) return;
    this.#ends.delete(keyId);
    this.#ends.set(keyId, bannedUntil);
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > MAX_REPORTED_BANS && oldest !== undefined) this.#ends.delete(oldest);
    const { onBan, onEarlierBan } = this.options;
    (isNew ? onBan : onEarlierBan)?.(keyId, { bannedAt, bannedUntil });
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
    const group = { subject, limits, requests: [request], allowedHere: 0 };
    lastOf.set(subject.id, group);
    groups.push(group);
  }
  return groups;
}

function firstOf({ reports, groups }: Batch): KeySubject | undefined {
  return (reports[0] ?? groups[0])?.subject;
}
