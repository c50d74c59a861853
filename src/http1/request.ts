import { BodyReader, type BodyProgress } from "./body-reader.ts";
import type { HeaderFields } from "./header-fields.ts";
import type { ReadBuffer } from "./read-buffer.ts";
import type { RequestHead } from "./request-head.ts";
import type { ProtocolErrorStatus, Response } from "./response.ts";

/** A request whose head has arrived. */
export interface Request {
  readonly method: string;
  /** As the client sent it, without the query: not percent-decoded, dot segments not resolved. */
  readonly path: string;
  /** As the client sent it, without the question mark. */
  readonly query: string;
  readonly headers: HeaderFields;
  /** Of the other end of the connection; empty if the client disconnected before it could be looked up. */
  readonly remoteAddress: string;
  /** The whole body; undefined when it is larger than `maxBytes`. Rejects with `RequestAborted`. */
  body(maxBytes: number): Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

export interface RequestHandler {
  /** Returning a response at once costs no promise. */
  handle(request: Request): Response | Promise<Response>;
  /** The response when `handle` throws or rejects. */
  handleError(error: unknown): Response;
  /** The response to a request that `handle` does not get, or whose body is at fault. The connection closes. */
  protocolError(status: ProtocolErrorStatus): Response;
}

/** The rest of the body will not arrive: the client disconnected, was too slow, or already has its response. */
export class RequestAborted extends Error {
  override readonly name = "RequestAborted";
}

/** What a request needs of its connection. */
export interface RequestConnection {
  readonly remoteAddress: string;
  readonly readBuffer: ReadBuffer;
  sendContinue(): void;
  /** Parses what has arrived already, after the current call stack. */
  processLater(): void;
}

interface PendingBody {
  readonly maxBytes: number;
  resolve(bytes: Uint8Array | undefined): void;
  reject(error: RequestAborted): void;
}

/** A longer body that no handler reads closes the connection; a shorter one is discarded and the connection stays. */
const MAX_DISCARDED_BYTES = 128 * 1024;

export class IncomingRequest implements Request {
  readonly #bodyReader: BodyReader | undefined;
  #pendingBody: PendingBody | undefined;
  #hasResponse = false;
  #isAborted = false;

  constructor(
    readonly head: RequestHead,
    private readonly connection: RequestConnection,
  ) {
    const { bodyLength } = head.framing;
    this.#bodyReader = bodyLength === 0 ? undefined : new BodyReader(bodyLength);
  }

  get method(): string {
    return this.head.method;
  }

  get path(): string {
    return this.head.path;
  }

  get query(): string {
    return this.head.query;
  }

  get headers(): HeaderFields {
    return this.head.framing.headers;
  }

  get remoteAddress(): string {
    return this.connection.remoteAddress;
  }

  get hasResponse(): boolean {
    return this.#hasResponse;
  }

  /** Whether nothing more can happen until the client sends more of the body. */
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
