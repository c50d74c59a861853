interface ClosingSocket {
  end(): void;
  /** Closes at once, without sending what is pending. */
  terminate(): void;
}

interface LingeringCloseContext {
  readonly uptimeSeconds: number;
  readonly isShuttingDown: boolean;
}

/** The time without a byte from the client after which the connection closes; in a shutdown, the time in all. */
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
    private readonly socket: ClosingSocket,
    private readonly context: LingeringCloseContext,
  ) {
    this.#startedAt = this.#lastDataAt = context.uptimeSeconds;
  }

  onData({ byteLength }: Buffer): void {
    this.#lastDataAt = this.context.uptimeSeconds;
    this.#bytes += byteLength;
    if (this.#bytes > MAX_BYTES) this.socket.end();
  }

  /** Disconnects a client that does not close its side within a second. */
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
