/** What is asked of the process, so that tests can stand in for it. */
export interface SignalSource {
  on(signal: "SIGINT" | "SIGTERM", listener: () => void): unknown;
  exit(code: number): void;
  complain(line: string): void;
  /** Milliseconds, of a clock that never goes back. */
  elapsed(): number;
}

const EXIT_CODE = { SIGINT: 130, SIGTERM: 143 } as const;
/** `npm start` passes a Ctrl-C on that the terminal has already sent to everyone: one wish, two signals. */
const ECHO_MS = 300;
const DEADLINE_MS = 9_500;

/**
 * Resolves with the first signal; from then on a clean stop has a deadline, and a second signal ends the process at
 * once.
 */
export function stopOnSignals(source: SignalSource): Promise<void> {
  return new Promise((resolve) => {
    let askedAt: number | undefined;
    const ask = (signal: keyof typeof EXIT_CODE) => {
      if (askedAt !== undefined) {
        if (source.elapsed() - askedAt >= ECHO_MS) source.exit(EXIT_CODE[signal]);
        return;
      }
      askedAt = source.elapsed();
      setTimeout(() => {
        source.complain("what was under way did not end in time; stopping without it");
        source.exit(1);
      }, DEADLINE_MS).unref();
      resolve();
    };
    source.on("SIGINT", () => ask("SIGINT"));
    source.on("SIGTERM", () => ask("SIGTERM"));
  });
}
