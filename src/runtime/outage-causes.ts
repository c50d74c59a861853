import { messageOf } from "./message-of.ts";

/** The most causes of an outage that are reported. */
export const MAX_CAUSES = 5;

/** Reports each cause of an outage once: a server that starts fails in another way than one that is down. */
export class OutageCauses {
  readonly #reported = new Set<string>();

  constructor(private readonly onCause: (cause: unknown) => void) {}

  report(cause: unknown): void {
    const message = messageOf(cause);
    if (this.#reported.size >= MAX_CAUSES || this.#reported.has(message)) return;
    this.#reported.add(message);
    this.onCause(cause);
  }

  /** Must be called at the end of the outage. */
  end(): void {
    this.#reported.clear();
  }
}
