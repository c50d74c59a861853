import { scheduler } from "./scheduler.ts";

/** Reports the first of consecutive failures, and the first success after them. */
export class FailureReporter {
  #failingSince: number | undefined;

  constructor(
    private readonly onFailure: (error: unknown) => void,
    private readonly onRecovery: (afterMs: number) => void = () => {},
  ) {}

  get isFailing(): boolean {
    return this.#failingSince !== undefined;
  }

  failed(error: unknown): void {
    if (this.#failingSince !== undefined) return;
    this.#failingSince = scheduler.now();
    this.onFailure(error);
  }

  succeeded(): void {
    if (this.#failingSince === undefined) return;
    const afterMs = Math.round(scheduler.now() - this.#failingSince);
    this.#failingSince = undefined;
    this.onRecovery(afterMs);
  }
}
