import type { Socket, TCPSocketListener } from "bun";
import { Connection, type ConnectionContext } from "./connection.ts";
import type { RequestHandler } from "./request.ts";

export interface HttpServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly handler: RequestHandler;
  /** Header lines of every response. */
  readonly headerLines?: string;
  /** Gets the error that ended a connection. */
  readonly onError: (error: unknown) => void;
  /** How long `close` may take in all: connections that are still open then are terminated. */
  readonly closeTimeoutMs?: number;
  /** Shorter in tests: timeouts are counted in seconds of this length. */
  readonly secondMs?: number;
}

const CLOSE_TIMEOUT_MS = 8_000;
const SECOND_MS = 1_000;

/** An HTTP/1.1 server on one port. */
export class HttpServer implements ConnectionContext {
  /** May be replaced at any time; the next request goes to the new one. */
  handler: RequestHandler;
  uptimeSeconds = 0;
  isShuttingDown = false;
  #dateLine = "";
  #dateSecond = 0;
  readonly #connections = new Set<Connection>();
  readonly #listener: TCPSocketListener<Connection>;
  readonly #timer: Timer;
  readonly #closeTimeoutMs: number;
  readonly #headerLines: string;
  #isListening = true;
  #onLastClosed: (() => void) | undefined;

  constructor(options: HttpServerOptions) {
    const { host, port, handler, headerLines = "", onError } = options;
    const { closeTimeoutMs = CLOSE_TIMEOUT_MS, secondMs = SECOND_MS } = options;
    this.handler = handler;
    this.#headerLines = headerLines;
    this.#closeTimeoutMs = closeTimeoutMs;
    this.#listener = Bun.listen<Connection>({
      hostname: host,
      port,
      allowHalfOpen: true,
      socket: {
        open: (socket) => this.#onOpen(socket),
        data: ({ data }, bytes) => data.onData(bytes),
        drain: ({ data }) => data.onDrain(),
        end: ({ data }) => data.onEnd(),
        close: ({ data }) => this.#onClose(data),
        error(socket, error) {
          onError(error);
          socket.terminate();
        },
      },
    });
    this.#timer = setInterval(() => this.#onSecond(), secondMs);
    this.#timer.unref();
  }

  get port(): number {
    return this.#listener.port;
  }

  get dateLine(): string {
    const second = Math.floor(Date.now() / 1_000);
    if (second !== this.#dateSecond) {
      this.#dateSecond = second;
      this.#dateLine = `Date: ${new Date(second * 1_000).toUTCString()}\r\n${this.#headerLines}`;
    }
    return this.#dateLine;
  }

  /**
   * Shuts down gracefully. From now on each response says `Connection: close`. After `delayMs` no new connection is
   * accepted and idle ones close: until then load balancers notice, and requests already on their way are served. The
   * rest of a head has a second to arrive. Resolves when the last connection is closed.
   */
  async close(delayMs: number): Promise<void> {
    this.isShuttingDown = true;
    const timeout = setTimeout(() => {
      for (const connection of this.#connections) connection.terminate();
    }, this.#closeTimeoutMs);
    await Bun.sleep(delayMs);
    this.#listener.stop();
    this.#isListening = false;
    for (const connection of this.#connections) if (connection.isIdle) connection.close();
    await new Promise<void>((resolve) => {
      this.#onLastClosed = resolve;
      if (this.#connections.size === 0) resolve();
    });
    clearTimeout(timeout);
    clearInterval(this.#timer);
  }

  #onOpen(socket: Socket<Connection>): void {
    socket.data = new Connection(socket, this);
    this.#connections.add(socket.data);
  }

  #onClose(connection: Connection): void {
    connection.onClose();
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#onLastClosed?.();
  }

  #onSecond(): void {
    this.uptimeSeconds++;
    for (const connection of this.#connections) {
      connection.checkTimeouts();
      if (!this.#isListening) connection.closeBetweenRequests();
    }
  }
}
