import type { HeaderFields } from "./header-fields.ts";
import type { ReadBuffer } from "./read-buffer.ts";
import { type BodyProgress, BodyReader } from "./request-body.ts";
import type { ProtocolErrorStatus, RequestHead } from "./request-head.ts";
import type { Response } from "./response.ts";

/** A request whose head has arrived. */
export interface Request {
  readonly method: string;
  /** The path as the client sent it, percent-encoded and with dot segments. */
  readonly path: string;
  /** The query as the client sent it, without the question mark. */
  readonly query: string;
  readonly headers: HeaderFields;
  /** The address of the other end; empty if the client disconnected before it could be looked up. */
  readonly remoteAddress: string;
  /** The id of the peer or, behind a load balancer, of its client. */
  readonly clientAddress: string;
  /** Returns the whole body; undefined if it is larger than `maxBytes`. Rejects with `RequestAborted`. */
  body(maxBytes: number): Uint8Array | undefined | Promise<Uint8Array | undefined>;
  /** Marks the request, and its connection until the next request, as authenticated. */
  markAuthenticated(): void;
}

export interface RequestHandler {
  /** May return a response without a promise, which is faster. */
  handle(request: Request): Response | Promise<Response>;
  /** Returns the response when `handle` throws or rejects. */
  handleError(error: unknown): Response;
  /** Returns the response to a malformed request or body. The connection closes. */
  protocolError(status: ProtocolErrorStatus): Response;
  /** Returns the response to a peer with too many connections; without this method its new ones are reset. */
  tooManyConnections?(): Response;
}

/** Thrown when the rest of a body will not arrive: the client disconnected, was too slow, or has its response. */
export class RequestAborted extends Error {
  override readonly name = "RequestAborted";
}

/** The other end of a connection. */
export interface Peer {
  /** Connections with the same id, of an address or a network, count together. */
  readonly id: string;
  /** Set for a load balancer, which may open any number of connections, and a few above the maximum. */
  readonly clientOf?: (headers: Pick<HeaderFields, "get">) => string;
}

/** What a request needs of its connection. */
export interface RequestConnection {
  readonly peer: Peer;
  readonly remoteAddress: string;
  readonly readBuffer: ReadBuffer;
  isAuthenticated: boolean;
  sendContinue(): void;
  /** Parses what has arrived, after the current call stack. */
  processLater(): void;
}

interface PendingBody {
  readonly maxBytes: number;
  resolve(bytes: Uint8Array | undefined): void;
  reject(error: RequestAborted): void;
}

/** The longest unread body that is discarded. A longer one closes the connection. */
const MAX_DISCARDED_BYTES = 128 * 1024;

export class IncomingRequest implements Request {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: HeaderFields;
  readonly remoteAddress: string;
  readonly #bodyReader: BodyReader | undefined;
  #pendingBody: PendingBody | undefined;
  #hasResponse = false;
  #isAborted = false;

  constructor(
    readonly head: RequestHead,
    private readonly connection: RequestConnection,
  ) {
    this.method = head.method;
    this.path = head.path;
    this.query = head.query;
    this.headers = head.framing.headers;
    this.remoteAddress = connection.remoteAddress;
    const { bodyLength } = head.framing;
    this.#bodyReader = bodyLength === 0 ? undefined : new BodyReader(bodyLength);
  }

  get clientAddress(): string {
    const { peer } = this.connection;
    return peer.clientOf?.(this.headers) ?? peer.id;
  }

  get hasResponse(): boolean {
    return this.#hasResponse;
  }

  /** Whether the request needs more of its body to continue. */
  get isWaitingForBody(): boolean {
    return this.#pendingBody !== undefined || this.#hasResponse;
  }

  /** Whether the client waits for 100 Continue. It may also send the body without it (RFC 9110, 10.1.1). */
  get isWaitingForContinue(): boolean {
    const { expectsContinue } = this.head.framing;
    return (
      expectsContinue && this.#bodyReader?.hasStarted === false && this.connection.readBuffer.length === 0
    );
  }

  body(maxBytes: number): Uint8Array | undefined | Promise<Uint8Array | undefined> {
    const bodyReader = this.#bodyReader;
    if (bodyReader === undefined) return new Uint8Array();
    if (this.#isAborted) return Promise.reject(bodyAborted());
    const progress = bodyReader.read(this.connection.readBuffer, maxBytes);
    if (progress === "complete") return bodyReader.bytes;
    if (progress === "too large") return undefined;
    return new Promise((resolve, reject) => {
      this.#pendingBody = { maxBytes, resolve, reject };
      if (this.isWaitingForContinue) this.connection.sendContinue();
      this.connection.processLater();
    });
  }

  markAuthenticated(): void {
    this.connection.isAuthenticated = true;
  }

  /** Reads the body as far as it has arrived. After the response the body is discarded. */
  receiveBody(): BodyProgress {
    const bodyReader = this.#bodyReader;
    if (bodyReader === undefined) return "complete";
    if (this.#hasResponse) return bodyReader.discard(this.connection.readBuffer, MAX_DISCARDED_BYTES);
    if (this.#pendingBody === undefined) return "incomplete";
    const { maxBytes, resolve } = this.#pendingBody;
    const progress = bodyReader.read(this.connection.readBuffer, maxBytes);
    if (progress === "complete" || progress === "too large") {
      this.#pendingBody = undefined;
      resolve(progress === "complete" ? bodyReader.bytes : undefined);
    }
    return progress;
  }

  markResponded(): void {
    this.#hasResponse = true;
    this.abortBody();
  }

  abortBody(): void {
    this.#isAborted = true;
    this.#pendingBody?.reject(bodyAborted());
    this.#pendingBody = undefined;
  }
}

function bodyAborted(): RequestAborted {
  return new RequestAborted("the rest of the request body will not arrive");
}
