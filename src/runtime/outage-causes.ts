import { messageOf } from "./message-of.ts";

/** The most causes of an outage that are reported. */
export const MAX_CAUSES = 5;

/** Reports each cause of an outage once: what keeps it from ending may be another one than what began it. */
export class OutageCauses {
  readonly #reported = new Set<string>();

  /** `passes` says whether a cause ends by itself, as that of a server that starts. It is no news during an outage. */
  constructor(
    private readonly onCause: (cause: unknown) => void,
    private readonly passes: (cause: unknown) => boolean = () => false,
  ) {}

  report(cause: unknown): void {
    const message = messageOf(cause);
    if (this.#reported.size >= MAX_CAUSES || this.#reported.has(message)) return;
    if (this.#reported.size > 0 && this.passes(cause)) return;
    this.#reported.add(message);
    this.onCause(cause);
  }

  /** Must be called at the end of the outage. */
  end(): void {
    this.#reported.clear();
  }
}
