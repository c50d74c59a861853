import { atEndOfIteration, scheduler } from "../runtime/scheduler.ts";

/** A connection with requests to handle. */
export interface ScheduledConnection {
  /** Handles requests, at most `maxRequests`. */
  runTimeSlice(maxRequests: number): void;
}

/** After this many requests, or bytes of responses, of one connection the time slice of another begins. */
export const MAX_REQUESTS_PER_SLICE = 32;
const MAX_BYTES_PER_SLICE = 64 * 1024;
/** The requests between two looks at the time, which takes longer than some requests. */
const REQUESTS_PER_LOOK_AT_TIME = 8;
/** The time for requests in one iteration of the event loop. Then new connections and requests are read. */
const MAX_MS_PER_ITERATION = 4;
/** The requests of one iteration before the first look at the time. */
const UNTIMED_REQUESTS = 16;
/** The part of that time for pipelined requests, so that new requests and replies of databases are read sooner. */
const MAX_MS_OF_PIPELINED = 1;
/** The wait of a slowed connection for its next time slice, which is longer if there are many. */
const SLOWED_MS = 10;
/** The time slices after each wait. All slowed connections together have 2,000 a second. */
const SLOWED_SLICES = 20;

/**
 * Shares the time of the process among connections. While there is time, a connection handles its requests as they
 * arrive. Otherwise it queues: connections with new requests handle one each, and those with more pipelined requests
 * share the rest of the time. Slowed connections have a fixed number of time slices a second, however many there are.
 * Otherwise they would use all of the remaining time, and each response that needs a database would wait for several
 * full iterations of the event loop.
 */
export class ConnectionScheduler {
  readonly #newRequests: ScheduledConnection[] = [];
  readonly #pipelined: ScheduledConnection[] = [];
  /** The requests in this iteration of the event loop, or in several if they were few. */
  #requests = 0;
  #isTimed = false;
  #startedAt = 0;
  readonly #slowed = new Set<ScheduledConnection>();
  /** The responses to the requests that were handled. */
  readonly responses = new ResponseBatch();

  /** `now` returns milliseconds. */
  constructor(private readonly now = () => performance.now()) {}

  /** Whether a connection whose requests arrive now has to queue. */
  get isBusy(): boolean {
    return this.#newRequests.length > 0 || this.isTimeUp;
  }

  /** The number of connections that wait for a time slice. */
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

  /** Queues a slowed connection. After its wait, it queues behind all new requests. */
  queueSlowed(connection: ScheduledConnection): void {
    if (this.#slowed.size === 0) this.#releaseSlowedLater();
    this.#slowed.add(connection);
  }

  /** Removes a connection that is closed. */
  forget(connection: ScheduledConnection): void {
    this.#slowed.delete(connection);
  }

  /** Releases several together, because an iteration of the event loop takes longer than one response. */
  #releaseSlowedLater(): void {
    scheduler.setTimeout(() => this.#releaseSlowed(), SLOWED_MS).unref();
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
    // At least one has a time slice, so that pipelined requests are handled however many new ones there are.
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

  /** Runs the first `length` connections of the queue, until the time is up. */
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
 * Writes the responses of several connections one right after the other. A write wakes a client that waits, which takes
 * longer than the rest of the write. In a batch, the first write has woken the threads of most clients. With 32
 * connections (`wrk -t1 -c32`), `GET /v1/pets` takes a fifth less CPU time.
 */
class ResponseBatch {
  readonly #connections: ResponseWriter[] = [];
  readonly #writeAll = () => this.write();
  #areMicrotasksAwaited = false;

  /** Writes at the end of this iteration of the event loop, with the responses to its other requests. */
  add(connection: ResponseWriter): void {
    if (this.#connections.push(connection) === 1) atEndOfIteration(this.#writeAll);
  }

  /**
   * Writes before the end of the iteration. When a database has committed several writes, the microtasks in the queue
   * complete their responses first.
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
