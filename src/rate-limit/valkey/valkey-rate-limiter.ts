import type { Awaitable } from "../../api/awaitable.ts";
import type { Clock, RateLimiter } from "../../domain/ports.ts";
import {
  type BanRules,
  type Decision,
  DEFAULT_DECISION_TIMEOUT_MS,
  type Limits,
  type OnBan,
  type Subject,
  type Usage,
} from "../../domain/rate-limit.ts";
import { Batcher, type DecisionRequest } from "./batcher.ts";
import {
  ValkeyConnection,
  parseServers,
  type Servers,
  type OnStateChange,
  Reconnector,
} from "./connection.ts";
import { type Decisions, formatSubject, type ScriptBan } from "./scripts.ts";

export interface ValkeyRateLimiterOptions {
  /** `redis://` or `rediss://`; a list means a cluster, of which some hosts are enough. */
  readonly url: string | readonly string[];
  /** Certificates (PEM) of the authorities that sign the server's, for `rediss://`; by default the well-known ones. */
  readonly ca?: string;
  readonly clock: Clock;
  readonly ban: BanRules;
  /** Decides in this process: for addresses, and for keys while Valkey is unavailable. The rate limiter closes it. */
  readonly local: RateLimiter;
  /** Called at each change, and at the start when Valkey is unavailable. */
  readonly onStateChange?: OnStateChange;
  /** Is called after each batch of decisions. */
  readonly onResponse?: ((ms: number) => void) | undefined;
  /** For bans by Valkey; `local` has its own. */
  readonly onBan?: OnBan | undefined;
  /** For bans by Valkey that another server decided, or this one without getting the response; once for each. */
  readonly onEarlierBan?: OnBan | undefined;
  /** How long Valkey may take for a decision before it counts as unavailable. */
  readonly timeoutMs?: number;
  /** The same for what no request waits for: connecting, and what operators do. */
  readonly backgroundTimeoutMs?: number;
  /** Starts the name of every key: environments that share a Valkey need one each. */
  readonly prefix?: string;
  /** Valkey counts by this clock instead of its own. */
  readonly testClock?: Clock;
}

/**
 * Valkey runs a batch as one step while every other client waits, so a batch takes about half a millisecond at most.
 * Dozens of busy instances can wait for each other within the timeout.
 */
const SINGLE_SERVER = { maxBatchSize: 32, maxConcurrentBatches: 1 };
/** In a cluster a script may touch one slot only; the client pipelines the commands to each node. */
const CLUSTER = { maxBatchSize: 1, maxConcurrentBatches: 1_024 };
const MAX_PENDING_UNBANS = 1_000;
const MAX_REPORTED_BANS = 10_000;

/** Throws on an invalid address. A Valkey that is unavailable delays the start a little and does not prevent it. */
export async function createValkeyRateLimiter(options: ValkeyRateLimiterOptions): Promise<ValkeyRateLimiter> {
  const rateLimiter = new ValkeyRateLimiter(parseServers(options.url, options.ca), options);
  await rateLimiter.start();
  return rateLimiter;
}

/**
 * Rate limits of keys, shared by all instances: Valkey counts, by its own clock, exactly. Addresses are counted in
 * process, each instance on its own: anybody can send from many, and so could fill Valkey or delay the keys.
 *
 * While Valkey is unavailable, each instance counts in its own memory and starts at zero: meanwhile a key gets at most
 * its limit once more from each instance, and nothing if Valkey last limited or banned it. When Valkey is available
 * again, it goes on with its own counts. A request at the moment of the change may count in both.
 *
 * A cluster is available as a whole or not at all: it is unavailable until every node serves its keys.
 */
class ValkeyRateLimiter implements RateLimiter {
  readonly #servers: Servers;
  readonly #options: ValkeyRateLimiterOptions;
  readonly #rejections: RejectionCache;
  readonly #reconnector: Reconnector;
  /** Unbans that Valkey does not know of yet, each with the time of the steady clock before which bans end. */
  readonly #pendingUnbans = new Map<string, { readonly subject: Subject; readonly before: number }>();
  /** The ends of bans that were reported, by key; the oldest is dropped when there are too many. */
  readonly #reportedBans = new Map<number, number>();
  #connection: ValkeyConnection | undefined;
  #batcher: Batcher | undefined;

  constructor(servers: Servers, options: ValkeyRateLimiterOptions) {
    const { prefix = "petstore:", ban, testClock, backgroundTimeoutMs, clock, onStateChange } = options;
    this.#servers = servers;
    this.#options = options;
    this.#rejections = new RejectionCache(clock);
    this.#reconnector = new Reconnector({
      connect: async (subject) => {
        const settings = { servers, prefix, ban, testClock, backgroundTimeoutMs };
        const connection = await ValkeyConnection.open(settings, subject);
        await this.#sendPendingUnbans(connection);
        return connection;
      },
      onConnection: (connection) => this.#use(connection),
      onStateChange,
    });
  }

  start(): Promise<void> {
    return this.#reconnector.start();
  }

  /** Requests that wait for the next batch. */
  get queueLength(): number {
    return this.#batcher?.queueLength ?? 0;
  }

  decide(subject: Subject, limits: Limits): Awaitable<Decision> {
    if (subject.kind === "address") return this.#options.local.decide(subject, limits);
    return this.#batcher ? this.#batcher.decide(subject, limits) : this.#decideHere({ subject, limits });
  }

  peek(subject: Subject, limits: Limits): Decision {
    const rejection = subject.kind === "key" ? this.#rejections.find({ subject, limits }) : undefined;
    return rejection ?? this.#options.local.peek(subject, limits);
  }

  async usage(subject: Subject): Promise<Usage | undefined> {
    const connection = subject.kind === "key" ? this.#connection : undefined;
    try {
      if (connection) return await connection.usage(subject);
    } catch (cause) {
      if (connection) this.#reconnector.connectionFailed(connection, cause, subject);
    }
    return this.#options.local.usage(subject);
  }

  bannedKeys(): undefined {
    return undefined;
  }

  async unban(subject: Subject, agoMs: number): Promise<void> {
    const before = this.#options.clock.steadyNow() - agoMs;
    this.#rejections.unban(subject, agoMs);
    await this.#options.local.unban(subject, agoMs);
    const connection = this.#connection;
    try {
      if (connection) return await connection.unban(subject, agoMs);
    } catch (cause) {
      if (connection) this.#reconnector.connectionFailed(connection, cause, subject);
    }
    if (this.#pendingUnbans.size < MAX_PENDING_UNBANS) {
      this.#pendingUnbans.set(formatSubject(subject), { subject, before });
    }
  }

  async close(): Promise<void> {
    this.#reconnector.close();
    this.#batcher?.close();
    this.#batcher = undefined;
    this.#connection = undefined;
    await this.#options.local.close();
  }

  #decideHere(request: DecisionRequest): Awaitable<Decision> {
    return this.#rejections.find(request) ?? this.#options.local.decide(request.subject, request.limits);
  }

  #use(connection: ValkeyConnection | undefined): void {
    this.#batcher?.close();
    this.#connection = connection;
    this.#batcher = connection && this.#batcherOn(connection);
  }

  #batcherOn(connection: ValkeyConnection): Batcher {
    return new Batcher({
      ...(this.#servers.isCluster ? CLUSTER : SINGLE_SERVER),
      timeoutMs: this.#options.timeoutMs ?? DEFAULT_DECISION_TIMEOUT_MS,
      send: async (requests) => {
        const startedAt = performance.now();
        const decided = await connection.decide(requests);
        this.#options.onResponse?.(performance.now() - startedAt);
        requests.forEach((request, i) => this.#noteRejection(request, decided, i));
        return decided.decisions;
      },
      fallback: (request) => this.#decideHere(request),
      onFailure: (cause, request) => this.#reconnector.connectionFailed(connection, cause, request?.subject),
    });
  }

  #noteRejection(request: DecisionRequest, { decisions, bans }: Decisions, position: number): void {
    const decision = decisions[position];
    if (decision === undefined || decision.outcome === "allowed") return;
    const ban = bans.get(position);
    this.#rejections.add(request, decision, ban);
    if (request.subject.kind === "key" && ban) this.#reportBan(request.subject.id, ban);
  }

  #reportBan(keyId: number, { bannedAt, bannedUntil, isNew }: ScriptBan): void {
    if (this.#reportedBans.get(keyId) === bannedUntil) return;
    this.#reportedBans.delete(keyId);
    this.#reportedBans.set(keyId, bannedUntil);
    const [oldest] = this.#reportedBans.keys();
    if (this.#reportedBans.size > MAX_REPORTED_BANS && oldest !== undefined)
      this.#reportedBans.delete(oldest);
    const { onBan, onEarlierBan } = this.#options;
    (isNew ? onBan : onEarlierBan)?.(keyId, { bannedAt, bannedUntil });
  }

  /** Runs before requests use the connection: no key that was unbanned meanwhile is banned again. */
  async #sendPendingUnbans(connection: ValkeyConnection): Promise<void> {
    try {
      for (const [name, { subject, before }] of this.#pendingUnbans) {
        await connection.unban(subject, this.#options.clock.steadyNow() - before);
        this.#pendingUnbans.delete(name);
      }
    } catch (error) {
      connection.close();
      throw error;
    }
  }
}

export type { ValkeyRateLimiter };

interface Rejection {
  readonly limits: Limits;
  readonly decision: Decision;
  readonly until: number;
  /** The earliest time at which the ban may have begun; undefined if it is none. */
  readonly bannedAt: number | undefined;
}

const MAX_REJECTIONS = 10_000;
/** More than a decision takes to arrive. */
const MAX_DELAY_MS = 1_000;

/** The server's last rejections: a key that it banned or limited stays so while the server is unavailable. */
export class RejectionCache {
  readonly #clock: Clock;
  /** In the order of the first rejection; the oldest is dropped when there are too many. */
  readonly #rejections = new Map<string, Rejection>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add({ subject, limits }: DecisionRequest, decision: Decision, ban?: Pick<ScriptBan, "agoMs">): void {
    // `retryAfter` and `agoMs` are lengths of time, so the server's clock and ours need not agree.
    const now = this.#clock.steadyNow();
    const until = now + decision.retryAfter * 1000;
    const bannedAt = ban && now - ban.agoMs - MAX_DELAY_MS;
    this.#rejections.set(formatSubject(subject), { limits, decision, until, bannedAt });
    if (this.#rejections.size <= MAX_REJECTIONS) return;
    for (const oldest of this.#rejections.keys()) {
      this.#rejections.delete(oldest);
      return;
    }
  }

  /** The rejection that still holds, or undefined. */
  find({ subject, limits }: DecisionRequest): Decision | undefined {
    const name = formatSubject(subject);
    const rejection = this.#rejections.get(name);
    if (rejection === undefined) return undefined;
    const { decision, until } = rejection;
    const waitMs = until - this.#clock.steadyNow();
    if (waitMs <= 0 || (decision.outcome === "limited" && haveChanged(rejection.limits, limits))) {
      this.#rejections.delete(name);
      return undefined;
    }
    return { ...decision, retryAfter: Math.ceil(waitMs / 1000) };
  }

  /** Drops a ban that may have begun at least `agoMs` ago. */
  unban(subject: Subject, agoMs: number): void {
    const bannedAt = this.#rejections.get(formatSubject(subject))?.bannedAt;
    if (bannedAt === undefined || bannedAt > this.#clock.steadyNow() - agoMs) return;
    this.#rejections.delete(formatSubject(subject));
  }
}

function haveChanged(before: Limits, now: Limits): boolean {
  return before.perMinute !== now.perMinute || before.perDay !== now.perDay;
}
