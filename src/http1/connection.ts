import type { Awaitable } from "../domain/awaitable.ts";
import { type Carrier, Exchange } from "./exchange.ts";
import { type Fault, type Head, HeadReader } from "./request-head.ts";
import { ReadBuffer } from "./read-buffer.ts";
import { WriteBuffer, type Sink } from "./write-buffer.ts";
import { render, type Response } from "./response.ts";
import type { RequestHandler } from "./request-handler.ts";

/** The socket at our end of a connection. */
export interface Line extends Sink {
  /** None where the client has gone again by the time that it is taken in. */
  readonly remoteAddress: string | undefined;
  pause(): void;
  resume(): void;
  /** Sends no more, and goes on receiving. */
  shutdown(): void;
  end(): void;
  /** Ends without regard for what is under way. */
  terminate(): void;
}

/** What connections have in common. */
export interface Service extends RequestHandler {
  /** Counts seconds. */
  readonly tick: number;
  /** The `Date` line of this second. */
  readonly date: string;
  /** Whether every connection is to end with its next answer. */
  readonly isLeaving: boolean;
}

/** A connection on which nothing is asked stays this long: longer than load balancers keep one that is idle. */
export const IDLE_SECONDS = 75;
/** A request that has begun must have come by then, and an answer must go on being taken. */
export const PATIENCE_SECONDS = 30;
/** What the client still sends after the last answer is dropped for this long, or it might lose that answer. */
export const LINGER_SECONDS = 2;
const CLOSES = "Connection: close\r\n";
const STAYS = "Connection: keep-alive\r\n";
/** So many requests in one go; then others get their turn. */
const SHARE = 32;
/** A client that sends on without waiting for answers is not listened to beyond this. */
const MAX_AHEAD_BYTES = 64 * 1024;

/**
 * One client's connection: requests are read, answered and written one after the other.
 *
 * While the socket does not take an answer, nothing further is looked at; so a client that does not read its answers,
 * or sends without end, keeps nobody waiting but itself.
 */
export class Connection implements Carrier {
  readonly readBuffer = new ReadBuffer();
  readonly remoteAddress: string;
  readonly #writeBuffer: WriteBuffer;
  readonly #heads = new HeadReader();
  #state: "open" | "leaving" | "closed" = "open";
  /** The request under way. */
  #exchange: Exchange | undefined;
  /** The client has said all that it will. */
  #hasEnded = false;
  /** It was left in the middle of what the client had to say. */
  #isMidway = false;
  #isPutOff = false;
  #isPaused = false;
  /** When what is waited for began: the rest of a request, the next one, or the taking of an answer. */
  #since: number;

  constructor(
    private readonly line: Line,
    private readonly service: Service,
  ) {
    this.remoteAddress = line.remoteAddress ?? "";
    this.#writeBuffer = new WriteBuffer(line);
    this.#since = service.tick;
  }

  /** Nothing of a request has come, and nothing of an answer is to go. */
  get isIdle(): boolean {
    return this.#exchange === undefined && this.readBuffer.length === 0 && !this.#writeBuffer.isBlocked;
  }

  receive(bytes: Buffer): void {
    if (this.#state !== "open") return;
    const wasIdle = this.isIdle;
    this.readBuffer.add(bytes);
    this.#proceed();
    if (wasIdle && !this.isIdle) this.#since = this.service.tick;
  }

  /** The socket takes more. */
  drain(): void {
    if (!this.#writeBuffer.isBlocked) return;
    this.#since = this.service.tick;
    this.#writeBuffer.drain();
    if (this.#state === "leaving" && !this.#writeBuffer.isBlocked) this.#hangUp();
    this.#proceed();
  }

  /** The client sends no more; what it has asked for it still gets. */
  end(): void {
    this.#hasEnded = true;
    this.#proceed();
  }

  /** Ends without regard for what is under way. */
  cut(): void {
    this.line.terminate();
  }

  closed(): void {
    this.#state = "closed";
    this.#exchange?.giveUp();
  }

  /** To be called every second: ends what takes too long. */
  check(): void {
    const seconds = this.service.tick - this.#since;
    if (this.#writeBuffer.isBlocked) {
      if (seconds > PATIENCE_SECONDS) this.line.terminate();
    } else if (this.#state === "leaving") {
      if (seconds > LINGER_SECONDS) this.line.end();
    } else if (this.isIdle) {
      if (seconds > IDLE_SECONDS) this.leave();
    } else if (this.#isWaitingForClient && seconds > PATIENCE_SECONDS) {
      this.#turnAway(408);
    }
  }

  /** Sends no more after what has been said so far. */
  leave(): void {
    if (this.#state !== "open") return;
    this.#state = "leaving";
    this.#since = this.service.tick;
    this.#isMidway ||= this.#exchange !== undefined || this.readBuffer.length > 0;
    this.#exchange?.giveUp();
    this.#writeBuffer.flush();
    this.#listen(true);
    if (!this.#writeBuffer.isBlocked) this.#hangUp();
  }

  invite(): void {
    const text = "HTTP/1.1 100 Continue\r\n\r\n";
    this.#writeBuffer.add(text, text.length);
    this.#writeBuffer.flush();
  }

  readOn(): void {
    queueMicrotask(() => this.#proceed());
  }

  /** Whether there is nothing to do until more comes. */
  get #isWaitingForClient(): boolean {
    if (!this.#canProceed) return false;
    return this.#exchange === undefined || this.#exchange.isReceiving;
  }

  #proceed(): void {
    for (let share = SHARE; this.#canProceed; share--) {
      if (this.#exchange !== undefined) {
        if (!this.#advance(this.#exchange)) break;
      } else if (share <= 0 && this.readBuffer.length > 0) {
        this.#putOff();
      } else {
        const head = this.#heads.next(this.readBuffer);
        if (head === undefined) break;
        if (typeof head === "number") this.#turnAway(head);
        else this.#begin(head);
      }
    }
    if (this.#state !== "open") return;
    this.#writeBuffer.flush();
    if (this.#hasEnded && this.#isWaitingForClient) this.leave();
    else this.#listen(!this.#isFull);
  }

  get #canProceed(): boolean {
    return this.#state === "open" && !this.#writeBuffer.isBlocked && !this.#isPutOff;
  }

  /** Whether there is more than can be dealt with for now. */
  get #isFull(): boolean {
    if (this.#writeBuffer.isBlocked || this.#isPutOff) return true;
    return this.readBuffer.length > MAX_AHEAD_BYTES;
  }

  #listen(isWanted: boolean): void {
    if (isWanted !== this.#isPaused) return;
    this.#isPaused = !isWanted;
    if (isWanted) this.line.resume();
    else this.line.pause();
  }

  #putOff(): void {
    this.#isPutOff = true;
    setImmediate(() => {
      this.#isPutOff = false;
      this.#proceed();
    });
  }

  #begin(head: Head): void {
    const exchange = new Exchange(head, this);
    this.#exchange = exchange;
    const response = this.#replyTo(exchange);
    if (response instanceof Promise) this.#await(exchange, response);
    else this.#give(exchange, response);
  }

  #replyTo(exchange: Exchange): Awaitable<Response> {
    try {
      return this.service.handle(exchange);
    } catch (error) {
      return this.service.handleError(error);
    }
  }

  #await(exchange: Exchange, response: Promise<Response>): void {
    const give = (given: Response) => {
      this.#give(exchange, given);
      this.#proceed();
    };
    response.then(give, (error: unknown) => give(this.service.handleError(error)));
  }

  /** Deals with more of the body. Whether that was the last of it, after its answer. */
  #advance(exchange: Exchange): boolean {
    const progress = exchange.advance();
    if (progress === "broken") this.#turnAway(400);
    if (!exchange.isAnswered) return false;
    if (progress === "large") this.leave();
    if (progress === "done") this.#exchange = undefined;
    return progress === "done";
  }

  #give(exchange: Exchange, response: Response): void {
    if (this.#state !== "open") return;
    exchange.finish();
    this.#since = this.service.tick;
    const rest = exchange.advance();
    const { framing, method } = exchange.head;
    const hasNoEnd = rest === "large" || rest === "broken" || exchange.isClientWaiting;
    const closes = framing.closes || this.service.isLeaving || hasNoEnd;
    const staying = closes ? CLOSES : framing.stays ? STAYS : "";
    render(response, this.service.date + staying, { into: this.#writeBuffer, isHead: method === "HEAD" });
    if (rest === "done") this.#exchange = undefined;
    if (closes) this.leave();
  }

  #turnAway(status: Fault): void {
    if (this.#exchange?.isAnswered !== true) {
      const response = { status, lines: "", body: "" };
      render(response, this.service.date + CLOSES, { into: this.#writeBuffer, isHead: false });
    }
    this.#isMidway = true;
    this.leave();
  }

  /** What is closed while more is coming breaks off, and the client may lose the last answer. */
  #hangUp(): void {
    if (this.#hasEnded || !this.#isMidway) this.line.end();
    else this.line.shutdown();
  }
}
