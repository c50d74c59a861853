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
  type Subject,
  type Usage,
} from "../../domain/rate-limit.ts";
import { HEARTBEAT_MS, type HeartbeatRegister, parseRegister } from "../server-register.ts";
import { loggableError, type ValkeyLink } from "./connection.ts";
import type { DecisionRequest, GroupReply, KeyReport, KeySubject, Replies, RequestGroup } from "./script.ts";
import { Shares } from "./shares.ts";

type OnStateChange = (state: "available" | "unavailable", cause?: unknown) => void;

export interface SharedRateLimiterOptions {
  readonly clock: Clock;
  /** The rules now. */
  readonly ban: () => BanRules;
  /** Decides for addresses. The rate limiter closes it. */
  readonly local: RateLimiter;
  /** Called at each change, and at the start when Valkey is unavailable. */
  readonly onStateChange?: OnStateChange;
  /** Called after each batch of decisions. */
  readonly onResponse?: ((ms: number) => void) | undefined;
  /** Called for each new ban that a request of this server has caused. */
  readonly onBan?: OnBan | undefined;
  /** Called once for each ban that a request of another server has caused, or one whose reply was lost. */
  readonly onEarlierBan?: OnBan | undefined;
  /** How long Valkey may be silent while requests wait for it, before it counts as unavailable. */
  readonly timeoutMs?: number;
  /** The register of the servers that share the limits; by default there is no other. */
  readonly register?: Pick<HeartbeatRegister, "count" | "beat" | "leave"> | undefined;
  readonly scheduler?: Scheduler;
}

interface LinkOptions {
  /** Opens a connection on which requests of this key work. */
  readonly open: (subject: KeySubject) => Promise<ValkeyLink>;
  /** Whether a batch may contain one key only. */
  readonly isCluster: boolean;
  /** The maximum of requests in a batch. */
  readonly maxBatchSize: number;
  readonly maxConcurrentBatches: number;
}

/** The maximum of keys that a batch reports. */
const MAX_REPORTS = 32;
/** Valkey decides so many in about a tenth of a second. */
const MAX_QUEUED = 10_000;
/**
 * The timeout is counted in ticks of our own event loop. When this process itself is blocked, its timer fires once,
 * however late, and replies that arrived meanwhile are read before it fires again. The first tick of a batch may follow
 * at once, so one more has to pass.
 */
const TICKS_PER_TIMEOUT = 10;
/** A Valkey that works again is used again within a second. */
const RETRY_EVERY_MS = 250;
/** A connection that lasted this long may have failed for a moment only, so the first retry follows at once. */
const STABLE_AFTER_MS = 1_000;
/** The time in which every server that Valkey replies to again has reported. */
const RETURN_MS = 500;
const MAX_REPORTED_BANS = 10_000;
const ANY_KEY: KeySubject = { kind: "key", id: 0 };

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
  /** Whether this server has decided the requests, because Valkey did not reply in time. */
  isDecided: boolean;
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
  /** The ends of bans that were reported, by key; the oldest is dropped when there are too many. */
  readonly #reportedBans = new Map<number, number>();
  #queue: WaitingRequest[] = [];
  /** The batches without a reply. */
  readonly #sent = new Set<Batch>();
  #timeout: ScheduledTimer | undefined;
  #link: ValkeyLink | undefined;
  #linkedAt = 0;
  #isOutage = true;
  /** Set while Valkey is tried again. */
  #retryTimer: ScheduledTimer | undefined;
  #heartbeat: ScheduledTimer | undefined;
  /** Set from the first reply of Valkey until the outage ends. */
  #returnTimer: ScheduledTimer | undefined;
  #isClosed = false;

  constructor(options: SharedRateLimiterOptions, links: LinkOptions) {
    this.#options = options;
    this.#links = links;
    this.#scheduler = options.scheduler ?? scheduler;
  }

  async start(): Promise<void> {
    try {
      const link = await this.#links.open(ANY_KEY);
      await this.#options.register?.beat(link);
      this.#use(link);
      this.#isOutage = this.#isClosed;
    } catch (cause) {
      this.#retryIn(RETRY_EVERY_MS, ANY_KEY);
      this.#changeState("unavailable", cause);
    }
  }

  /** The number of requests that wait for the next batch. */
  get queueLength(): number {
    return this.#queue.length;
  }

  decide(subject: Subject, limits: Limits): Awaitable<Decision> {
    if (subject.kind === "address") return this.#options.local.decide(subject, limits);
    if (this.#isOutage) return this.#decideHere({ subject, limits });
    // An overload is different from an outage: Valkey still counts.
    if (this.#queue.length >= MAX_QUEUED) {
      return Promise.reject(new Overloaded(`the queue for Valkey is full (${MAX_QUEUED} requests)`));
    }
    return new Promise((resolve) => {
      if (this.#queue.push({ subject, limits, resolve }) > 1) return;
      this.#scheduler.atEndOfIteration(() => this.#isOutage || this.#sendQueue());
    });
  }

  peek(subject: Subject, limits: Limits): Decision {
    if (subject.kind === "address") return this.#options.local.peek(subject, limits);
    return this.#onWallClock(this.#shares.peek({ subject, limits }, this.#decisionContext()));
  }

  /** Returns what this server knows while Valkey does not reply. */
  async usage(subject: Subject): Promise<Usage | undefined> {
    if (subject.kind === "address") return this.#options.local.usage(subject);
    if (this.#link && !this.#isOutage) {
      try {
        const { usage, now } = await this.#link.usage(subject);
        if (usage) shift(usage, this.#options.clock.now() - now);
        return usage;
      } catch {
        // A failed read does not begin an outage.
      }
    }
    const { clock } = this.#options;
    const usage = this.#shares.usage(subject, clock.steadyNow());
    if (usage) shift(usage, clock.stepMs);
    return usage;
  }

  /** Returns the servers in the register; none in an outage. */
  async readRegister(): Promise<ReturnType<typeof parseRegister>> {
    const contents = this.#isOutage ? undefined : await this.#link?.servers();
    return contents ? parseRegister(contents, this.#options.clock.now()) : { servers: [], lost: [] };
  }

  bannedKeys(): undefined {
    return undefined;
  }

  /** Resolves when Valkey has applied the unban, and at once in an outage. */
  async unban(subject: Subject, agoMs: number): Promise<void> {
    if (subject.kind === "address") return this.#options.local.unban(subject, agoMs);
    this.#shares.unban(subject, this.#options.clock.steadyNow() - agoMs);
    if (this.#isOutage) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    void this.#send([], [subject], resolve);
    await promise;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#heartbeat?.close();
    this.#timeout?.close();
    this.#retryTimer?.close();
    this.#returnTimer?.close();
    const link = this.#isOutage ? undefined : this.#link;
    this.#isOutage = true;
    this.#decideAllHere();
    if (link) await this.#options.register?.leave(link);
    this.#dropLink();
    await this.#options.local.close();
  }

  #decisionContext() {
    const { clock, register } = this.#options;
    return { servers: (this.#isOutage && register?.count) || 1, now: clock.steadyNow() };
  }

  /** Decides by this server's share. */
  #decideHere(request: DecisionRequest): Decision {
    return this.#onWallClock(this.#shares.decide(request, this.#decisionContext()));
  }

  /** Moves a decision of the shares, which use the steady clock, to the wall clock. */
  #onWallClock(decision: Decision): Decision {
    const { stepMs } = this.#options.clock;
    return stepMs === 0 ? decision : { ...decision, resetAt: decision.resetAt + Math.ceil(stepMs / 1000) };
  }

  #sendQueue(): void {
    const { isCluster, maxBatchSize, maxConcurrentBatches } = this.#links;
    while (this.#queue.length > 0 && this.#sent.size < maxConcurrentBatches) {
      const groups = groupsOf(this.#queue.splice(0, maxBatchSize));
      if (isCluster) for (const group of groups) void this.#send([group]);
      else void this.#send(groups);
    }
    while (this.#link && this.#shares.hasReports && this.#sent.size < maxConcurrentBatches) {
      void this.#send([]);
    }
  }

  /** Sends what this server has allowed of these keys, and of some more, and then the requests. */
  async #send(
    groups: readonly Group[],
    subjects = groups.map(({ subject }) => subject),
    onEnd = () => {},
  ): Promise<void> {
    const link = this.#link;
    if (link === undefined) return;
    const sentAt = this.#options.clock.steadyNow();
    const reports = this.#shares.hasReports ? this.#takeReports(subjects, sentAt) : [];
    if (groups.length + reports.length === 0) return onEnd();
    const batch: Batch = { reports, groups, sentAt, ticks: 0, isDecided: false, onEnd };
    this.#sent.add(batch);
    this.#timeout ??= this.#startTimeout();
    const startedAt = this.#scheduler.now();
    try {
      const replies = await link.decide(groups, reports);
      if (link !== this.#link) return;
      this.#sent.delete(batch);
      if (groups.length > 0) this.#options.onResponse?.(this.#scheduler.now() - startedAt);
      // The next batch is sent before the responses to this one.
      if (!this.#isOutage || this.#returnTimer) this.#sendQueue();
      this.#takeReplies(batch, replies);
    } catch (cause) {
      this.#linkFailed(link, cause, firstOf(batch));
      return;
    }
    onEnd();
    if (this.#isOutage && !this.#returnTimer && this.#sent.size === 0) this.#return();
  }

  #takeReports(subjects: readonly KeySubject[], now: number): readonly KeyReport[] {
    const ofOneKey = subjects.length > 0 ? 0 : 1;
    return this.#shares.takeReports(subjects, this.#links.isCluster ? ofOneKey : MAX_REPORTS, now);
  }

  /** Applies the replies. Their times, by Valkey's clock, are moved to this server's clock. */
  #takeReplies({ reports, groups, isDecided }: Batch, { now: valkeyNow, reported, decided }: Replies): void {
    const now = this.#options.clock.steadyNow();
    reports.forEach(({ subject }, i) => {
      const usage = reported[i];
      if (usage === undefined) return;
      shift(usage, now - valkeyNow);
      this.#shares.learn(subject, usage, now);
    });
    groups.forEach((group, i) => {
      const reply = decided[i];
      if (reply === undefined) return;
      const { subject, requests, allowedHere } = group;
      const { allowed, limited, isNewBan, usage } = reply;
      if (allowed + limited < requests.length) this.#reportBan(subject.id, usage, isNewBan);
      shift(usage, now - valkeyNow);
      if (isDecided) this.#shares.countedLate(subject, Math.min(allowed, allowedHere));
      else this.#respond(group, reply, now);
      this.#shares.learn(subject, usage, now);
    });
  }

  /** Resolves each request with its own count: `usage` is that after all requests of the group. */
  #respond({ limits, requests }: Group, { allowed, limited, usage }: GroupReply, now: number): void {
    const { minute, day } = usage;
    minute.used -= allowed;
    day.used -= allowed;
    requests.forEach(({ resolve }, i) => {
      const outcome = i < allowed ? "allowed" : i < allowed + limited ? "limited" : "banned";
      if (outcome === "allowed") {
        minute.used++;
        day.used++;
      }
      resolve(this.#onWallClock(describe(outcome, usage, limits, now)));
    });
  }

  #reportBan(keyId: number, { bannedAt, bannedUntil }: Ban, isNew: boolean): void {
    if (this.#reportedBans.get(keyId) === bannedUntil) return;
    this.#reportedBans.delete(keyId);
    this.#reportedBans.set(keyId, bannedUntil);
    const [oldest] = this.#reportedBans.keys();
    if (this.#reportedBans.size > MAX_REPORTED_BANS && oldest !== undefined)
      this.#reportedBans.delete(oldest);
    const { onBan, onEarlierBan } = this.#options;
    (isNew ? onBan : onEarlierBan)?.(keyId, { bannedAt, bannedUntil });
  }

  get #timeoutMs(): number {
    return this.#options.timeoutMs ?? DEFAULT_DECISION_TIMEOUT_MS;
  }

  #startTimeout(): ScheduledTimer {
    return this.#scheduler.setTimeout(() => this.#tick(), this.#timeoutMs / TICKS_PER_TIMEOUT);
  }

  #tick(): void {
    this.#timeout = undefined;
    if (this.#isOutage && !this.#returnTimer) return;
    for (const batch of this.#sent) {
      batch.ticks++;
      if (batch.ticks > TICKS_PER_TIMEOUT) {
        this.#beginOutage(new Error(`no response within ${this.#timeoutMs} ms`));
        this.#retryIn(RETRY_EVERY_MS, firstOf(batch));
        return;
      }
    }
    if (this.#sent.size > 0) this.#timeout = this.#startTimeout();
  }

  #beginOutage(cause: unknown): void {
    this.#returnTimer?.close();
    this.#returnTimer = undefined;
    if (this.#isOutage) return;
    this.#isOutage = true;
    this.#decideAllHere();
    this.#changeState("unavailable", cause);
  }

  #decideAllHere(): void {
    for (const batch of this.#sent) {
      if (batch.isDecided) continue;
      batch.isDecided = true;
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

  /** Called when Valkey replies again. */
  #return(): void {
    if (this.#isClosed) return;
    this.#retryTimer?.close();
    this.#retryTimer = undefined;
    this.#returnTimer = this.#scheduler.setTimeout(() => this.#endOutage(), RETURN_MS);
    this.#sendQueue();
  }

  #endOutage(): void {
    this.#returnTimer = undefined;
    this.#isOutage = false;
    this.#changeState("available");
    this.#sendQueue();
    void this.beat();
  }

  #linkFailed(link: ValkeyLink, cause: unknown, subject = ANY_KEY): void {
    if (link !== this.#link) return;
    this.#beginOutage(cause);
    this.#dropLink();
    if (this.#retryTimer) return;
    const wasStable = this.#scheduler.now() - this.#linkedAt >= STABLE_AFTER_MS;
    this.#retryIn(wasStable ? 0 : RETRY_EVERY_MS, subject);
  }

  #dropLink(): void {
    const link = this.#link;
    this.#link = undefined;
    for (const { reports, sentAt } of this.#sent)
      for (const report of reports) this.#shares.putBack(report, sentAt);
    this.#sent.clear();
    link?.close();
  }

  #use(link: ValkeyLink): void {
    if (this.#isClosed) return link.close();
    this.#dropLink();
    this.#link = link;
    this.#linkedAt = this.#scheduler.now();
    this.#heartbeat ??= this.#startHeartbeat();
    link.onEnd(() => this.#linkFailed(link, new Error("the connection was closed")));
  }

  #startHeartbeat(): ScheduledTimer | undefined {
    const { register } = this.#options;
    const timer = register && this.#scheduler.setInterval(() => void this.beat(), HEARTBEAT_MS);
    timer?.unref();
    return timer;
  }

  /** Sends a heartbeat, and sends it again on a new connection if the current one is silent: it may be dead. */
  async beat(): Promise<void> {
    const link = this.#link;
    const { register } = this.#options;
    if (link === undefined || register === undefined || this.#isOutage) return;
    if (await register.beat(link)) return;
    const other = await this.#links.open(ANY_KEY).catch(() => undefined);
    if (other === undefined) return;
    if (link !== this.#link || this.#isOutage || this.#sent.size > 0) return other.close();
    this.#use(other);
    await register.beat(other);
  }

  #retryIn(ms: number, subject: KeySubject): void {
    if (this.#isClosed) return;
    this.#retryTimer = this.#scheduler.setTimeout(() => void this.#retry(subject), ms);
    this.#retryTimer.unref();
  }

  /** Opens another connection, because the silent one may be dead while Valkey works. */
  async #retry(subject: KeySubject): Promise<void> {
    const timer = this.#retryTimer;
    const link = await this.#links.open(subject).catch(() => undefined);
    // Valkey has replied on the new connection. Late replies on the old one arrive about now, if at all.
    if (link && this.#sent.size > 0) await this.#scheduler.sleep(this.#timeoutMs);
    if (this.#isClosed || timer !== this.#retryTimer) return link?.close();
    if (link === undefined) return this.#retryIn(RETRY_EVERY_MS, subject);
    this.#use(link);
    this.#return();
  }

  #changeState(state: "available" | "unavailable", cause?: unknown): void {
    if (this.#isClosed) return;
    this.#options.onStateChange?.(state, cause === undefined ? undefined : loggableError(cause));
  }
}

/** Valkey reads and writes the usage of a key once for all requests of a group. */
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

function firstOf({ reports, groups }: Batch): KeySubject {
  return (reports[0] ?? groups[0])?.subject ?? ANY_KEY;
}
