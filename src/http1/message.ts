import { FIELD_LINE, type HeaderFields, TOKEN_CHARACTERS, VALUE_CHARACTERS } from "./header-fields.ts";
import { type ProtocolErrorStatus, type RequestHead } from "./request-head.ts";
import { ReadBuffer } from "./read-buffer.ts";

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

type BodyProgress = "incomplete" | "complete" | "too large" | "malformed";

const TOKEN = `[${TOKEN_CHARACTERS}]+`;
const QUOTED_STRING = `"(?:(?!["\\\\])[${VALUE_CHARACTERS}]|\\\\[${VALUE_CHARACTERS}])*"`;
/** Chunk extensions have to be valid, and are ignored (RFC 9112, 7.1.1). */
const EXTENSION = `[\\t ]*;[\\t ]*${TOKEN}(?:[\\t ]*=[\\t ]*(?:${TOKEN}|${QUOTED_STRING}))?`;
/** The chunk size in hexadecimal (RFC 9112, 7.1). Eight digits are more than any body may have. */
const SIZE_LINE = new RegExp(`^0*([0-9A-Fa-f]{1,8})(?:${EXTENSION})*\\r\\n$`);
const TRAILER_LINE = new RegExp(`^${FIELD_LINE}\\r\\n$`);
const EMPTY_LINE = "\r\n";
/** Stands for a line that is too long, or beyond the maximum of lines. */
const MALFORMED_LINE = "";
const MAX_LINE_BYTES = 1_024;
/** The maximum of lines, which bounds the work for a small body in tiny chunks. */
const MAX_LINES = 20_000;

/** Reads the body of one request from the buffer as it arrives. Trailer fields are checked and dropped. */
class BodyReader {
  readonly #isChunked: boolean;
  #expected: "data" | "end of data" | "size line" | "trailer line";
  #content = new ReadBuffer();
  /** The bytes left of the body, or of the current chunk. */
  #bytesLeft: number;
  #bytesRead = 0;
  #lines = 0;
  /** The bytes of an incomplete line that were searched for LF. */
  #searchedBytes = 0;
  #progress: BodyProgress = "incomplete";

  /** `length` is at least 1. */
  constructor(length: number | "chunked") {
    this.#isChunked = length === "chunked";
    this.#expected = length === "chunked" ? "size line" : "data";
    this.#bytesLeft = length === "chunked" ? 0 : length;
  }

  get hasStarted(): boolean {
    return this.#bytesRead > 0 || this.#progress !== "incomplete";
  }

  get bytes(): Uint8Array {
    return this.#content.bytes;
  }

  /** Reads and drops the bytes. */
  discard(readBuffer: ReadBuffer, maxBytes: number): BodyProgress {
    const progress = this.read(readBuffer, maxBytes);
    this.#content = new ReadBuffer();
    return progress;
  }

  /** Reads what has arrived. Stops before the body becomes larger than `maxBytes`. */
  read(readBuffer: ReadBuffer, maxBytes: number): BodyProgress {
    while (this.#progress === "incomplete") {
      if (this.#bytesRead + this.#bytesLeft > maxBytes) return "too large";
      const hasRead = this.#expected === "data" ? this.#readData(readBuffer) : this.#readLine(readBuffer);
      if (!hasRead) break;
    }
    return this.#progress;
  }

  #readData(readBuffer: ReadBuffer): boolean {
    const part = readBuffer.take(this.#bytesLeft);
    if (part.length === 0) return false;
    this.#content.append(part);
    this.#bytesRead += part.length;
    this.#bytesLeft -= part.length;
    if (this.#bytesLeft > 0) return true;
    if (this.#isChunked) this.#expected = "end of data";
    else this.#progress = "complete";
    return true;
  }

  #readLine(readBuffer: ReadBuffer): boolean {
    const line = this.#expected === "end of data" ? takeCrlf(readBuffer) : this.#takeLine(readBuffer);
    if (line === undefined) return false;
    if (this.#expected === "size line") this.#startChunk(SIZE_LINE.exec(line)?.[1]);
    else if (this.#expected === "end of data" && line === EMPTY_LINE) this.#expected = "size line";
    else if (this.#expected === "end of data") this.#progress = "malformed";
    else if (line === EMPTY_LINE) this.#progress = "complete";
    else if (!TRAILER_LINE.test(line)) this.#progress = "malformed";
    return true;
  }

  #startChunk(size: string | undefined): void {
    if (size === undefined) this.#progress = "malformed";
    this.#bytesLeft = Number.parseInt(size ?? "0", 16);
    this.#expected = this.#bytesLeft === 0 ? "trailer line" : "data";
  }

  /** Takes a line with its LF. */
  #takeLine(readBuffer: ReadBuffer): string | undefined {
    const lineFeed = readBuffer.indexOfLineFeed(this.#searchedBytes);
    this.#searchedBytes = lineFeed === -1 ? readBuffer.length : 0;
    if (lineFeed === -1 && readBuffer.length < MAX_LINE_BYTES) return undefined;
    this.#lines++;
    if (lineFeed === -1 || lineFeed >= MAX_LINE_BYTES || this.#lines > MAX_LINES) return MALFORMED_LINE;
    const line = readBuffer.text(0, lineFeed + 1);
    readBuffer.skip(line.length);
    return line;
  }
}

/** Takes the CRLF after the data, or what is in its place. */
function takeCrlf(readBuffer: ReadBuffer): string | undefined {
  const text = readBuffer.text(0, EMPTY_LINE.length);
  if (text.length < EMPTY_LINE.length && EMPTY_LINE.startsWith(text)) return undefined;
  readBuffer.skip(text.length);
  return text;
}

/** The response of a handler. The connection adds `Date`, `Content-Length` and `Connection`. */
export interface Response {
  readonly status: Status;
  /** Header lines, each with its CRLF; see `headerLine`. */
  readonly headerLines: string;
  /** Null for 204 and 304, which have no body and no `Content-Length`. */
  readonly body: string | Uint8Array | null;
  /** The error code and the message of the application, for its own use. They are not sent. */
  readonly errorCode?: string;
  readonly errorMessage?: string;
}

const REASON_PHRASES = {
  200: "OK",
  201: "Created",
  204: "No Content",
  302: "Found",
  304: "Not Modified",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  412: "Precondition Failed",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  499: "Client Closed Request",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
  505: "HTTP Version Not Supported",
} as const;

export type Status = keyof typeof REASON_PHRASES;

const STATUS_LINES = Object.fromEntries(
  Object.entries(REASON_PHRASES).map(([status, phrase]) => [status, `HTTP/1.1 ${status} ${phrase}\r\n`]),
);

function statusLine(status: Status): string {
  return STATUS_LINES[status] as string;
}

const PRINTABLE_ASCII = /^[\t\x20-\x7e]*$/;

/** Throws on a value that could inject another header line. */
export function headerLine(name: string, value: string): string {
  if (!PRINTABLE_ASCII.test(value)) throw new Error(`${name} must be printable ASCII`);
  return `${name}: ${value}\r\n`;
}

/** The header lines of every response: `Date`, to the second, and those of the server's options. */
export class CommonLines {
  #lines = "";
  #second = 0;

  constructor(private readonly own: string) {}

  get current(): string {
    const second = Math.floor(Date.now() / 1_000);
    if (second !== this.#second) {
      this.#second = second;
      this.#lines = `Date: ${new Date(second * 1_000).toUTCString()}\r\n${this.own}`;
    }
    return this.#lines;
  }
}

interface WriteOptions {
  /** Header lines of the connection. */
  readonly connectionLines: string;
  /** The response to HEAD has the `Content-Length` of the body, but no body (RFC 9110, 9.3.2). */
  readonly isHead: boolean;
}

export function writeResponse(
  writeBuffer: WriteBuffer,
  { status, headerLines, body }: Response,
  { connectionLines, isHead }: WriteOptions,
): void {
  const start = statusLine(status) + headerLines + connectionLines;
  if (body === null) {
    writeBuffer.append(`${start}\r\n`, start.length + 2);
    return;
  }
  const bodyBytes = Buffer.byteLength(body);
  const head = `${start}Content-Length: ${bodyBytes}\r\n\r\n`;
  if (typeof body === "string" && !isHead) {
    writeBuffer.append(head + body, head.length + bodyBytes);
    return;
  }
  writeBuffer.append(head, head.length);
  if (typeof body !== "string" && !isHead) writeBuffer.appendBytes(body);
}

export interface Writable {
  /** Returns how many bytes the socket accepts, or -1 when it is closed. Strings are sent as UTF-8. */
  write(data: string | Uint8Array): number;
}

/** The buffer writes to the socket at this size without waiting for `flush`, so that backpressure shows early. */
const MAX_BUFFERED_BYTES = 64 * 1024;

/** The bytes that a connection has to send. Pipelined responses are sent in one write. */
export class WriteBuffer {
  #text = "";
  #textBytes = 0;
  #totalBytes = 0;
  /** The bytes that the socket did not accept. */
  #unsent: Uint8Array | undefined;

  constructor(
    private readonly socket: Writable,
    /** Counts the bytes of all buffers. */
    private readonly traffic = { bytesSent: 0 },
  ) {}

  /** Whether there are bytes that were not yet written to the socket. */
  get isFilled(): boolean {
    return this.#textBytes > 0;
  }

  get isBlocked(): boolean {
    return this.#unsent !== undefined;
  }

  /** The bytes appended since the connection was opened. */
  get totalBytes(): number {
    return this.#totalBytes;
  }

  append(text: string, byteLength: number): void {
    this.#text = this.#text === "" ? text : this.#text + text;
    this.#textBytes += byteLength;
    this.#totalBytes += byteLength;
    this.traffic.bytesSent += byteLength;
    if (this.#textBytes > MAX_BUFFERED_BYTES) this.flush();
  }

  appendBytes(bytes: Uint8Array): void {
    this.#totalBytes += bytes.length;
    this.traffic.bytesSent += bytes.length;
    this.flush();
    if (this.#unsent === undefined) {
      const sent = this.socket.write(bytes);
      if (sent >= 0 && sent < bytes.length) this.#unsent = bytes.subarray(sent);
      return;
    }
    this.#unsent = Buffer.concat([this.#unsent, Buffer.from(this.#text), bytes]);
    this.#text = "";
    this.#textBytes = 0;
  }

  /** Writes to the socket, unless it is blocked. */
  flush(): void {
    if (this.#unsent !== undefined || this.#textBytes === 0) return;
    const text = this.#text;
    const sent = this.socket.write(text);
    if (sent >= 0 && sent < this.#textBytes) this.#unsent = Buffer.from(text).subarray(sent);
    this.#text = "";
    this.#textBytes = 0;
  }

  /** Writes again after the socket was blocked. */
  drain(): void {
    if (this.#unsent === undefined) return;
    const sent = this.socket.write(this.#unsent);
    this.#unsent = sent >= 0 && sent < this.#unsent.length ? this.#unsent.subarray(sent) : undefined;
    this.flush();
  }
}
