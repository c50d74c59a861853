import type { BanRules, Limits, Usage, Subject, Decision } from "../../domain/rate-limit.ts";
import type { Awaitable } from "../../domain/awaitable.ts";
import type { Clock, RateLimiter } from "../../domain/ports.ts";
import { type Hosts, parseHosts } from "./connection.ts";
import { Reconnector, type Turn } from "./reconnector.ts";
import { type Asked, Batcher } from "./batcher.ts";
import { RejectionCache } from "./rejection-cache.ts";
import { Session } from "./session.ts";

export interface ValkeyRateLimiterOptions {
  /** `redis://` or `rediss://`; a list of them means a cluster, of which any hosts will do. */
  readonly url: string | readonly string[];
  readonly clock: Clock;
  readonly ban: BanRules;
  /** Counts in this process while Valkey is away; the rateLimiter closes it. */
  readonly fallback: RateLimiter;
  /** Called once at each turn, and at the start if Valkey is not there. */
  readonly onTurn?: Turn;
  /** How long Valkey may keep a request waiting in silence before it is taken for dead. */
  readonly commandTimeoutMs?: number;
  /** In front of every key: environments that share a Valkey need one each. */
  readonly prefix?: string;
  /** Counts by this clock instead of Valkey's own. */
  readonly testClock?: Clock;
}

/**
 * A batch runs as one step while everybody else waits, so it is kept to about half a millisecond of Valkey's time:
 * dozens of busy instances can stand in line before the last of them takes the wait for silence.
 */
const SINGLE = { maxBatch: 32, maxFlights: 1 };
/** Here a script may touch one slot only; the client puts commands to the same node together. */
const CLUSTER = { maxBatch: 1, maxFlights: 1_024 };
/** Unbans to hand over when Valkey is back. */
const MAX_OWED = 1_000;

export async function createValkeyRateLimiter(options: ValkeyRateLimiterOptions): Promise<RateLimiter> {
  // A wrong address is a fault of whoever starts us; everything else is Valkey being away.
  const rateLimiter = new ValkeyRateLimiter(parseHosts(options.url), options);
  await rateLimiter.start();
  return rateLimiter;
}

/**
 * Limits shared by every instance, counted in Valkey by its own clock, exactly.
 *
 * While Valkey is away each instance counts in its own memory, from nothing: in an absence a key gets at most one more
 * limit per instance, and nothing if it is known to be limited or banned. When Valkey is back its counts go on where
 * they stood; what was counted elsewhere meanwhile is not handed over. Around the turn a request may count in both.
 *
 * A cluster is there or away as a whole: one node lost means away, until that node's keys are served again.
 */
class ValkeyRateLimiter implements RateLimiter {
  readonly #hosts: Hosts;
  readonly #options: ValkeyRateLimiterOptions;
  readonly #refusals: RejectionCache;
  readonly #keeper: Reconnector;
  readonly #owed = new Map<Subject, number>();
  #session: Session | undefined;
  #batcher: Batcher | undefined;

  constructor(hosts: Hosts, options: ValkeyRateLimiterOptions) {
    const { prefix = "petstore:", ban, testClock, clock, onTurn } = options;
    this.#hosts = hosts;
    this.#options = options;
    this.#refusals = new RejectionCache(clock, ban);
    this.#keeper = new Reconnector({
      open: async (subject) => this.#payOwed(await Session.open({ hosts, prefix, ban, testClock }, subject)),
      onSession: (session) => this.#use(session),
      onTurn,
    });
  }

  start(): Promise<void> {
    return this.#keeper.start();
  }

  decide(subject: Subject, limits: Limits): Awaitable<Decision> {
    return this.#batcher ? this.#batcher.decide(subject, limits) : this.#admitHere({ subject, limits });
  }

  async usage(subject: Subject): Promise<Usage | undefined> {
    const session = this.#session;
    try {
      if (session) return await session.look(subject);
    } catch (cause) {
      if (session) this.#keeper.lose(session, cause, subject);
    }
    return this.#options.fallback.usage(subject);
  }

  /** Bans began by Valkey's clock, so it and the machine that gives `at` should agree to within a second or so. */
  async unban(subject: Subject, at: number): Promise<void> {
    this.#refusals.unban(subject, at);
    await this.#options.fallback.unban(subject, at);
    const session = this.#session;
    try {
      if (session) return await session.unban(subject, at);
    } catch (cause) {
      if (session) this.#keeper.lose(session, cause, subject);
    }
    if (this.#owed.size < MAX_OWED) this.#owed.set(subject, at);
  }

  async close(): Promise<void> {
    this.#keeper.close();
    this.#batcher?.close();
    this.#batcher = undefined;
    this.#session = undefined;
    await this.#options.fallback.close();
  }

  #admitHere(asked: Asked): Awaitable<Decision> {
    return this.#refusals.find(asked) ?? this.#options.fallback.decide(asked.subject, asked.limits);
  }

  #use(session: Session | undefined): void {
    this.#batcher?.close();
    this.#session = session;
    this.#batcher = session && this.#laneOn(session);
  }

  #laneOn(session: Session): Batcher {
    return new Batcher({
      ...(this.#hosts.isCluster ? CLUSTER : SINGLE),
      silenceMs: this.#options.commandTimeoutMs ?? 25,
      send: async (batch) => {
        const decisions = await session.decide(batch);
        decisions.forEach((decision, i) => this.#noteRefusal(batch[i], decision));
        return decisions;
      },
      instead: (asked) => this.#admitHere(asked),
      onBreak: (cause, asked) => this.#keeper.lose(session, cause, asked?.subject),
    });
  }

  #noteRefusal(asked: Asked | undefined, decision: Decision): void {
    if (asked && decision.outcome !== "allowed") this.#refusals.note(asked, decision);
  }

  /** Done before Valkey is asked again: nobody who was unbanned meanwhile finds the ban usage. */
  async #payOwed(session: Session): Promise<Session> {
    try {
      for (const [subject, at] of this.#owed) {
        await session.unban(subject, at);
        this.#owed.delete(subject);
      }
      return session;
    } catch (error) {
      session.close();
      throw error;
    }
  }
}
