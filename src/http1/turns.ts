import { ResponseBatch } from "./response-batch.ts";

/** A connection with requests to handle. */
export interface TurnTaker {
  /** Handles requests, at most `maxRequests`. */
  takeTurn(maxRequests: number): void;
}

interface QueueShare {
  readonly length: number;
  readonly maxRequests: number;
  /** Since the event loop began to handle queues. */
  readonly maxMs: number;
}

/** After this many requests, or bytes of responses, of one connection the others get a turn. */
export const MAX_REQUESTS_PER_TURN = 32;
const MAX_BYTES_PER_TURN = 64 * 1024;
/** Looking at the time after each request would cost more than some requests. */
const REQUESTS_PER_LOOK_AT_TIME = 8;
/** Time for requests in one turn of the event loop. After it, new connections and new requests are looked for. */
const MAX_MS_PER_LOOP_TURN = 4;
/** The time is looked at after this many requests in one turn of the event loop, because that costs time as well. */
const UNTIMED_REQUESTS = 64;
/** The part of it for connections that pipeline. New requests, and replies of databases, are looked for sooner. */
const MAX_MS_OF_PIPELINED = 1;
/** A slowed connection waits this long for its next turn, and longer if there are more of them. */
const SLOWED_MS = 10;
/** After each wait so many have a turn: all slowed connections together have 2,000 a second. */
const SLOWED_TURNS = 20;

/**
 * Shares the time of the process among connections. While there is time, a connection handles its requests as they
 * arrive. Otherwise it queues: connections with new requests handle one each; those that have had a turn and have
 * pipelined more share the rest of the time. Slowed connections have a fixed number of turns a second, however many
 * they are: otherwise they would use all of the time that others leave, and each response that waits for a database
 * would wait for several full turns of the event loop.
 */
export class Turns {
  readonly #newRequests: TurnTaker[] = [];
  readonly #pipelined: TurnTaker[] = [];
  /** In this turn of the event loop, or in several if they were few. */
  #requests = 0;
  #isTimed = false;
  #startedAt = 0;
  readonly #slowed = new Set<TurnTaker>();
  /** Of the requests that were handled. */
  readonly responses = new ResponseBatch();

  /** In milliseconds. */
  constructor(private readonly now = () => performance.now()) {}

  /** Whether a connection whose requests arrive now has to queue. */
  get areTaken(): boolean {
    return this.#newRequests.length > 0 || this.isTimeUp;
  }

  /** Connections that wait for a turn. */
  get queueLength(): number {
    return this.#newRequests.length + this.#pipelined.length;
  }

  /** Whether this turn of the event loop has taken long enough. */
  get isTimeUp(): boolean {
    return this.#isTimed && this.now() - this.#startedAt > MAX_MS_PER_LOOP_TURN;
  }

  /** Whether a connection has had a turn after so many requests and bytes of responses. */
  isLong(requests: number, bytes: number): boolean {
    if (requests === 0) return false;
    if (bytes >= MAX_BYTES_PER_TURN) return true;
    return requests % REQUESTS_PER_LOOK_AT_TIME === 0 && this.isTimeUp;
  }

  countRequest(): void {
    if (++this.#requests >= UNTIMED_REQUESTS && !this.#isTimed) this.#scheduleRun();
  }

  queueNewRequests(connection: TurnTaker): void {
    this.#newRequests.push(connection);
    if (!this.#isTimed) this.#scheduleRun();
  }

  queuePipelined(connection: TurnTaker): void {
    this.#pipelined.push(connection);
    if (!this.#isTimed) this.#scheduleRun();
  }

  /** For a connection that leaves time to others. Later it queues behind all new requests. */
  queueSlowed(connection: TurnTaker): void {
    if (this.#slowed.size === 0) this.#releaseSlowedLater();
    this.#slowed.add(connection);
  }

  /** For a connection that is closed. */
  forget(connection: TurnTaker): void {
    this.#slowed.delete(connection);
  }

  /** Together, because a turn of the event loop takes longer than the response to one of them. */
  #releaseSlowedLater(): void {
    setTimeout(() => this.#releaseSlowed(), SLOWED_MS).unref();
  }

  #releaseSlowed(): void {
    let released = 0;
    for (const connection of this.#slowed) {
      if (released++ === SLOWED_TURNS) return this.#releaseSlowedLater();
      this.#slowed.delete(connection);
      this.queuePipelined(connection);
    }
  }

  #scheduleRun(): void {
    this.#isTimed = true;
    this.#startedAt = this.now();
    setImmediate(() => this.#run());
  }

  #run(): void {
    this.#startedAt = this.now();
    const pipelined = this.#pipelined.length;
    // At least one, so that pipelined requests are handled however many new ones there are.
    this.#pipelined.shift()?.takeTurn(MAX_REQUESTS_PER_TURN);
    const newRequests = this.#newRequests.length;
    this.#runQueue(this.#newRequests, { length: newRequests, maxRequests: 1, maxMs: MAX_MS_PER_LOOP_TURN });
    const share = { maxRequests: MAX_REQUESTS_PER_TURN, maxMs: MAX_MS_OF_PIPELINED };
    this.#runQueue(this.#pipelined, { length: pipelined - 1, ...share });
    this.responses.write();
    this.#requests = 0;
    this.#isTimed = false;
    if (this.#newRequests.length + this.#pipelined.length > 0) this.#scheduleRun();
  }

  /** The first `length` of the queue, until the time is up. */
  #runQueue(queue: TurnTaker[], { length, maxRequests, maxMs }: QueueShare): void {
    const endsAt = this.#startedAt + maxMs;
    let taken = 0;
    while (taken < length && this.now() <= endsAt) queue[taken++]?.takeTurn(maxRequests);
    queue.splice(0, taken);
  }
}
