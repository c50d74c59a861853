import { scheduler } from "../event-loop.ts";

/** Reports that something began to fail, and that it works again: each once, however often it is tried. */
export class Latch {
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

  worked(): void {
    if (this.#failingSince === undefined) return;
    const afterMs = Math.round(scheduler.now() - this.#failingSince);
    this.#failingSince = undefined;
    this.onRecovery(afterMs);
  }
}
