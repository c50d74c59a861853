import type { Socket, SocketHandler, TCPSocketListener } from "bun";
import { Connection } from "./connection.ts";
import type { ConnectionContext, Traffic } from "./connection-context.ts";
import { ConnectionLimits, type LimitEvent, maxConnectionsWithin, type Peer } from "./connection-limits.ts";
import { tuneListenSocket } from "./listen-socket.ts";
import { type TlsCredentials, TlsUpgrade } from "./tls-upgrade.ts";
import { Turns } from "./turns.ts";
import type { RequestHandler } from "./request.ts";

export interface HttpServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  readonly handler: RequestHandler;
  /** Header lines of every response. */
  readonly headerLines?: string;
  /** Undefined means plain HTTP. */
  readonly tls?: TlsCredentials | undefined;
  /** Gets the error that ended a connection. */
  readonly onError: (error: unknown) => void;
  /** The default and the largest value follow from the limit of open files. */
  readonly maxConnections?: number | undefined;
  /** Of one peer, unless it is trusted; 0 means any number. */
  readonly maxConnectionsPerPeer?: number;
  readonly peerOf?: (remoteAddress: string) => Peer;
  readonly onLimit?: (event: LimitEvent) => void;
  /** How long `close` may take in all: connections that are still open then are terminated. */
  readonly closeTimeoutMs?: number;
  /** Shorter in tests: timeouts are counted in seconds of this length. */
  readonly secondMs?: number;
}

/** Counts since the start, and what is open now. */
export interface ServerStatistics extends Readonly<Traffic> {
  readonly connections: number;
  readonly accepted: number;
  /** Closed as soon as they were opened, because a maximum was reached. */
  readonly rejected: number;
  /** Closed so that newer ones had a place. */
  readonly evicted: number;
  /** Connections with requests that wait for a turn. */
  readonly queueLength: number;
}

/** Browsers use HTTPS only, for a year (RFC 6797). */
const HSTS_LINE = "Strict-Transport-Security: max-age=31536000\r\n";
const CLOSE_TIMEOUT_MS = 8_000;
const SECOND_MS = 1_000;

/** An HTTP/1.1 server on one port. */
export class HttpServer implements ConnectionContext {
  /** May be replaced at any time; the next request goes to the new one. */
  handler: RequestHandler;
  uptimeSeconds = 0;
  isShuttingDown = false;
  #commonLines = "";
  #commonLinesSecond = 0;
  readonly turns = new Turns();
  readonly traffic: Traffic = { bytesReceived: 0, bytesSent: 0 };
  readonly maxConnections: number;
  readonly #connections: ConnectionLimits;
  readonly #peerOf: (remoteAddress: string) => Peer;
  readonly #listener: TCPSocketListener<Connection | undefined>;
  readonly #handlers: SocketHandler<Connection | undefined>;
  readonly #tls: TlsUpgrade | undefined;
  readonly #timer: Timer;
  readonly #closeTimeoutMs: number;
  readonly #headerLines: string;
  #isListening = true;
  #accepted = 0;
  #onLastClosed: (() => void) | undefined;

  constructor(options: HttpServerOptions) {
    const { host, port, handler, headerLines = "", onError } = options;
    const { closeTimeoutMs = CLOSE_TIMEOUT_MS, secondMs = SECOND_MS } = options;
    this.handler = handler;
    this.#headerLines = headerLines;
    this.#closeTimeoutMs = closeTimeoutMs;
    const { maxConnectionsPerPeer = 0, peerOf = eachAddress, onLimit = () => {} } = options;
    this.maxConnections = maxConnectionsWithin(options.maxConnections);
    this.#connections = new ConnectionLimits({
      maxConnections: this.maxConnections,
      maxConnectionsPerPeer,
      onLimit,
    });
    this.#peerOf = peerOf;
    this.#tls = options.tls && new TlsUpgrade(options.tls);
    this.#handlers = {
      data: ({ data }, bytes) => data?.onData(bytes),
      drain: ({ data }) => data?.onDrain(),
      end: ({ data }) => data?.onEnd(),
      close: ({ data }) => data && this.#onClose(data),
      error(socket, error) {
        onError(error);
        socket.terminate();
      },
    };
    this.#listener = Bun.listen<Connection | undefined>({
      hostname: host,
      port,
      allowHalfOpen: true,
      socket: { ...this.#handlers, open: (socket) => this.#onOpen(socket) },
    });
    tuneListenSocket(this.#listener);
    this.#timer = setInterval(() => this.#onSecond(), secondMs);
    this.#timer.unref();
  }

  get port(): number {
    return this.#listener.port;
  }

  get statistics(): ServerStatistics {
    const { size: connections, rejected, evicted } = this.#connections;
    const { queueLength } = this.turns;
    return { connections, accepted: this.#accepted, rejected, evicted, queueLength, ...this.traffic };
  }

  /** `Date` follows the clock to the second. */
  get commonLines(): string {
    const second = Math.floor(Date.now() / 1_000);
    if (second !== this.#commonLinesSecond) {
      this.#commonLinesSecond = second;
      const lines = `Date: ${new Date(second * 1_000).toUTCString()}\r\n${this.#headerLines}`;
      this.#commonLines = this.#tls === undefined ? lines : lines + HSTS_LINE;
    }
    return this.#commonLines;
  }

  /** New connections get the certificate. Throws if it is malformed, and keeps the one before. */
  setTlsCredentials(credentials: TlsCredentials): void {
    this.#tls?.setCredentials(credentials);
  }

  /**
   * Shuts down gracefully. From now on each response says `Connection: close`. After `delayMs` no new connection is
   * accepted, and idle and slowed ones close: until then load balancers notice, and requests already on their way are
   * served. The rest of a head has a second to arrive. Resolves when the last connection is closed: at the latest
   * `closeTimeoutMs` after the delay.
   */
  async close(delayMs: number): Promise<void> {
    this.isShuttingDown = true;
    const timeout = setTimeout(() => {
      for (const connection of this.#connections) connection.terminate();
    }, delayMs + this.#closeTimeoutMs);
    await Bun.sleep(delayMs);
    this.#listener.stop();
    this.#isListening = false;
    for (const connection of this.#connections) if (connection.isEvictable) connection.close();
    await new Promise<void>((resolve) => {
      this.#onLastClosed = resolve;
      if (this.#connections.size === 0) resolve();
    });
    clearTimeout(timeout);
    clearInterval(this.#timer);
  }

  #onOpen(socket: Socket<Connection | undefined>): void {
    const peer = this.#peerOf(socket.remoteAddress ?? "");
    if (!this.#connections.accepts(peer)) {
      socket.terminate();
      return;
    }
    const clientSocket = this.#tls?.upgrade(socket, this.#handlers) ?? socket;
    const connection = new Connection(clientSocket, this, peer.isTrusted);
    clientSocket.data = connection;
    this.#connections.add(connection, peer);
    this.#accepted++;
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
    this.#connections.onSecond();
  }
}

function eachAddress(remoteAddress: string): Peer {
  return { id: remoteAddress, isTrusted: false };
}
