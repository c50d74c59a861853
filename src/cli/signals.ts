const EXIT_CODE = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
export type StopSignal = keyof typeof EXIT_CODE;

/** What is asked of the process, so that tests can stand in for it. */
export interface SignalSource {
  on(signal: StopSignal, listener: () => void): unknown;
  exit(code: number): void;
  complain(line: string): void;
  /** Milliseconds, of a clock that never goes back. */
  elapsed(): number;
  /** Whether the process was started so that a hangup does not concern it, as `nohup` does. */
  isHangupIgnored(): boolean;
}

/** `npm start` passes a Ctrl-C on that the terminal has already sent to everyone: one wish, two signals. */
const ECHO_MS = 300;
const DEADLINE_MS = 9_500;

/**
 * Resolves with the first signal; from then on a clean stop has a deadline, and a second signal ends the process at
 * once.
 */
export function stopOnSignals(source: SignalSource): Promise<StopSignal> {
  return new Promise((resolve) => {
    let askedAt: number | undefined;
    const ask = (signal: StopSignal) => {
      if (askedAt !== undefined) {
        if (source.elapsed() - askedAt >= ECHO_MS) source.exit(EXIT_CODE[signal]);
        return;
      }
      askedAt = source.elapsed();
      setTimeout(() => {
        source.complain("what was under way did not end in time; stopping without it");
        source.exit(1);
      }, DEADLINE_MS).unref();
      resolve(signal);
    };
    source.on("SIGINT", () => ask("SIGINT"));
    source.on("SIGTERM", () => ask("SIGTERM"));
    // To listen would be to stop ignoring it.
    if (!source.isHangupIgnored()) source.on("SIGHUP", () => ask("SIGHUP"));
  });
}

/** From what Linux tells of a process, in /proc/self/status: a set of signals, of which SIGHUP is the first. */
export function ignoresHangup(status: string): boolean {
  const [, last = "0"] = /^SigIgn:\s*[\da-f]*([\da-f])$/m.exec(status) ?? [];
  return Number.parseInt(last, 16) % 2 === 1;
}
