import type { SocketHandler } from "bun";
import { type CommonLines, type Response, writeResponse } from "./response.ts";
import { IncomingRequest, type Peer, type RequestConnection, type RequestHandler } from "./request.ts";
import { type Writable, WriteBuffer } from "./write-buffer.ts";
import {
  type ConnectionScheduler,
  MAX_REQUESTS_PER_SLICE,
  type ResponseWriter,
  type ScheduledConnection,
} from "./connection-scheduler.ts";
import { LingeringClose } from "./lingering-close.ts";
import type { Pacer } from "./slow-rejected-clients.ts";
import { MAX_READ_AHEAD_BYTES, ReadBuffer } from "./read-buffer.ts";
import { type ProtocolErrorStatus, type RequestHead, RequestHeadParser } from "./request-head.ts";

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

/** Bytes of all connections since the start, without those that TLS adds. */
export interface TrafficCounts {
  bytesReceived: number;
  bytesSent: number;
}

/** What all connections of a server share. */
export interface ConnectionContext {
  readonly handler: RequestHandler;
  readonly uptimeSeconds: number;
  readonly commonLines: Pick<CommonLines, "current">;
  /** Whether every connection closes after its next response. */
  readonly isShuttingDown: boolean;
  readonly scheduler: ConnectionScheduler;
  readonly traffic: TrafficCounts;
  /** The timeout of the body of an unauthenticated request; undefined if it is that of any request. */
  readonly unauthenticatedBodySeconds?: number | undefined;
}

/** Load balancers close idle connections sooner, so that none sends a request on a connection that closes. */
export const IDLE_TIMEOUT_SECONDS = 75;
/** The time for the first byte of the first request. A client usually has a request when it connects. */
export const SILENT_TIMEOUT_SECONDS = 10;
/** The time without a request after which a connection releases the memory that makes the next request faster. */
const FORGET_SECONDS = 2;
/** The time from the first byte of a request to the last. */
export const RECEIVE_TIMEOUT_SECONDS = 30;
/** The time for a client to read its response. Each byte that it reads restarts the time. */
const WRITE_TIMEOUT_SECONDS = 30;

const CLOSE_LINE = "Connection: close\r\n";
const KEEP_ALIVE_LINE = "Connection: keep-alive\r\n";

/**
 * One client's connection. Pipelined requests are handled one after the other, so responses have the order of the
 * requests. Backpressure: while the socket accepts no more of a response, no further request is parsed or read.
 */
export class HttpConnection implements RequestConnection, ResponseWriter, ScheduledConnection {
  readonly readBuffer = new ReadBuffer();
  readonly remoteAddress: string;
  readonly peer: Peer;
  /** Whether the head of at least one request has arrived. */
  hasReceivedRequest = false;
  /** Whether the last request was authenticated. */
  isAuthenticated = false;
  /** The second in which the current wait began: for a request, for the rest of it, or for the client to read. */
  waitingSince: number;
  readonly #pace: Pacer | undefined;
  readonly #writeBuffer: WriteBuffer;
  readonly #headParser = new RequestHeadParser();
  #state: "open" | "closing" | "closed" = "open";
  #request: IncomingRequest | undefined;
  /** Whether the client has closed its sending side. */
  #hasClientEnded = false;
  /** Whether the client may still be sending bytes that the server will not parse. */
  #hasUnreadInput = false;
  #isWaitingForSlice = false;
  #isSlowed = false;
  #isPaused = false;
  #lingeringClose: LingeringClose | undefined;

  constructor(
    private readonly socket: Socket,
    private readonly context: ConnectionContext,
    { peer, pace }: { readonly peer: Peer; readonly pace?: Pacer | undefined },
  ) {
    this.peer = peer;
    this.#pace = pace;
    this.remoteAddress = socket.remoteAddress ?? "";
    this.#writeBuffer = new WriteBuffer(socket, context.traffic);
    this.waitingSince = context.uptimeSeconds;
  }

  /** Whether no byte of a request has arrived, and no byte of a response is left to send. */
  get isIdle(): boolean {
    return this.#request === undefined && this.readBuffer.length === 0 && !this.#writeBuffer.isBlocked;
  }

  /** Whether the connection may be closed for a new one, or because the server stops. */
  get isEvictable(): boolean {
    return this.isIdle || this.#isSlowed;
  }

  /** Whether the client has to send the rest of a request, or to read a response. */
  get isWaitingForClient(): boolean {
    return this.#state === "closing" || this.#writeBuffer.isBlocked || this.#isReading;
  }

  onData(bytes: Buffer): void {
    this.context.traffic.bytesReceived += bytes.length;
    if (this.#state !== "open") return this.#lingeringClose?.onData(bytes);
    const wasIdle = this.isIdle;
    this.readBuffer.append(bytes);
    if (!this.#isWaitingForSlice && this.context.scheduler.isBusy) this.#queueNewRequests();
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

  /** Called when the client has closed its sending side. It still gets the responses to its complete requests. */
  onEnd(): void {
    this.#hasClientEnded = true;
    this.#process();
  }

  onClose(): void {
    this.#state = "closed";
    this.context.scheduler.forget(this);
    this.#request?.abortBody();
  }

  /** The server calls this every second. */
  checkTimeouts(): void {
    const seconds = this.context.uptimeSeconds - this.waitingSince;
    if (this.#writeBuffer.isBlocked) {
      if (seconds > WRITE_TIMEOUT_SECONDS) this.socket.terminate();
    } else if (this.#state === "closing") {
      this.#lingeringClose?.checkTimeout();
    } else if (this.isIdle) {
      const timeout = this.hasReceivedRequest ? IDLE_TIMEOUT_SECONDS : SILENT_TIMEOUT_SECONDS;
      if (seconds > timeout) this.close();
      else if (seconds > FORGET_SECONDS) this.#headParser.forget();
    } else if (this.#isReading && seconds > this.#requestTimeoutSeconds) {
      this.#rejectRequest(408);
    }
  }

  get #requestTimeoutSeconds(): number {
    const { unauthenticatedBodySeconds = RECEIVE_TIMEOUT_SECONDS } = this.context;
    const isBody = this.#request !== undefined;
    return isBody && !this.isAuthenticated ? unauthenticatedBodySeconds : RECEIVE_TIMEOUT_SECONDS;
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

  /** Responds before a request has arrived, then closes. */
  reject(response: Response): void {
    this.#write(response, CLOSE_LINE);
    this.#hasUnreadInput = true;
    this.close();
  }

  /** Closes the connection unless a response is due. The first part of a head is dropped. */
  closeBetweenRequests(): void {
    if (!this.#isReading || this.#request !== undefined) return;
    this.readBuffer.skip(this.readBuffer.length);
    this.close();
  }

  terminate(): void {
    this.socket.terminate();
  }

  /** Closes at once, for a new connection. */
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
    return this.#state === "open" && !this.#writeBuffer.isBlocked && !this.#isWaitingForSlice;
  }

  get #isReading(): boolean {
    return this.#canProcess && (this.#request === undefined || this.#request.isWaitingForBody);
  }

  #process(maxRequests = MAX_REQUESTS_PER_SLICE): void {
    const { totalBytes } = this.#writeBuffer;
    for (let requests = 0; this.#canProcess; requests++) {
      if (this.#request !== undefined) {
        if (!this.#receiveBody(this.#request)) break;
      } else if (
        this.readBuffer.length > 0 &&
        (requests >= maxRequests ||
          this.context.scheduler.isSliceOver(requests, this.#writeBuffer.totalBytes - totalBytes))
      ) {
        this.#isWaitingForSlice = true;
        this.context.scheduler.queuePipelined(this);
      } else {
        const head = this.#headParser.parse(this.readBuffer);
        if (head === undefined) break;
        if (typeof head === "number") this.#rejectRequest(head);
        else this.#startRequest(head);
      }
    }
    if (this.#state !== "open") return;
    if (this.#writeBuffer.isFilled) this.context.scheduler.responses.add(this);
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
    return !isFull && !this.#writeBuffer.isBlocked && !this.#isWaitingForSlice;
  }

  #setReading(isReading: boolean): void {
    if (isReading !== this.#isPaused) return;
    this.#isPaused = !isReading;
    if (isReading) this.socket.resume();
    else this.socket.pause();
  }

  #queueNewRequests(): void {
    this.#isWaitingForSlice = true;
    this.#setReading(false);
    this.context.scheduler.queueNewRequests(this);
  }

  runTimeSlice(maxRequests: number): void {
    this.#isWaitingForSlice = false;
    this.#isSlowed = false;
    this.#process(maxRequests);
  }

  #slowDown(): void {
    this.#isWaitingForSlice = true;
    this.#isSlowed = true;
    this.context.scheduler.queueSlowed(this);
  }

  #startRequest(head: RequestHead): void {
    const request = new IncomingRequest(head, this);
    this.#request = request;
    this.hasReceivedRequest = true;
    this.isAuthenticated = false;
    this.context.scheduler.countRequest();
    const response = this.#handle(request);
    if (response instanceof Promise) this.#respondLater(request, response);
    else this.#respond(request, response);
  }

  #handle(request: IncomingRequest): Response | Promise<Response> {
    try {
      return this.context.handler.handle(request);
    } catch (error) {
      return this.context.handler.handleError(error);
    }
  }

  #respondLater(request: IncomingRequest, response: Promise<Response>): void {
    const respond = (settled: Response) => {
      this.#respond(request, settled);
      // Responses without a database settle one after the other in the same iteration of the event loop.
      this.#process(this.context.scheduler.isTimeUp ? 0 : MAX_REQUESTS_PER_SLICE);
      this.context.scheduler.responses.writeAfterMicrotasks();
    };
    response.then(respond, (error: unknown) => respond(this.context.handler.handleError(error)));
  }

  /** Returns whether the request is complete: its body has been received, and it has its response. */
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
    const next = this.#pace?.(response.status);
    const close = framing.close || this.context.isShuttingDown || isEndUnknown || next === "close";
    this.#write(response, close ? CLOSE_LINE : framing.keepAlive ? KEEP_ALIVE_LINE : "");
    if (body === "complete") this.#request = undefined;
    if (close) this.close();
    else if (next === "slow down") this.#slowDown();
  }

  #rejectRequest(status: ProtocolErrorStatus): void {
    if (this.#request?.hasResponse !== true) {
      this.#write(this.context.handler.protocolError(status), CLOSE_LINE);
    }
    this.#hasUnreadInput = true;
    this.close();
  }

  #write(response: Response, connectionLine: string): void {
    const connectionLines = this.context.commonLines.current + connectionLine;
    const isHead = this.#request?.method === "HEAD";
    writeResponse(this.#writeBuffer, response, { connectionLines, isHead });
  }

  /** While the client may still send, only the sending side closes. `LingeringClose` closes the other side. */
  #closeSocket(): void {
    if (this.#hasClientEnded || !this.#hasUnreadInput) this.socket.end();
    else this.socket.shutdown();
  }
}

/** Forwards the events of a socket to its connection. */
export const SOCKET_EVENTS: Pick<SocketHandler<HttpConnection | undefined>, "data" | "drain" | "end"> = {
  data: ({ data: connection }, bytes) => connection?.onData(bytes),
  drain: ({ data: connection }) => connection?.onDrain(),
  end: ({ data: connection }) => connection?.onEnd(),
};
