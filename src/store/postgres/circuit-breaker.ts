import { Unavailable } from "../../contract/errors.ts";

export interface CircuitBreakerOptions {
  /** Resolves when the engine can be used, rejects when it cannot; must not take for ever. */
  readonly probe: () => Promise<void>;
  readonly probeEveryMs: number;
  readonly onTurn: (turn: Turn) => void;
  /** A probe has failed. */
  readonly onFailedProbe: (cause: unknown) => void;
}

/** What an operator wants to read, once at each turn of state. */
export type Turn =
  { readonly state: "down"; readonly cause: unknown } | { readonly state: "up"; readonly afterMs: number };

/** Once the engine is known to be down, nobody waits for it: callers are turned away until a probe gets through. */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #down: { readonly since: number; readonly cause: unknown } | undefined;
  #timer: Timer | undefined;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  /** Throws while the engine is down. */
  check(): void {
    if (this.#down === undefined) return;
    throw new Unavailable("PostgreSQL is known to be down", { cause: this.#down.cause });
  }

  /** Many find out at the same moment; the first to say so counts. */
  trip(cause: unknown): void {
    if (this.#down !== undefined) return;
    this.#down = { since: performance.now(), cause };
    this.#options.onTurn({ state: "down", cause });
    void this.#probe(this.#down.since);
  }

  /** Stops looking. */
  close(): void {
    this.#down = undefined;
    clearTimeout(this.#timer);
  }

  async #probe(since: number): Promise<void> {
    const failure = await this.#options.probe().then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    );
    if (this.#down === undefined) return;
    if (failure === undefined) {
      this.#down = undefined;
      this.#options.onTurn({ state: "up", afterMs: Math.round(performance.now() - since) });
    } else {
      this.#timer = setTimeout(() => void this.#probe(since), this.#options.probeEveryMs).unref();
      this.#options.onFailedProbe(failure.cause);
    }
  }
}
