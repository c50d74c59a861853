import { Unavailable } from "../../../api/errors.ts";
import type { StateChange } from "../../state-change.ts";

export interface CircuitBreakerOptions {
  /** Resolves when the server can be used, rejects when it cannot. It must end in bounded time. */
  readonly probe: () => Promise<void>;
  readonly probeEveryMs: number;
  readonly onStateChange: (change: StateChange) => void;
  readonly onProbeFailure: (cause: unknown) => void;
}

/** Once the server is down, requests fail at once instead of waiting for it, until a probe succeeds. */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #outage: { readonly since: number; readonly cause: unknown } | undefined;
  #timer: Timer | undefined;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  throwIfOpen(): void {
    if (this.#outage === undefined) return;
    throw new Unavailable("PostgreSQL is down", { cause: this.#outage.cause });
  }

  /** The first of many concurrent calls counts. */
  open(cause: unknown): void {
    if (this.#outage !== undefined) return;
    this.#outage = { since: performance.now(), cause };
    this.#options.onStateChange({ state: "down", cause });
    void this.#probe(this.#outage.since);
  }

  /** Stops probing. */
  stop(): void {
    this.#outage = undefined;
    clearTimeout(this.#timer);
  }

  async #probe(since: number): Promise<void> {
    const failure = await this.#options.probe().then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    );
    if (this.#outage === undefined) return;
    if (failure === undefined) {
      this.#outage = undefined;
      this.#options.onStateChange({ state: "up", afterMs: Math.round(performance.now() - since) });
    } else {
      this.#timer = setTimeout(() => void this.#probe(since), this.#options.probeEveryMs).unref();
      this.#options.onProbeFailure(failure.cause);
    }
  }
}
