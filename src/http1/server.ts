import type { Socket, TCPSocketListener } from "bun";
import type { Awaitable } from "../domain/awaitable.ts";
import type { Log } from "../log.ts";
import { Connection, type Service } from "./connection.ts";
import type { Request } from "./request.ts";
import type { Response } from "./response.ts";
import type { RequestHandler } from "./request-handler.ts";

export interface Listening {
  readonly host: string;
  readonly port: number;
  readonly log: Log;
  /** What is served until `serve` names something else. */
  readonly site: RequestHandler;
  /** How long all of a stop may take: what is in flight then is cut off. */
  readonly drainMs?: number;
  readonly secondMs?: number;
}

const DRAIN_MS = 8_000;
const SECOND_MS = 1_000;

/** HTTP/1.1 on a port. */
export class HttpServer implements Service {
  readonly #connections = new Set<Connection>();
  readonly #listener: TCPSocketListener<Connection>;
  readonly #ticking: Timer;
  readonly #drainMs: number;
  #site: RequestHandler;
  #hasStopped = false;
  #onEmpty: (() => void) | undefined;
  tick = 0;
  date = dateLine();
  isLeaving = false;

  constructor({ host, port, log, site, drainMs = DRAIN_MS, secondMs = SECOND_MS }: Listening) {
    this.#site = site;
    this.#drainMs = drainMs;
    this.#listener = Bun.listen<Connection>({
      hostname: host,
      port,
      allowHalfOpen: true,
      socket: {
        open: (socket) => this.#open(socket),
        data: ({ data }, bytes) => data.receive(bytes),
        drain: ({ data }) => data.drain(),
        end: ({ data }) => data.end(),
        close: ({ data }) => this.#close(data),
        error(socket, error) {
          log.error("a connection failed", { error });
          socket.terminate();
        },
      },
    });
    this.#ticking = setInterval(() => this.#nextSecond(), secondMs);
    this.#ticking.unref();
  }

  /** The one that was asked for, or the free one that was found for 0. */
  get port(): number {
    return this.#listener.port;
  }

  serve(site: RequestHandler): void {
    this.#site = site;
  }

  handle(request: Request): Awaitable<Response> {
    return this.#site.handle(request);
  }

  handleError(error: unknown): Response {
    return this.#site.handleError(error);
  }

  /**
   * Tells every client with its next answer that the connection ends, takes no new ones after `delayMs`, and waits for
   * what is in flight. A request may be on its way on a connection that looks idle, and load balancers need a moment to
   * send no more.
   */
  async close(delayMs: number): Promise<void> {
    this.isLeaving = true;
    const cutOff = setTimeout(
      () => this.#connections.forEach((connection) => connection.cut()),
      this.#drainMs,
    );
    await Bun.sleep(delayMs);
    this.#listener.stop();
    this.#hasStopped = true;
    this.#leaveIdle();
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      if (this.#connections.size === 0) resolve();
    });
    clearTimeout(cutOff);
    clearInterval(this.#ticking);
  }

  #open(socket: Socket<Connection>): void {
    socket.data = new Connection(socket, this);
    this.#connections.add(socket.data);
  }

  #close(connection: Connection): void {
    connection.closed();
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#onEmpty?.();
  }

  #nextSecond(): void {
    this.tick++;
    this.date = dateLine();
    for (const connection of this.#connections) connection.check();
    if (this.#hasStopped) this.#leaveIdle();
  }

  #leaveIdle(): void {
    for (const connection of this.#connections) if (connection.isIdle) connection.leave();
  }
}

function dateLine(): string {
  return `Date: ${new Date().toUTCString()}\r\n`;
}
