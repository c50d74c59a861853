import { HttpConnection, type ConnectionContext, type Socket } from "../../src/http1/connection.ts";
import { ConnectionScheduler } from "../../src/http1/connection-scheduler.ts";
import type { Pacer } from "../../src/http1/slow-rejected-clients.ts";
import type { Peer, Request, RequestHandler, Response } from "../../src/http1/index.ts";

type Handle = RequestHandler["handle"];

export const DATE_LINE = "Date: Sun, 15 Nov 2026 12:00:00 GMT\r\n";

interface TestConnectionOptions {
  /** Null if the client disconnected before the connection was accepted. */
  readonly remoteAddress?: string | null;
  /** By default, no turn ever takes too long. */
  readonly scheduler?: ConnectionScheduler;
  readonly pace?: Pacer;
  readonly peer?: Peer;
  /** The uptime of the server when the client connects. */
  readonly uptimeSeconds?: number;
  readonly unauthenticatedBodySeconds?: number;
}

/** A connection without a network: the test plays the client, and decides when a second passes. */
export class TestConnection implements Socket, ConnectionContext {
  readonly remoteAddress: string | undefined;
  handler: RequestHandler;
  readonly commonLines = { current: DATE_LINE };
  readonly connection: HttpConnection;
  /** Everything that the server has sent. */
  sent = "";
  /** The calls of the socket's methods, without `write`. */
  readonly events: string[] = [];
  /** How many more bytes the socket accepts. */
  writableBytes = Infinity;
  uptimeSeconds: number;
  isShuttingDown = false;
  readonly unauthenticatedBodySeconds: number | undefined;
  readonly scheduler: ConnectionScheduler;
  readonly traffic = { bytesReceived: 0, bytesSent: 0 };

  constructor(handle: Handle, options: TestConnectionOptions = {}) {
    const { remoteAddress = "203.0.113.9", scheduler = new ConnectionScheduler(() => 0), pace } = options;
    const { peer = { id: remoteAddress ?? "" } } = options;
    this.scheduler = scheduler;
    this.uptimeSeconds = options.uptimeSeconds ?? 0;
    this.unauthenticatedBodySeconds = options.unauthenticatedBodySeconds;
    this.handler = {
      handle,
      handleError: (error) => respond(error instanceof Error ? error.message : String(error), 500),
      protocolError: (status) => respond(`protocol error ${status}`, status),
    };
    this.remoteAddress = remoteAddress ?? undefined;
    this.connection = new HttpConnection(this, this, { peer, pace });
  }

  write(data: string | Uint8Array): number {
    const bytes = typeof data === "string" ? Buffer.from(data) : Buffer.from(data);
    const accepted = bytes.subarray(0, this.writableBytes);
    this.writableBytes -= accepted.length;
    this.sent += accepted.toString("latin1");
    return accepted.length;
  }

  readonly pause = () => void this.events.push("pause");
  readonly resume = () => void this.events.push("resume");
  readonly shutdown = () => void this.events.push("shutdown");
  readonly end = () => void this.#close("end");
  readonly terminate = () => void this.#close("terminate");

  /** Each text arrives in an iteration of the event loop of its own. */
  receive(...texts: string[]): this {
    for (const text of texts) {
      this.connection.onData(Buffer.from(text, "latin1"));
      this.scheduler.responses.write();
    }
    return this;
  }

  /** The client reads what was sent, and the socket accepts more. */
  drain(writableBytes = Infinity): this {
    this.writableBytes = writableBytes;
    this.connection.onDrain();
    this.scheduler.responses.write();
    return this;
  }

  passSeconds(seconds: number): this {
    for (let i = 0; i < seconds; i++) {
      this.uptimeSeconds++;
      this.connection.checkTimeouts();
    }
    return this;
  }

  get statuses(): number[] {
    return [...this.sent.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  }

  get bodies(): string[] {
    return [...this.sent.matchAll(/Content-Length: (\d+)\r\n\r\n/g)].map(
      ({ 0: { length }, 1: size, index }) => this.sent.slice(index + length, index + length + Number(size)),
    );
  }

  #close(event: string): void {
    this.events.push(event);
    this.connection.onClose();
  }
}

export { get } from "./cases/case.ts";

export const post = (path: string, body: string, ...headerLines: string[]) =>
  [`POST ${path} HTTP/1.1`, "Host: x", `Content-Length: ${body.length}`, ...headerLines, "", body].join(
    "\r\n",
  );

export const CHUNKED_HEAD = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

export const postChunked = (path: string, body: string) => {
  const chunk = body === "" ? "" : `${body.length.toString(16)}\r\n${body}\r\n`;
  return `${CHUNKED_HEAD.replace("/", path)}${chunk}0\r\n\r\n`;
};

export const respond = (body: string, status: Response["status"] = 200): Response => ({
  status,
  headerLines: "",
  body,
});

export const echoTarget = ({ method, path, query }: Request) => respond(`${method} ${path} ${query}`);

const textOf = (bytes: Uint8Array | undefined) =>
  bytes === undefined ? "too large" : Buffer.from(bytes).toString("latin1");

/** Responds with the request body, synchronously if it has arrived. */
export const echoBody = (maxBytes: number) => (request: Request) => {
  const body = request.body(maxBytes);
  return body instanceof Promise ? body.then((bytes) => respond(textOf(bytes))) : respond(textOf(body));
};

/** A handler that responds when the test says so. */
export function deferredHandler() {
  let resolveResponse: (response: Response) => void = () => {};
  const handle = () => new Promise<Response>((resolve) => (resolveResponse = resolve));
  const resolve = (body: string) => (resolveResponse(respond(body)), nextIteration());
  return { handle, resolve };
}

/** Waits until promises and immediates that are due have run. */
export const nextIteration = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Waits for iterations of the event loop, which the clocks of tests do not stop. */
export async function iterateUntil(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await nextIteration();
}
