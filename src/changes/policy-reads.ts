import type { Policy } from "../domain/policy.ts";
import type { Awaitable } from "../runtime/awaitable.ts";

interface PolicyReadsOptions {
  readonly readPolicy: () => Awaitable<Policy>;
  applyPolicy(policy: Policy): void;
}

/** Reads the policy after the start, and when it may have changed. A result that is late undoes no later one. */
export class PolicyReads {
  readonly #options: PolicyReadsOptions;
  /** The changes after which the policy is to be read. Somebody may have changed it while the server started. */
  #changes = 1;
  /** The changes that a read has shown. */
  #changesRead = 0;
  #started = 0;
  /** The number of the read that was applied last. */
  #applied = 0;

  constructor(options: PolicyReadsOptions) {
    this.#options = options;
  }

  mayHaveChanged(): void {
    this.#changes++;
  }

  get isCurrent(): boolean {
    return this.#changesRead >= this.#changes;
  }

  async read(): Promise<void> {
    const [changes, number] = [this.#changes, ++this.#started];
    const policy = await this.#options.readPolicy();
    this.#changesRead = Math.max(this.#changesRead, changes);
    if (number < this.#applied) return;
    this.#applied = number;
    this.#options.applyPolicy(policy);
  }
}
