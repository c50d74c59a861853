import { atEndOfIteration } from "../runtime/event-loop.ts";

/** A connection with requests to handle. */
export interface ScheduledConnection {
  /** Handles requests, at most `maxRequests`. */
  runTimeSlice(maxRequests: number): void;
}

/** After this many requests, or bytes of responses, of one connection the others get a time slice. */
export const MAX_REQUESTS_PER_SLICE = 32;
const MAX_BYTES_PER_SLICE = 64 * 1024;
/** Looking at the time after each request would cost more than some requests. */
const REQUESTS_PER_LOOK_AT_TIME = 8;
/** Time for requests in one iteration of the event loop. After it, new connections and new requests are looked for. */
const MAX_MS_PER_ITERATION = 4;
/** The time is looked at after this many requests in one iteration, because that costs time as well. */
const UNTIMED_REQUESTS = 16;
/** The part of it for connections that pipeline. New requests, and replies of databases, are looked for sooner. */
const MAX_MS_OF_PIPELINED = 1;
/** A slowed connection waits this long for its next time slice, and longer if there are more of them. */
const SLOWED_MS = 10;
/** After each wait so many have a time slice: all slowed connections together have 2,000 a second. */
const SLOWED_SLICES = 20;

/**
 * Shares the time of the process among connections. While there is time, a connection handles its requests as they
 * arrive. Otherwise it queues: connections with new requests handle one each; those that have had a time slice and
 * have pipelined more share the rest of the time. Slowed connections have a fixed number of time slices a second,
 * however many they are: otherwise they would use all of the time that others leave, and each response that waits for a
 * database would wait for several full iterations of the event loop.
 */
export class ConnectionScheduler {
  readonly #newRequests: ScheduledConnection[] = [];
  readonly #pipelined: ScheduledConnection[] = [];
  /** In this iteration of the event loop, or in several if they were few. */
  #requests = 0;
  #isTimed = false;
  #startedAt = 0;
  readonly #slowed = new Set<ScheduledConnection>();
  /** Of the requests that were handled. */
  readonly responses = new ResponseBatch();

  /** In milliseconds. */
  constructor(private readonly now = () => performance.now()) {}

  /** Whether a connection whose requests arrive now has to queue. */
  get isBusy(): boolean {
    return this.#newRequests.length > 0 || this.isTimeUp;
  }

  /** Connections that wait for a time slice. */
  get queueLength(): number {
    return this.#newRequests.length + this.#pipelined.length;
  }

  /** Whether this iteration of the event loop has taken long enough. */
  get isTimeUp(): boolean {
    return this.#isTimed && this.now() - this.#startedAt > MAX_MS_PER_ITERATION;
  }

  /** Whether a connection has had its time slice after so many requests and bytes of responses. */
  isSliceOver(requests: number, bytes: number): boolean {
    if (requests === 0) return false;
    if (bytes >= MAX_BYTES_PER_SLICE) return true;
    return requests % REQUESTS_PER_LOOK_AT_TIME === 0 && this.isTimeUp;
  }

  countRequest(): void {
    if (++this.#requests >= UNTIMED_REQUESTS && !this.#isTimed) this.#scheduleRun();
  }

  queueNewRequests(connection: ScheduledConnection): void {
    this.#newRequests.push(connection);
    if (!this.#isTimed) this.#scheduleRun();
  }

  queuePipelined(connection: ScheduledConnection): void {
    this.#pipelined.push(connection);
    if (!this.#isTimed) this.#scheduleRun();
  }

  /** For a connection that leaves time to others. Later it queues behind all new requests. */
  queueSlowed(connection: ScheduledConnection): void {
    if (this.#slowed.size === 0) this.#releaseSlowedLater();
    this.#slowed.add(connection);
  }

  /** For a connection that is closed. */
  forget(connection: ScheduledConnection): void {
    this.#slowed.delete(connection);
  }

  /** Together, because an iteration of the event loop takes longer than the response to one of them. */
  #releaseSlowedLater(): void {
    setTimeout(() => this.#releaseSlowed(), SLOWED_MS).unref();
  }

  #releaseSlowed(): void {
    let released = 0;
    for (const connection of this.#slowed) {
      if (released++ === SLOWED_SLICES) return this.#releaseSlowedLater();
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
    this.#pipelined.shift()?.runTimeSlice(MAX_REQUESTS_PER_SLICE);
    const newRequests = this.#newRequests.length;
    this.#runQueue(this.#newRequests, newRequests, { maxRequests: 1, maxMs: MAX_MS_PER_ITERATION });
    const share = { maxRequests: MAX_REQUESTS_PER_SLICE, maxMs: MAX_MS_OF_PIPELINED };
    this.#runQueue(this.#pipelined, pipelined - 1, share);
    this.responses.write();
    this.#requests = 0;
    this.#isTimed = false;
    if (this.#newRequests.length + this.#pipelined.length > 0) this.#scheduleRun();
  }

  /** The first `length` of the queue, until the time is up. */
  #runQueue(
    queue: ScheduledConnection[],
    length: number,
    { maxRequests, maxMs }: { maxRequests: number; maxMs: number },
  ): void {
    const endsAt = this.#startedAt + maxMs;
    let taken = 0;
    while (taken < length && this.now() <= endsAt) queue[taken++]?.runTimeSlice(maxRequests);
    queue.splice(0, taken);
  }
}

/** A connection with responses to write. */
export interface ResponseWriter {
  writeResponses(): void;
}

/**
 * Writes the responses of several connections one right after the other. A write wakes a client that waits, and that
 * takes longer than the rest of the write; of a batch, most clients are threads that the first write has woken. With 32
 * connections (`wrk -t1 -c32`), `GET /v1/pets` takes 19 µs of CPU time instead of 30, and a create 40 instead of 47.
 */
class ResponseBatch {
  readonly #connections: ResponseWriter[] = [];
  readonly #writeAll = () => this.write();
  #areMicrotasksAwaited = false;

  /** At the end of this iteration of the event loop there are the responses to all requests that it brought. */
  add(connection: ResponseWriter): void {
    if (this.#connections.push(connection) === 1) atEndOfIteration(this.#writeAll);
  }

  /**
   * Does not wait for the end of the iteration. When a database has committed several writes, the microtasks that are
   * queued already complete their responses.
   */
  writeAfterMicrotasks(): void {
    if (this.#areMicrotasksAwaited) return;
    this.#areMicrotasksAwaited = true;
    queueMicrotask(() => {
      this.#areMicrotasksAwaited = false;
      this.write();
    });
  }

  write(): void {
    for (const connection of this.#connections.splice(0)) connection.writeResponses();
  }
}
