import { ReadBuffer } from "./read-buffer.ts";
import { type Awaitable, IncomingRequest, type RequestConnection, type RequestHandler } from "./request.ts";
import { type RequestHead, RequestHeadParser } from "./request-head.ts";
import { type ProtocolErrorStatus, type Response, writeResponse } from "./response.ts";
import { type Writable, WriteBuffer } from "./write-buffer.ts";

/** The server's end of a TCP connection. */
export interface Socket extends Writable {
  /** Undefined if the client disconnected before the connection was accepted. */
  readonly remoteAddress: string | undefined;
  pause(): void;
  resume(): void;
  /** Closes the sending side only. */
  shutdown(): void;
  end(): void;
  /** Closes at once, without sending what is pending. */
  terminate(): void;
}

/** What all connections of a server share. */
export interface ConnectionContext {
  readonly handler: RequestHandler;
  readonly uptimeSeconds: number;
  /** The `Date` line of the current second, and the header lines that every response has. */
  readonly dateLine: string;
  /** Whether every connection closes after its next response. */
  readonly isShuttingDown: boolean;
}

/** Longer than load balancers keep idle connections, so that they close first and no request meets a closed one. */
export const IDLE_TIMEOUT_SECONDS = 75;
/** From the first byte of a request to the last. */
export const REQUEST_TIMEOUT_SECONDS = 30;
/** For a client that does not read its response; each byte that it reads starts the time again. */
const WRITE_TIMEOUT_SECONDS = 30;
/**
 * What the client still sends after the last response is read and dropped (RFC 9112, 9.6): a reset could destroy that
 * response before the client reads it. The connection closes when the client sends nothing for 2 seconds, and at the
 * latest after 30 seconds or 16 MiB.
 */
const LINGER_SILENCE_SECONDS = 2;
const LINGER_SECONDS = 30;
const MAX_LINGER_BYTES = 16 * 1024 * 1024;
/** After this many pipelined requests the other connections get their turn. */
const MAX_REQUESTS_PER_TURN = 32;
/** With more unparsed bytes than this the connection stops reading. */
const MAX_READ_AHEAD_BYTES = 64 * 1024;

const CLOSE_LINE = "Connection: close\r\n";
const KEEP_ALIVE_LINE = "Connection: keep-alive\r\n";

/**
 * One client's connection. Pipelined requests are handled one after the other, so responses have the order of the
 * requests. Backpressure: while the socket accepts no more of a response, no further request is parsed or read.
 */
export class Connection implements RequestConnection {
  readonly readBuffer = new ReadBuffer();
  readonly remoteAddress: string;
  readonly #writeBuffer: WriteBuffer;
  readonly #headParser = new RequestHeadParser();
  #state: "open" | "closing" | "closed" = "open";
  #request: IncomingRequest | undefined;
  /** The client has closed its sending side. */
  #hasClientEnded = false;
  /** The client may still be sending bytes that the server will not parse. */
  #hasUnreadInput = false;
  #isTurnOver = false;
  #isPaused = false;
  /** When the current wait began: for the next request, the rest of one, the client to read, or to send no more. */
  #waitingSince: number;
  #closingSince = 0;
  #lingerBytes = 0;

  constructor(
    private readonly socket: Socket,
    private readonly context: ConnectionContext,
  ) {
    this.remoteAddress = socket.remoteAddress ?? "";
    this.#writeBuffer = new WriteBuffer(socket);
    this.#waitingSince = context.uptimeSeconds;
  }

  /** No byte of a request has arrived, and no byte of a response is left to send. */
  get isIdle(): boolean {
    return this.#request === undefined && this.readBuffer.length === 0 && !this.#writeBuffer.isBlocked;
  }

  onData(bytes: Buffer): void {
    if (this.#state !== "open") return this.#discard(bytes);
    const wasIdle = this.isIdle;
    this.readBuffer.append(bytes);
    this.#process();
    if (wasIdle && !this.isIdle) this.#waitingSince = this.context.uptimeSeconds;
  }

  onDrain(): void {
    if (!this.#writeBuffer.isBlocked) return;
    this.#waitingSince = this.context.uptimeSeconds;
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
    this.#request?.abortBody();
  }

  /** The server calls this every second. */
  checkTimeouts(): void {
    const seconds = this.context.uptimeSeconds - this.#waitingSince;
    if (this.#writeBuffer.isBlocked) {
      if (seconds > WRITE_TIMEOUT_SECONDS) this.socket.terminate();
    } else if (this.#state === "closing") {
      if (seconds > LINGER_SILENCE_SECONDS || this.#hasLingered) this.socket.end();
    } else if (this.isIdle) {
      if (seconds > IDLE_TIMEOUT_SECONDS) this.close();
    } else if (this.#isWaitingForClient && seconds > REQUEST_TIMEOUT_SECONDS) {
      this.#rejectRequest(408);
    }
  }

  /** Sends what is buffered, then closes. */
  close(): void {
    if (this.#state !== "open") return;
    this.#state = "closing";
    this.#waitingSince = this.#closingSince = this.context.uptimeSeconds;
    this.#hasUnreadInput ||= this.#request !== undefined || this.readBuffer.length > 0;
    this.#request?.abortBody();
    this.#writeBuffer.flush();
    this.#setReading(true);
    if (!this.#writeBuffer.isBlocked) this.#closeSocket();
  }

  /** Closes unless a request has arrived whose response is not sent yet. The first part of a head is dropped. */
  closeBetweenRequests(): void {
    if (!this.#isWaitingForClient || this.#request !== undefined) return;
    this.readBuffer.skip(this.readBuffer.length);
    this.close();
  }

  terminate(): void {
    this.socket.terminate();
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

  get #isWaitingForClient(): boolean {
    return this.#canProcess && (this.#request === undefined || this.#request.isWaitingForBody);
  }

  #process(): void {
    for (let requestsLeft = MAX_REQUESTS_PER_TURN; this.#canProcess; requestsLeft--) {
      if (this.#request !== undefined) {
        if (!this.#receiveBody(this.#request)) break;
      } else if (requestsLeft <= 0 && this.readBuffer.length > 0) {
        this.#endTurn();
      } else {
        const head = this.#headParser.parse(this.readBuffer);
        if (head === undefined) break;
        if (typeof head === "number") this.#rejectRequest(head);
        else this.#startRequest(head);
      }
    }
    if (this.#state !== "open") return;
    this.#writeBuffer.flush();
    if (this.#hasClientEnded && this.#isWaitingForClient) this.close();
    else this.#setReading(this.#canReadMore);
  }

  get #canReadMore(): boolean {
    if (this.#writeBuffer.isBlocked || this.#isTurnOver) return false;
    return this.readBuffer.length <= MAX_READ_AHEAD_BYTES;
  }

  #setReading(isReading: boolean): void {
    if (isReading !== this.#isPaused) return;
    this.#isPaused = !isReading;
    if (isReading) this.socket.resume();
    else this.socket.pause();
  }

  #endTurn(): void {
    this.#isTurnOver = true;
    setImmediate(() => {
      this.#isTurnOver = false;
      this.#process();
    });
  }

  #startRequest(head: RequestHead): void {
    const request = new IncomingRequest(head, this);
    this.#request = request;
    const response = this.#handle(request);
    if (response instanceof Promise) this.#respondLater(request, response);
    else this.#respond(request, response);
  }

  #handle(request: IncomingRequest): Awaitable<Response> {
    const { handler } = this.context;
    try {
      return handler.handle(request);
    } catch (error) {
      return handler.handleError(error);
    }
  }

  #respondLater(request: IncomingRequest, response: Promise<Response>): void {
    const respond = (settled: Response) => {
      this.#respond(request, settled);
      this.#process();
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
    this.#waitingSince = this.context.uptimeSeconds;
    const body = request.receiveBody();
    const { framing, method } = request.head;
    const isEndUnknown = body === "too large" || body === "malformed" || request.isWaitingForContinue;
    const close = framing.close || this.context.isShuttingDown || isEndUnknown;
    const connectionLine = close ? CLOSE_LINE : framing.keepAlive ? KEEP_ALIVE_LINE : "";
    const connectionLines = this.context.dateLine + connectionLine;
    writeResponse(this.#writeBuffer, response, { connectionLines, isHead: method === "HEAD" });
    if (body === "complete") this.#request = undefined;
    if (close) this.close();
  }

  #rejectRequest(status: ProtocolErrorStatus): void {
    if (this.#request?.hasResponse !== true) {
      const response = this.context.handler.protocolError(status);
      const connectionLines = this.context.dateLine + CLOSE_LINE;
      const isHead = this.#request?.method === "HEAD";
      writeResponse(this.#writeBuffer, response, { connectionLines, isHead });
    }
    this.#hasUnreadInput = true;
    this.close();
  }

  #discard(bytes: Buffer): void {
    this.#waitingSince = this.context.uptimeSeconds;
    this.#lingerBytes += bytes.length;
    if (this.#lingerBytes > MAX_LINGER_BYTES) this.socket.end();
  }

  get #hasLingered(): boolean {
    const maxSeconds = this.context.isShuttingDown ? LINGER_SILENCE_SECONDS : LINGER_SECONDS;
    return this.context.uptimeSeconds - this.#closingSince > maxSeconds;
  }

  /** While the client may still send, only the sending side closes; `checkTimeouts` closes the rest. */
  #closeSocket(): void {
    if (this.#hasClientEnded || !this.#hasUnreadInput) this.socket.end();
    else this.socket.shutdown();
  }
}
