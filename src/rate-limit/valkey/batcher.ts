import { Overloaded } from "../../api/errors.ts";
import type { Awaitable } from "../../api/awaitable.ts";
import type { Decision, Limits, Subject } from "../../domain/rate-limit.ts";

export interface DecisionRequest {
  readonly subject: Subject;
  readonly limits: Limits;
}

interface PendingRequest extends DecisionRequest {
  readonly resolve: (decision: Awaitable<Decision>) => void;
}

interface Batch {
  readonly requests: readonly PendingRequest[];
  ticks: number;
}

export interface BatcherOptions {
  /** Resolves to the decisions, in the order of the requests. */
  send(requests: readonly DecisionRequest[]): Promise<readonly Decision[]>;
  /** Decides requests once the batcher has failed. */
  fallback(request: DecisionRequest): Awaitable<Decision>;
  /** Called once, at the first error. */
  onFailure(cause: unknown, request: DecisionRequest | undefined): void;
  readonly maxBatchSize: number;
  readonly maxConcurrentBatches: number;
  /** How long the server may take for a batch before it counts as dead. */
  readonly timeoutMs: number;
}

/** Valkey decides as many in about a tenth of a second. */
const MAX_QUEUED = 10_000;
/**
 * The timeout is counted in ticks of our own event loop. When this process itself is blocked, its timer fires once,
 * however late, and replies that arrived meanwhile are read before it fires again.
 */
const TICKS_PER_TIMEOUT = 5;

/**
 * Sends requests to the server in batches. Requests that arrive while a batch is sent form the next one, so a single
 * request never waits, and a busy server gets few large batches.
 *
 * When the queue is full, new requests are rejected: an overload says nothing about the server, and the fallback would
 * allow a key its limit once more.
 *
 * The batcher stops for good at the first error, and the fallback decides every request that is sent or queued. The
 * server may have counted some of them, or may still do so: those requests count twice.
 */
export class Batcher {
  readonly #options: BatcherOptions;
  readonly #sent = new Set<Batch>();
  #queue: PendingRequest[] = [];
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(options: BatcherOptions) {
    this.#options = options;
  }

  /** Requests that wait for the next batch. */
  get queueLength(): number {
    return this.#queue.length;
  }

  decide(subject: Subject, limits: Limits): Promise<Decision> {
    if (this.#queue.length >= MAX_QUEUED) {
      return Promise.reject(new Overloaded(`the queue for Valkey is full (${MAX_QUEUED} requests)`));
    }
    return new Promise((resolve) => {
      this.#queue.push({ subject, limits, resolve });
      if (this.#isStopped) this.#decideByFallback();
      else this.#sendQueue();
    });
  }

  /** Leaves every request to the fallback, without a call of `onFailure`. */
  close(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#decideByFallback();
  }

  #sendQueue(): void {
    const { maxBatchSize, maxConcurrentBatches } = this.#options;
    while (this.#queue.length > 0 && this.#sent.size < maxConcurrentBatches) {
      void this.#send({ requests: this.#queue.splice(0, maxBatchSize), ticks: 0 });
    }
  }

  async #send(batch: Batch): Promise<void> {
    const { requests } = batch;
    this.#sent.add(batch);
    this.#timer ??= this.#startTimer();
    try {
      const decisions = await this.#options.send(requests);
      // The fallback has decided already when the batch is gone.
      if (!this.#sent.delete(batch)) return;
      this.#sendQueue();
      decisions.forEach((decision, i) => requests[i]?.resolve(decision));
    } catch (cause) {
      this.#fail(cause, requests[0]);
    }
  }

  #startTimer(): Timer {
    return setTimeout(() => this.#tick(), this.#options.timeoutMs / TICKS_PER_TIMEOUT);
  }

  #tick(): void {
    for (const batch of this.#sent) {
      batch.ticks++;
      if (batch.ticks >= TICKS_PER_TIMEOUT) {
        this.#fail(new Error(`no reply within ${this.#options.timeoutMs} ms`), batch.requests[0]);
        return;
      }
    }
    this.#timer = this.#sent.size > 0 ? this.#startTimer() : undefined;
  }

  #fail(cause: unknown, request?: DecisionRequest): void {
    if (this.#isStopped) return;
    this.#options.onFailure(cause, request);
    this.close();
  }

  #decideByFallback(): void {
    const pending = [...this.#sent].flatMap(({ requests }) => requests).concat(this.#queue);
    this.#sent.clear();
    this.#queue = [];
    for (const request of pending) request.resolve(Promise.try(() => this.#options.fallback(request)));
  }
}
