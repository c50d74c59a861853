import type { Subject } from "../../domain/rate-limit.ts";
import { type Connection, withoutSecrets } from "./connection.ts";

export type OnStateChange = (state: "available" | "unavailable", cause?: unknown) => void;

export interface ReconnectorOptions {
  /** Opens a connection on which requests of this subject work. */
  connect(subject: Subject): Promise<Connection>;
  /** Called before `onStateChange`. */
  onConnection(connection: Connection | undefined): void;
  readonly onStateChange: OnStateChange | undefined;
}

/** A server that works again is used again within a second. */
const RETRY_EVERY_MS = 250;
/** A connection that lasted this long may have failed for a moment only, so the first retry follows at once. */
const STABLE_AFTER_MS = 1_000;
const ANY_SUBJECT: Subject = { kind: "key", id: 0 };

/**
 * Owns the one connection, or retries until it has one. A connection that failed is never used again: on it, every
 * command would wait behind those without a reply.
 */
export class Reconnector {
  readonly #options: ReconnectorOptions;
  #connection: Connection | undefined;
  #connectedAt = 0;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: ReconnectorOptions) {
    this.#options = options;
  }

  /** A server that is unavailable at the start delays the start a little and does not prevent it. */
  async start(): Promise<void> {
    try {
      this.#use(await this.#options.connect(ANY_SUBJECT));
    } catch (cause) {
      this.#retryIn(RETRY_EVERY_MS, ANY_SUBJECT);
      this.#report("unavailable", cause);
    }
  }

  /** Closes a connection that failed; `subject` is the one whose request failed. */
  connectionFailed(connection: Connection, cause: unknown, subject = ANY_SUBJECT): void {
    if (connection !== this.#connection) return;
    this.#connection = undefined;
    connection.close();
    this.#options.onConnection(undefined);
    const wasStable = performance.now() - this.#connectedAt >= STABLE_AFTER_MS;
    this.#retryIn(wasStable ? 0 : RETRY_EVERY_MS, subject);
    this.#report("unavailable", cause);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#connection?.close();
    this.#connection = undefined;
  }

  #use(connection: Connection): void {
    if (this.#isClosed) return connection.close();
    this.#connection = connection;
    this.#connectedAt = performance.now();
    connection.onEnd(() => this.connectionFailed(connection, new Error("the connection was closed")));
    this.#options.onConnection(connection);
  }

  #retryIn(ms: number, subject: Subject): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#retry(subject), ms);
    this.#timer.unref();
  }

  async #retry(subject: Subject): Promise<void> {
    const connection = await this.#options.connect(subject).catch(() => undefined);
    if (connection === undefined) return this.#retryIn(RETRY_EVERY_MS, subject);
    this.#use(connection);
    this.#report("available");
  }

  #report(state: "available" | "unavailable", cause?: unknown): void {
    if (this.#isClosed) return;
    this.#options.onStateChange?.(state, cause === undefined ? undefined : withoutSecrets(cause));
  }
}
