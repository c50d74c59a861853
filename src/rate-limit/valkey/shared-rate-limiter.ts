import { type Awaitable, type ScheduledTimer, type Scheduler, scheduler } from "../../event-loop.ts";
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
import type { ServerState } from "../../domain/servers.ts";
import { HEARTBEAT_MS, type HeartbeatRegister, parseServerStates } from "../server-register.ts";
import { Ledger } from "./ledger.ts";
import { loggableError, type ValkeyLink } from "./connection.ts";
import type { DecisionRequest, KeyReport, KeySubject, Replies } from "./script.ts";

type OnStateChange = (state: "available" | "unavailable", cause?: unknown) => void;

export interface SharedRateLimiterOptions {
  readonly clock: Clock;
  readonly ban: BanRules;
  /** Decides for addresses. The rate limiter closes it. */
  readonly local: RateLimiter;
  /** Called at each change, and at the start when Valkey is unavailable. */
  readonly onStateChange?: OnStateChange;
  /** Is called after each batch of decisions. */
  readonly onResponse?: ((ms: number) => void) | undefined;
  /** For each new ban, by Valkey for a request of this server, or by this server in an outage. */
  readonly onBan?: OnBan | undefined;
  /** For bans by Valkey that another server decided, or this one without getting the response; once for each. */
  readonly onEarlierBan?: OnBan | undefined;
  /** How long Valkey may be silent while requests wait for it, before it counts as unavailable. */
  readonly timeoutMs?: number;
  /** Of the servers that share the limits; by default this one is alone. */
  readonly register?: Pick<HeartbeatRegister, "count" | "beat" | "leave"> | undefined;
  readonly scheduler?: Scheduler;
}

interface LinkOptions {
  /** Opens a connection on which requests of this key work. */
  readonly open: (subject: KeySubject) => Promise<ValkeyLink>;
  /** With 1, the reports of a batch are about the key of its request. */
  readonly maxBatchSize: number;
  readonly maxConcurrentBatches: number;
}

/** Keys in a report. */
const MAX_REPORTS = 32;
/** Valkey decides as many in about a tenth of a second. */
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
/** By then, every server that Valkey replies to again has reported. */
const RETURN_MS = 2_000;
const MAX_REPORTED_BANS = 10_000;
const ANY_KEY: KeySubject = { kind: "key", id: 0 };

interface WaitingRequest extends DecisionRequest {
  /** What this server's share allows, for a while after an outage. */
  readonly share: Decision | undefined;
  readonly resolve: (decision: Decision) => void;
}

/** Reports, if there are any, and then decisions, if any are requested. */
interface Batch {
  readonly reports: readonly KeyReport[];
  readonly requests: readonly WaitingRequest[];
  ticks: number;
  /** When an outage began before Valkey replied, and which of the requests this server allowed then. */
  outageAt: number | undefined;
  allowed: readonly boolean[];
  readonly onEnd: () => void;
}

/**
 * Rate limits of keys, shared by all servers: Valkey counts, by its own clock, exactly. Requests that arrive
 * in one iteration of the event loop, or while a batch is sent, form a batch: a busy server sends few large ones.
 * Addresses are counted in process, each server on its own: anybody can send from many, and so could fill Valkey or
 * delay the keys.
 *
 * A Valkey that pauses is waited for. An outage begins when it has not replied for `timeoutMs` or when its connection
 * fails, and ends when it replies again; meanwhile the ledger decides, and nobody waits. What it gave is reported to
 * Valkey before the next decision about the key. For two seconds more, a request needs both a rest in Valkey and this
 * server's share of what was left before: other servers may not have reported yet.
 *
 * A connection that is silent stays open: what Valkey counts late is not reported. A report or a batch whose connection
 * breaks may have been counted, and is reported again: rather too much than too little.
 *
 * A cluster is available as a whole or not at all: it is unavailable until every node serves its keys.
 */
export class SharedRateLimiter implements RateLimiter {
  readonly #options: SharedRateLimiterOptions;
  readonly #links: LinkOptions;
  readonly #scheduler: Scheduler;
  readonly #ledger: Ledger;
  /** The ends of bans that were reported, by key; the oldest is dropped when there are too many. */
  readonly #reportedBans = new Map<number, number>();
  #queue: WaitingRequest[] = [];
  /** Those that Valkey has not replied to. */
  readonly #sent = new Set<Batch>();
  #timeout: ScheduledTimer | undefined;
  #link: ValkeyLink | undefined;
  #linkedAt = 0;
  /** Our steady clock minus Valkey's: the least that replies told, because they take time. */
  #aheadMs: number | undefined;
  #isOutage = true;
  #retryTimer: ScheduledTimer | undefined;
  #heartbeat: ScheduledTimer | undefined;
  /** Is set for a while after an outage. */
  #returnTimer: ScheduledTimer | undefined;
  #isClosed = false;

  constructor(options: SharedRateLimiterOptions, links: LinkOptions) {
    const { ban, clock, onBan } = options;
    this.#options = options;
    this.#links = links;
    this.#scheduler = options.scheduler ?? scheduler;
    this.#ledger = new Ledger({
      ban,
      onBan: (keyId, { bannedAt, bannedUntil }) =>
        onBan?.(keyId, { bannedAt: bannedAt + clock.stepMs, bannedUntil: bannedUntil + clock.stepMs }),
    });
  }

  async start(): Promise<void> {
    try {
      const link = await this.#open(ANY_KEY);
      await this.#options.register?.beat(link);
      this.#use(link);
      this.#isOutage = this.#isClosed;
    } catch (cause) {
      this.#retryIn(RETRY_EVERY_MS, ANY_KEY);
      this.#changeState("unavailable", cause);
    }
  }

  /** Requests that wait for the next batch. */
  get queueLength(): number {
    return this.#queue.length;
  }

  decide(subject: Subject, limits: Limits): Awaitable<Decision> {
    if (subject.kind === "address") return this.#options.local.decide(subject, limits);
    if (this.#isOutage) return this.#decideHere({ subject, limits });
    // An overload is no outage.
    if (this.#queue.length >= MAX_QUEUED) {
      return Promise.reject(new Overloaded(`the queue for Valkey is full (${MAX_QUEUED} requests)`));
    }
    const share = this.#returnTimer && this.#decideHere({ subject, limits }, "counted");
    if (share && share.outcome !== "allowed") {
      this.#sendQueue();
      return share;
    }
    return new Promise((resolve) => {
      const queued = this.#queue.push({ subject, limits, share, resolve });
      if (this.#links.maxBatchSize === 1) this.#sendQueue();
      else if (queued === 1) this.#scheduler.atEndOfIteration(() => this.#isOutage || this.#sendQueue());
    });
  }

  peek(subject: Subject, limits: Limits): Decision {
    if (subject.kind === "address") return this.#options.local.peek(subject, limits);
    return this.#onWallClock(this.#ledger.peek({ subject, limits }, this.#sharing()));
  }

  /** What this server knows, while Valkey does not reply. */
  async usage(subject: Subject): Promise<Usage | undefined> {
    if (subject.kind === "address") return this.#options.local.usage(subject);
    if (this.#link && !this.#isOutage) {
      try {
        return await this.#link.usage(subject);
      } catch {
        // A read that fails says nothing about the decisions.
      }
    }
    const { clock } = this.#options;
    const usage = this.#ledger.usage(subject, clock.steadyNow());
    if (usage) shift(usage, clock.stepMs);
    return usage;
  }

  /** The servers in the register; none in an outage. */
  async readRegister(): Promise<readonly ServerState[]> {
    const { texts } = (this.#isOutage ? undefined : await this.#link?.servers()) ?? { texts: [] };
    return parseServerStates(texts, this.#options.clock.now());
  }

  bannedKeys(): undefined {
    return undefined;
  }

  /** Resolves when Valkey knows of it, or in an outage. */
  async unban(subject: Subject, agoMs: number): Promise<void> {
    if (subject.kind === "address") return this.#options.local.unban(subject, agoMs);
    this.#ledger.unban(subject, this.#options.clock.steadyNow() - agoMs);
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

  #sharing() {
    const { clock, register } = this.#options;
    const isShared = this.#isOutage || this.#returnTimer !== undefined;
    const servers = (isShared && register?.count) || 1;
    return { servers, now: clock.steadyNow() };
  }

  /** By this server's share. Valkey counts the request too, or has to be told of it. */
  #decideHere(request: DecisionRequest, state: "new" | "counted" = "new"): Decision {
    return this.#onWallClock(this.#ledger.decide(request, this.#sharing(), state));
  }

  /** The ledger is on the steady clock. */
  #onWallClock(decision: Decision): Decision {
    const { stepMs } = this.#options.clock;
    return stepMs === 0 ? decision : { ...decision, resetAt: decision.resetAt + Math.ceil(stepMs / 1000) };
  }

  #sendQueue(): void {
    const { maxBatchSize, maxConcurrentBatches } = this.#links;
    while (this.#queue.length > 0 && this.#sent.size < maxConcurrentBatches) {
      void this.#send(this.#queue.splice(0, maxBatchSize));
    }
    while (this.#link && this.#ledger.hasReports && this.#sent.size < maxConcurrentBatches) {
      void this.#send([]);
    }
  }

  /** Reports what was given of these keys, and of some more, before the decisions. */
  async #send(
    requests: readonly WaitingRequest[],
    subjects = requests.map(({ subject }) => subject),
    onEnd = () => {},
  ): Promise<void> {
    const link = this.#link;
    if (link === undefined) return;
    const reports = this.#ledger.hasReports ? this.#reports(subjects) : [];
    if (requests.length + reports.length === 0) return onEnd();
    const batch: Batch = { reports, requests, ticks: 0, outageAt: undefined, allowed: [], onEnd };
    this.#sent.add(batch);
    this.#timeout ??= this.#startTimeout();
    const startedAt = this.#scheduler.now();
    try {
      const replies = await link.decide(requests, reports);
      if (link !== this.#link) return;
      this.#sent.delete(batch);
      if (requests.length > 0) this.#options.onResponse?.(this.#scheduler.now() - startedAt);
      // The next batch comes before the responses to this one.
      if (!this.#isOutage) this.#sendQueue();
      this.#takeReplies(batch, replies);
    } catch (cause) {
      this.#linkFailed(link, cause, firstOf(batch));
      return;
    }
    onEnd();
    if (this.#isOutage && this.#sent.size === 0 && !this.#isClosed) this.#endOutage();
  }

  #reports(subjects: readonly KeySubject[]): readonly KeyReport[] {
    const now = this.#options.clock.steadyNow();
    const sentAt = this.#aheadMs === undefined ? undefined : now - this.#aheadMs;
    const ofOneKey = subjects.length > 0 ? 0 : 1;
    const count = this.#links.maxBatchSize === 1 ? ofOneKey : MAX_REPORTS;
    const reports = this.#ledger.reports(subjects, count, now);
    return reports.map((report) => Object.assign(report, { sentAt }));
  }

  #takeReplies({ reports, requests, outageAt, allowed }: Batch, { now, reported, decided }: Replies): void {
    const byMs = this.#compareClocks(now);
    reports.forEach((report, i) => {
      const usage = reported[i];
      if (usage) this.#ledger.reported(report, usage, byMs);
    });
    if (!this.#isOutage && !this.#returnTimer) this.#ledger.settle(reports.map(({ subject }) => subject.id));
    requests.forEach(({ subject, limits, share, resolve }, i) => {
      const reply = decided[i];
      if (reply === undefined) return;
      const { outcome, isNewBan, usage } = reply;
      if (outcome === "banned") this.#reportBan(subject.id, usage, isNewBan);
      if (outageAt === undefined) resolve(atMost(share?.remaining, describe(outcome, usage, limits, now)));
      else if (outcome === "allowed" && allowed[i]) this.#ledger.countedLate(subject, outageAt);
      this.#ledger.learn(subject, usage, byMs);
    });
  }

  #compareClocks(valkeyNow: number): number {
    const byMs = this.#options.clock.steadyNow() - valkeyNow;
    this.#aheadMs = Math.min(this.#aheadMs ?? byMs, byMs);
    return byMs;
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
    if (this.#isOutage) return;
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
    if (this.#isOutage) return;
    this.#isOutage = true;
    this.#endReturn();
    this.#decideAllHere();
    this.#changeState("unavailable", cause);
  }

  #decideAllHere(): void {
    const outageAt = this.#options.clock.steadyNow();
    const decideHere = (request: WaitingRequest) => {
      const decision = this.#decideHere(request);
      request.resolve(decision);
      return decision.outcome === "allowed";
    };
    for (const batch of this.#sent) {
      if (batch.outageAt !== undefined) continue;
      batch.outageAt = outageAt;
      batch.allowed = batch.requests.map(decideHere);
      batch.onEnd();
    }
    for (const request of this.#queue.splice(0)) decideHere(request);
  }

  #endOutage(): void {
    this.#isOutage = false;
    this.#retryTimer?.close();
    this.#retryTimer = undefined;
    this.#returnTimer = this.#scheduler.setTimeout(() => this.#endReturn(), RETURN_MS);
    this.#changeState("available");
    this.#sendQueue();
    void this.beat();
  }

  #endReturn(): void {
    this.#returnTimer?.close();
    this.#returnTimer = undefined;
    this.#ledger.settle();
  }

  #linkFailed(link: ValkeyLink, cause: unknown, subject = ANY_KEY): void {
    if (link !== this.#link) return;
    const wasOutage = this.#isOutage;
    this.#beginOutage(cause);
    this.#dropLink();
    if (wasOutage) return;
    const wasStable = this.#scheduler.now() - this.#linkedAt >= STABLE_AFTER_MS;
    this.#retryIn(wasStable ? 0 : RETRY_EVERY_MS, subject);
  }

  #dropLink(): void {
    const link = this.#link;
    this.#link = undefined;
    for (const { reports } of this.#sent) for (const report of reports) this.#ledger.notReported(report);
    this.#sent.clear();
    link?.close();
  }

  async #open(subject: KeySubject): Promise<ValkeyLink> {
    const link = await this.#links.open(subject);
    this.#compareClocks(link.openedAt);
    return link;
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

  /** A silent connection that no request waits for may be dead: the others would not count this server. */
  async beat(): Promise<void> {
    const link = this.#link;
    const { register } = this.#options;
    if (link === undefined || register === undefined || this.#isOutage) return;
    if (await register.beat(link)) return;
    const other = await this.#open(ANY_KEY).catch(() => undefined);
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

  /** Opens another connection: the silent one may be dead, and Valkey alive. */
  async #retry(subject: KeySubject): Promise<void> {
    const timer = this.#retryTimer;
    const link = await this.#open(subject).catch(() => undefined);
    // Valkey has replied on the new connection. What it counted late arrives about now, if it arrives at all.
    if (link && this.#sent.size > 0) await this.#scheduler.sleep(this.#timeoutMs);
    if (this.#isClosed || timer !== this.#retryTimer) return link?.close();
    if (link === undefined) return this.#retryIn(RETRY_EVERY_MS, subject);
    this.#use(link);
    this.#endOutage();
  }

  #changeState(state: "available" | "unavailable", cause?: unknown): void {
    if (this.#isClosed) return;
    this.#options.onStateChange?.(state, cause === undefined ? undefined : loggableError(cause));
  }
}

function firstOf({ reports, requests }: Batch): KeySubject {
  return (reports[0] ?? requests[0])?.subject ?? ANY_KEY;
}

function atMost(remaining = Infinity, decision: Decision): Decision {
  return remaining < decision.remaining ? { ...decision, remaining } : decision;
}
