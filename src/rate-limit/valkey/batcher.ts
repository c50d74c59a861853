import type { Limits, Subject, Decision } from "../../domain/rate-limit.ts";
import type { Awaitable } from "../../domain/awaitable.ts";

/** One request to decide. */
export interface Asked {
  readonly subject: Subject;
  readonly limits: Limits;
}

interface Waiting extends Asked {
  readonly answer: (decision: Awaitable<Decision>) => void;
}

interface Flight {
  readonly batch: readonly Waiting[];
  ticks: number;
}

export interface BatcherOptions {
  /** Decisions in the order of the batch. */
  send(batch: readonly Asked[]): Promise<readonly Decision[]>;
  /** Answers what the batcher no longer can. */
  instead(asked: Asked): Awaitable<Decision>;
  /** Called once, at the first fault. */
  onBreak(cause: unknown, asked: Asked | undefined): void;
  readonly maxBatch: number;
  readonly maxFlights: number;
  /** How long the other end may keep silent before it is taken for dead. */
  readonly silenceMs: number;
}

/** More than this in the queue is not a burst but a server that cannot keep up. */
const MAX_WAITING = 10_000;
/**
 * Silence is counted in turns of our own loop. If it is this process that stood still, its timer fires once however
 * late it is, and the answers that arrived meanwhile are read before it fires again.
 */
const TICKS = 5;

/**
 * Takes requests to the server in batches: what arrives while a batch is under way makes up the next one, so a lone
 * request never waits and a busy server is asked few, long questions.
 *
 * The first fault breaks the batcher for good. Whatever is under way or queued is then answered elsewhere, at once. The
 * server may have counted some of it all the same, or do so later: such a request is counted in both places.
 */
export class Batcher {
  readonly #options: BatcherOptions;
  readonly #flights = new Set<Flight>();
  #waiting: Waiting[] = [];
  #timer: Timer | undefined;
  #isBroken = false;

  constructor(options: BatcherOptions) {
    this.#options = options;
  }

  decide(subject: Subject, limits: Limits): Promise<Decision> {
    return new Promise((answer) => {
      this.#waiting.push({ subject, limits, answer });
      if (this.#isBroken) this.#answerInstead();
      else if (this.#waiting.length > MAX_WAITING) this.#fail(new Error("too many requests are waiting"));
      else this.#depart();
    });
  }

  /** Leaves everything to whoever answers instead, and tells nobody. */
  close(): void {
    this.#isBroken = true;
    clearTimeout(this.#timer);
    this.#answerInstead();
  }

  #depart(): void {
    const { maxBatch, maxFlights } = this.#options;
    while (this.#waiting.length > 0 && this.#flights.size < maxFlights) {
      void this.#fly({ batch: this.#waiting.splice(0, maxBatch), ticks: 0 });
    }
  }

  async #fly(flight: Flight): Promise<void> {
    const { batch } = flight;
    this.#flights.add(flight);
    this.#timer ??= this.#nextTick();
    try {
      const decisions = await this.#options.send(batch);
      // Too late: it was answered elsewhere.
      if (!this.#flights.delete(flight)) return;
      this.#depart();
      decisions.forEach((decision, i) => batch[i]?.answer(decision));
    } catch (cause) {
      this.#fail(cause, batch[0]);
    }
  }

  #nextTick(): Timer {
    return setTimeout(() => this.#tick(), this.#options.silenceMs / TICKS);
  }

  #tick(): void {
    for (const flight of this.#flights) {
      flight.ticks++;
      if (flight.ticks >= TICKS) {
        this.#fail(new Error(`no answer within ${this.#options.silenceMs} ms`), flight.batch[0]);
        return;
      }
    }
    this.#timer = this.#flights.size > 0 ? this.#nextTick() : undefined;
  }

  #fail(cause: unknown, asked?: Asked): void {
    if (this.#isBroken) return;
    this.#options.onBreak(cause, asked);
    this.close();
  }

  #answerInstead(): void {
    const left = [...this.#flights].flatMap(({ batch }) => batch).concat(this.#waiting);
    this.#flights.clear();
    this.#waiting = [];
    for (const asked of left) asked.answer(Promise.try(() => this.#options.instead(asked)));
  }
}
