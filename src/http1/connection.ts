import type { ConnectionContext, Socket } from "./connection-context.ts";
import { LingeringClose } from "./lingering-close.ts";
import { MAX_READ_AHEAD_BYTES, ReadBuffer } from "./read-buffer.ts";
import { type Awaitable, IncomingRequest, type RequestConnection } from "./request.ts";
import { type RequestHead, RequestHeadParser } from "./request-head.ts";
import { RejectionStreak } from "./rejection-streak.ts";
import type { ResponseWriter } from "./response-batch.ts";
import { type ProtocolErrorStatus, type Response, writeResponse } from "./response.ts";
import * as timeouts from "./timeouts.ts";
import { MAX_REQUESTS_PER_TURN, type TurnTaker } from "./turns.ts";
import { WriteBuffer } from "./write-buffer.ts";

const CLOSE_LINE = "Connection: close\r\n";
const KEEP_ALIVE_LINE = "Connection: keep-alive\r\n";

/**
 * One client's connection. Pipelined requests are handled one after the other, so responses have the order of the
 * requests. Backpressure: while the socket accepts no more of a response, no further request is parsed or read.
 */
export class Connection implements RequestConnection, ResponseWriter, TurnTaker {
  readonly readBuffer = new ReadBuffer();
  readonly remoteAddress: string;
  /** Whether the head of at least one request has arrived. */
  hasReceivedRequest = false;
  /** When the current wait began: for the next request, for the rest of one, or for the client to read. In seconds. */
  waitingSince: number;
  readonly #writeBuffer: WriteBuffer;
  readonly #headParser = new RequestHeadParser();
  #state: "open" | "closing" | "closed" = "open";
  #request: IncomingRequest | undefined;
  /** The client has closed its sending side. */
  #hasClientEnded = false;
  /** The client may still be sending bytes that the server will not parse. */
  #hasUnreadInput = false;
  #isTurnOver = false;
  #isSlowed = false;
  readonly #rejections = new RejectionStreak();
  #isPaused = false;
  #lingeringClose: LingeringClose | undefined;

  constructor(
    private readonly socket: Socket,
    private readonly context: ConnectionContext,
    /** A load balancer's connection carries requests of many clients, so none is slowed for the others. */
    private readonly isTrusted = false,
  ) {
    this.remoteAddress = socket.remoteAddress ?? "";
    this.#writeBuffer = new WriteBuffer(socket, context.traffic);
    this.waitingSince = context.uptimeSeconds;
  }

  /** No byte of a request has arrived, and no byte of a response is left to send. */
  get isIdle(): boolean {
    return this.#request === undefined && this.readBuffer.length === 0 && !this.#writeBuffer.isBlocked;
  }

  /** Whether it may be closed for a new connection, or because the server stops. */
  get isEvictable(): boolean {
    return this.isIdle || this.#isSlowed;
  }

  /** The client could send the rest of a request, or read a response. */
  get isWaitingForClient(): boolean {
    return this.#state === "closing" || this.#writeBuffer.isBlocked || this.#isReading;
  }

  onData(bytes: Buffer): void {
    this.context.traffic.bytesReceived += bytes.length;
    if (this.#state !== "open") return this.#lingeringClose?.onData(bytes);
    const wasIdle = this.isIdle;
    this.readBuffer.append(bytes);
    if (!this.#isTurnOver && this.context.turns.areTaken) this.#queueNewRequests();
    else this.#process();
    if (wasIdle && !this.isIdle) this.waitingSince = this.context.uptimeSeconds;
  }

  onDrain(): void {
    if (!this.#writeBuffer.isBlocked) return;
    this.waitingSince = this.context.uptimeSeconds;
    this.#writeBuffer.drain();
    if (this.#state === "closing" && !this.#writeBuffer.isBlocked) this.#closeSocket();
    this.#process();
  }

  /** The client has closed its sending side. It still gets the responses to its complete requests. */
  onEnd(): void {
    this.#hasClientEnded = true;
    this.#process();
  }

  onClose(): void {
    this.#state = "closed";
    this.context.turns.forget(this);
    this.#request?.abortBody();
  }

  /** The server calls this every second. */
  checkTimeouts(): void {
    const seconds = this.context.uptimeSeconds - this.waitingSince;
    if (this.#writeBuffer.isBlocked) {
      if (seconds > timeouts.WRITE_TIMEOUT_SECONDS) this.socket.terminate();
    } else if (this.#state === "closing") {
      this.#lingeringClose?.checkTimeout();
    } else if (this.isIdle) {
      const timeout = this.hasReceivedRequest
        ? timeouts.IDLE_TIMEOUT_SECONDS
        : timeouts.SILENT_TIMEOUT_SECONDS;
      if (seconds > timeout) this.close();
      else if (seconds > timeouts.FORGET_SECONDS) this.#headParser.forget();
    } else if (this.#isReading && seconds > timeouts.REQUEST_TIMEOUT_SECONDS) {
      this.#rejectRequest(408);
    }
  }

  /** Sends what is buffered, then closes. */
  close(): void {
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.waitingSince = this.context.uptimeSeconds;
    this.#lingeringClose = new LingeringClose(this.socket, this.context);
    this.#hasUnreadInput ||= this.#request !== undefined || this.readBuffer.length > 0;
    this.#request?.abortBody();
    this.#writeBuffer.flush();
    this.#setReading(true);
    if (!this.#writeBuffer.isBlocked) this.#closeSocket();
  }

  /** Closes unless a request has arrived whose response is not sent yet. The first part of a head is dropped. */
  closeBetweenRequests(): void {
    if (!this.#isReading || this.#request !== undefined) return;
    this.readBuffer.skip(this.readBuffer.length);
    this.close();
  }

  terminate(): void {
    this.socket.terminate();
  }

  /** Closes at once, so that a new connection has its place. */
  evict(): void {
    if (this.isIdle) this.close();
    else this.#writeBuffer.flush();
    if (this.#state !== "closed") this.socket.terminate();
  }

  sendContinue(): void {
    const text = "HTTP/1.1 100 Continue\r\n\r\n";
    this.#writeBuffer.append(text, text.length);
    this.#writeBuffer.flush();
  }

  processLater(): void {
    queueMicrotask(() => this.#process());
  }

  get #canProcess(): boolean {
    return this.#state === "open" && !this.#writeBuffer.isBlocked && !this.#isTurnOver;
  }

  get #isReading(): boolean {
    return this.#canProcess && (this.#request === undefined || this.#request.isWaitingForBody);
  }

  #process(maxRequests = MAX_REQUESTS_PER_TURN): void {
    const { totalBytes } = this.#writeBuffer;
    for (let requests = 0; this.#canProcess; requests++) {
      if (this.#request !== undefined) {
        if (!this.#receiveBody(this.#request)) break;
      } else if (
        this.readBuffer.length > 0 &&
        (requests >= maxRequests ||
          this.context.turns.isLong(requests, this.#writeBuffer.totalBytes - totalBytes))
      ) {
        this.#isTurnOver = true;
        this.context.turns.queuePipelined(this);
      } else {
        const head = this.#headParser.parse(this.readBuffer);
        if (head === undefined) break;
        if (typeof head === "number") this.#rejectRequest(head);
        else this.#startRequest(head);
      }
    }
    if (this.#state !== "open") return;
    if (this.#writeBuffer.isFilled) this.context.turns.responses.add(this);
    if (this.#hasClientEnded && this.#isReading) this.close();
    else this.#setReading(this.#canReadMore);
  }

  writeResponses(): void {
    if (this.#state !== "open") return;
    this.#writeBuffer.flush();
    this.#setReading(this.#canReadMore);
  }

  get #canReadMore(): boolean {
    const isFull = this.readBuffer.length > MAX_READ_AHEAD_BYTES;
    return !isFull && !this.#writeBuffer.isBlocked && !this.#isTurnOver;
  }

  #setReading(isReading: boolean): void {
    if (isReading !== this.#isPaused) return;
    this.#isPaused = !isReading;
    if (isReading) this.socket.resume();
    else this.socket.pause();
  }

  #queueNewRequests(): void {
    this.#isTurnOver = true;
    this.#setReading(false);
    this.context.turns.queueNewRequests(this);
  }

  takeTurn(maxRequests: number): void {
    this.#isTurnOver = false;
    this.#isSlowed = false;
    this.#process(maxRequests);
  }

  /** Waits after a response: a client that goes on without a valid key or quota leaves time to others. */
  #slowDown(): void {
    this.#isTurnOver = true;
    this.#isSlowed = true;
    this.context.turns.queueSlowed(this);
  }

  #startRequest(head: RequestHead): void {
    const request = new IncomingRequest(head, this);
    this.#request = request;
    this.hasReceivedRequest = true;
    this.context.turns.countRequest();
    const response = this.#handle(request);
    if (response instanceof Promise) this.#respondLater(request, response);
    else this.#respond(request, response);
  }

  #handle(request: IncomingRequest): Awaitable<Response> {
    try {
      return this.context.handler.handle(request);
    } catch (error) {
      return this.context.handler.handleError(error);
    }
  }

  #respondLater(request: IncomingRequest, response: Promise<Response>): void {
    const respond = (settled: Response) => {
      this.#respond(request, settled);
      // Responses that need no database settle one after the other in the same turn of the event loop.
      this.#process(this.context.turns.isTimeUp ? 0 : MAX_REQUESTS_PER_TURN);
      this.context.turns.responses.writeAfterMicrotasks();
    };
    response.then(respond, (error: unknown) => respond(this.context.handler.handleError(error)));
  }

  /** Returns whether the request is over: its body has been received, and it has its response. */
  #receiveBody(request: IncomingRequest): boolean {
    const progress = request.receiveBody();
    if (progress === "malformed") this.#rejectRequest(400);
    if (!request.hasResponse) return false;
    if (progress === "too large") this.close();
    if (progress === "complete") this.#request = undefined;
    return progress === "complete";
  }

  #respond(request: IncomingRequest, response: Response): void {
    if (this.#state !== "open") return;
    request.markResponded();
    this.waitingSince = this.context.uptimeSeconds;
    const body = request.receiveBody();
    const { framing } = request.head;
    const isEndUnknown = body === "too large" || body === "malformed" || request.isWaitingForContinue;
    const streak = this.isTrusted ? "short" : this.#rejections.count(response.status);
    const close = framing.close || this.context.isShuttingDown || isEndUnknown || streak === "too long";
    this.#write(response, close ? CLOSE_LINE : framing.keepAlive ? KEEP_ALIVE_LINE : "");
    if (body === "complete") this.#request = undefined;
    if (close) this.close();
    else if (streak === "long") this.#slowDown();
  }

  #rejectRequest(status: ProtocolErrorStatus): void {
    if (this.#request?.hasResponse !== true) {
      this.#write(this.context.handler.protocolError(status), CLOSE_LINE);
    }
    this.#hasUnreadInput = true;
    this.close();
  }

  #write(response: Response, connectionLine: string): void {
    const connectionLines = this.context.commonLines + connectionLine;
    const isHead = this.#request?.method === "HEAD";
    writeResponse(this.#writeBuffer, response, { connectionLines, isHead });
  }

  /** While the client may still send, only the sending side closes; `LingeringClose` closes the rest. */
  #closeSocket(): void {
    if (this.#hasClientEnded || !this.#hasUnreadInput) this.socket.end();
    else this.socket.shutdown();
  }
}
