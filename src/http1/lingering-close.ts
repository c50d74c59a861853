import type { ConnectionContext, Socket } from "./connection-context.ts";

/** The client has sent nothing for this long. During a shutdown this is also the longest time in all. */
const SILENCE_SECONDS = 2;
const MAX_SECONDS = 30;
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Reads and drops what the client still sends after the last response (RFC 9112, 9.6). A reset could destroy that
 * response before a client that is still uploading reads it.
 */
export class LingeringClose {
  readonly #startedAt: number;
  #lastDataAt: number;
  #bytes = 0;
  #isSocketEnded = false;

  constructor(
    private readonly socket: Socket,
    private readonly context: ConnectionContext,
  ) {
    this.#startedAt = this.#lastDataAt = context.uptimeSeconds;
  }

  onData({ byteLength }: Buffer): void {
    this.#lastDataAt = this.context.uptimeSeconds;
    this.#bytes += byteLength;
    if (this.#bytes > MAX_BYTES) this.socket.end();
  }

  /** A client that does not close its side in turn is disconnected a second later. */
  checkTimeout(): void {
    if (!this.#isOver) return;
    if (this.#isSocketEnded) this.socket.terminate();
    else this.socket.end();
    this.#isSocketEnded = true;
  }

  get #isOver(): boolean {
    const { uptimeSeconds, isShuttingDown } = this.context;
    if (uptimeSeconds - this.#lastDataAt > SILENCE_SECONDS) return true;
    return uptimeSeconds - this.#startedAt > (isShuttingDown ? SILENCE_SECONDS : MAX_SECONDS);
  }
}
