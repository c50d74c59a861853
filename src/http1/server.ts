import type { Socket, SocketHandler, TCPSocketListener } from "bun";
import { type ConnectionContext, HttpConnection, SOCKET_EVENTS, type TrafficCounts } from "./connection.ts";
import { type ScheduledTimer, scheduler } from "../runtime/scheduler.ts";
import { ConnectionLimits, type LimitEvent, maxConnectionsWithin } from "./connection-limits.ts";
import { ConnectionScheduler } from "./connection-scheduler.ts";
import { CommonLines } from "./response.ts";
import type { Pacer } from "./slow-rejected-clients.ts";
import type { Peer, RequestHandler } from "./request.ts";
import { stopHandshakes, tuneListenSocket } from "./listen-socket.ts";
import { MAX_HANDSHAKES_PER_SECOND, secureContextOf, startTls, type TlsCertificate } from "./tls.ts";

export interface HttpServerOptions<Handler extends RequestHandler = RequestHandler> {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Called when the port is known, before the first request. */
  readonly createHandler: (server: HttpServer) => Handler;
  /** Header lines of every response. */
  readonly headerLines?: string;
  /** Undefined means plain HTTP. */
  readonly tls?: TlsCertificate | undefined;
  /** Called with the error that ended a connection. */
  readonly onError: (error: unknown) => void;
  /** The default and the largest value follow from the limit of open files. */
  readonly maxConnections?: number | undefined;
  /** The maximum of a peer that is not trusted; 0 means any number. */
  readonly maxConnectionsPerPeer?: number;
  readonly peerOf?: (remoteAddress: string) => Peer;
  readonly onLimit?: (event: LimitEvent) => void;
  /** Called for each connection of a peer that is not trusted; by default none is slowed. */
  readonly createPacer?: () => Pacer;
  /**
   * The timeout of the body of a request that the handler has not marked as authenticated. At the maximum of
   * connections, those whose last request was not authenticated are evicted first. By default all requests are alike.
   */
  readonly unauthenticatedBodySeconds?: number;
  /** The time after which `close` terminates the connections that are still open. */
  readonly closeTimeoutMs?: number;
  /** The length of the seconds in which timeouts are counted; shorter in tests. */
  readonly secondMs?: number;
}

/** Counts since the start, and what is open now. */
export interface ServerStatistics extends Readonly<TrafficCounts> {
  readonly connections: number;
  readonly accepted: number;
  /** Connections that were closed at once, because a maximum was reached. */
  readonly rejected: number;
  /** Connections that were closed for newer ones. */
  readonly evicted: number;
  /** Connections with requests that wait for a time slice. */
  readonly queueLength: number;
}

/** Makes browsers use HTTPS only, for a year (RFC 6797). */
const HSTS_LINE = "Strict-Transport-Security: max-age=31536000\r\n";
const CLOSE_TIMEOUT_MS = 8_000;
/** The time for the head of a request after the server has stopped listening. */
const LAST_HEAD_MS = 1_000;
/** The time for handshakes that have begun: a round trip, and some iterations of the event loop. */
const LAST_HANDSHAKES_MS = 50;
const SECOND_MS = 1_000;
/**
 * The connections with a response that says that there are too many: at once, and in a second. Of 2,700 connections a
 * second above the maximum of one peer, each takes 0.12 ms of processor time, with these responses and without.
 */
const MAX_REJECTED = 64;
const MAX_REJECTED_PER_SECOND = 100;

/** An HTTP/1.1 server on one port. */
export class HttpServer<Handler extends RequestHandler = RequestHandler> implements ConnectionContext {
  readonly handler: Handler;
  uptimeSeconds = 0;
  isShuttingDown = false;
  readonly commonLines: CommonLines;
  readonly scheduler = new ConnectionScheduler();
  readonly traffic: TrafficCounts = { bytesReceived: 0, bytesSent: 0 };
  readonly maxConnections: number;
  readonly unauthenticatedBodySeconds: number | undefined;
  readonly #connections: ConnectionLimits;
  /** Connections above the maximum of their peer that have a response and close. They are not counted. */
  readonly #rejected = new Set<HttpConnection>();
  #rejectedInSecond = 0;
  readonly #listener: TCPSocketListener<HttpConnection | undefined>;
  readonly #handlers: SocketHandler<HttpConnection | undefined>;
  /** Undefined means plain HTTP. */
  #secureContext: object | undefined;
  #tlsCertificate: TlsCertificate | undefined;
  readonly #timer: ScheduledTimer;
  /** Whether connections close when they have no request. */
  #closesBetweenRequests = false;
  #accepted = 0;
  #onLastClosed: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(private readonly options: HttpServerOptions<Handler>) {
    const { host, port, createHandler, headerLines = "", onError, secondMs = SECOND_MS } = options;
    const { maxConnectionsPerPeer = 0, onLimit = () => {} } = options;
    this.commonLines = new CommonLines(options.tls ? headerLines + HSTS_LINE : headerLines);
    this.maxConnections = maxConnectionsWithin(options.maxConnections);
    this.unauthenticatedBodySeconds = options.unauthenticatedBodySeconds;
    this.#connections = new ConnectionLimits({
      maxConnections: this.maxConnections,
      maxConnectionsPerPeer,
      maxHandshakesPerSecond: options.tls ? MAX_HANDSHAKES_PER_SECOND : 0,
      evictsUnauthenticatedFirst: options.unauthenticatedBodySeconds !== undefined,
      onLimit,
    });
    this.#secureContext = options.tls && secureContextOf(options.tls);
    this.#tlsCertificate = options.tls;
    this.#handlers = {
      ...SOCKET_EVENTS,
      close: ({ data }) => data && this.#onClose(data),
      error(socket, error) {
        onError(error);
        socket.terminate();
      },
    };
    this.#listener = Bun.listen<HttpConnection | undefined>({
      hostname: host,
      port,
      allowHalfOpen: true,
      socket: { ...this.#handlers, open: (socket) => this.#onOpen(socket) },
    });
    tuneListenSocket(this.#listener);
    // The next iteration of the event loop accepts the first connection.
    this.handler = createHandler(this);
    this.#timer = scheduler.setInterval(() => this.#onSecond(), secondMs);
    this.#timer.unref();
  }

  get port(): number {
    return this.#listener.port;
  }

  get statistics(): ServerStatistics {
    const { size: connections, rejected, evicted } = this.#connections;
    const { queueLength } = this.scheduler;
    return { connections, accepted: this.#accepted, rejected, evicted, queueLength, ...this.traffic };
  }

  /** Uses the certificate for new connections. Throws if it is malformed, and keeps the one before. */
  setTlsCertificate(credentials: TlsCertificate): void {
    if (!this.#secureContext) return;
    this.#secureContext = secureContextOf(credentials);
    this.#tlsCertificate = credentials;
  }

  /** The certificate of new connections; undefined without TLS. */
  get tlsCertificate(): Pick<TlsCertificate, "cert"> | undefined {
    return this.#tlsCertificate;
  }

  /**
   * Shuts down gracefully. From now on each response has `Connection: close`. After `delayMs` no new connection is
   * accepted, and idle and slowed ones close. The delay lets load balancers notice, and requests in flight are served.
   * With a delay, no connection that a client has opened is reset: the last ones are accepted before the server stops
   * listening, and wait for their request. A head has a second to arrive. Resolves when the last connection is closed,
   * at the latest `closeTimeoutMs` after the delay. A second call waits for the first.
   */
  close(delayMs = 0): Promise<void> {
    return (this.#closing ??= this.#shutDown(delayMs));
  }

  async #shutDown(delayMs: number): Promise<void> {
    this.isShuttingDown = true;
    const { closeTimeoutMs = CLOSE_TIMEOUT_MS } = this.options;
    const timers = [
      scheduler.setTimeout(() => this.#closeBetweenRequests(), delayMs + LAST_HEAD_MS),
      scheduler.setTimeout(() => this.#terminate(), delayMs + closeTimeoutMs),
    ];
    const handshakesMs = Math.min(delayMs, LAST_HANDSHAKES_MS);
    await scheduler.sleep(delayMs - handshakesMs);
    if (handshakesMs > 0) {
      stopHandshakes(this.#listener);
      await scheduler.sleep(handshakesMs);
    }
    this.#listener.stop();
    for (const connection of this.#connections)
      if (connection.isEvictable && (delayMs === 0 || connection.hasReceivedRequest)) connection.close();
    await new Promise<void>((resolve) => {
      this.#onLastClosed = resolve;
      if (this.#connections.size === 0) resolve();
    });
    for (const connection of this.#rejected) connection.terminate();
    for (const timer of timers) timer.close();
    this.#timer.close();
  }

  #closeBetweenRequests(): void {
    this.#closesBetweenRequests = true;
    for (const connection of this.#connections) connection.closeBetweenRequests();
  }

  #terminate(): void {
    for (const connection of this.#connections) connection.terminate();
  }

  #onOpen(socket: Socket<HttpConnection | undefined>): void {
    const { remoteAddress: id = "" } = socket;
    const { peerOf, createPacer } = this.options;
    const peer = peerOf?.(id) ?? { id };
    if (!this.#connections.accepts(peer)) return this.#reject(socket, peer);
    const clientSocket = this.#secureContext ? startTls(socket, this.#secureContext, this.#handlers) : socket;
    // A load balancer's connection carries requests of many clients, so it is never slowed.
    const pace = peer.clientOf ? undefined : createPacer?.();
    const connection = new HttpConnection(clientSocket, this, { peer, pace });
    clientSocket.data = connection;
    this.#connections.add(connection);
    this.#accepted++;
    const [oldest] = this.#connections.size + this.#rejected.size > this.maxConnections ? this.#rejected : [];
    oldest?.terminate();
  }

  /**
   * Responds to some of the connections above the maximum of their peer, so that the developer of a client learns why
   * they close. The others are reset, and so are all with TLS, whose handshake would cost more than a request.
   */
  #reject(socket: Socket<HttpConnection | undefined>, peer: Peer): void {
    const isExplained =
      this.#secureContext === undefined &&
      this.#connections.isAtMaximum(peer) &&
      this.#rejected.size < MAX_REJECTED &&
      this.#connections.size + this.#rejected.size < this.maxConnections &&
      this.#rejectedInSecond < MAX_REJECTED_PER_SECOND;
    const response = isExplained ? this.handler.tooManyConnections?.() : undefined;
    if (response === undefined) {
      socket.terminate();
      return;
    }
    const connection = new HttpConnection(socket, this, { peer });
    socket.data = connection;
    this.#rejected.add(connection);
    this.#rejectedInSecond++;
    connection.reject(response);
  }

  #onClose(connection: HttpConnection): void {
    connection.onClose();
    this.#rejected.delete(connection);
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#onLastClosed?.();
  }

  #onSecond(): void {
    this.uptimeSeconds++;
    this.#rejectedInSecond = 0;
    for (const connection of this.#rejected) connection.checkTimeouts();
    for (const connection of this.#connections) {
      connection.checkTimeouts();
      if (this.#closesBetweenRequests) connection.closeBetweenRequests();
    }
    this.#connections.onSecond();
  }
}
