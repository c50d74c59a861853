export const EXIT_CODE = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
export type StopSignal = keyof typeof EXIT_CODE;

/** The process, or a fake one in tests. */
export interface SignalSource {
  on(signal: StopSignal, listener: () => void): unknown;
  exit(code: number): void;
  writeError(line: string): void;
  /** Milliseconds on a monotonic clock. */
  elapsed(): number;
  /** Whether the process was started to ignore SIGHUP, as `nohup` does. */
  ignoresHangup(): boolean;
}

/** Ctrl-C reaches npm and the server, and npm forwards it: the server receives it twice. */
const DUPLICATE_MS = 300;
const STOP_TIMEOUT_MS = 9_500;

/**
 * Resolves with the first signal. A second signal exits at once, and so does the timeout after the server has drained
 * for `drainDelayMs`.
 */
export function stopOnSignals(source: SignalSource, drainDelayMs: number): Promise<StopSignal> {
  return new Promise((resolve) => {
    let firstAt: number | undefined;
    const stop = (signal: StopSignal) => {
      if (firstAt !== undefined) {
        if (source.elapsed() - firstAt >= DUPLICATE_MS) source.exit(EXIT_CODE[signal]);
        return;
      }
      firstAt = source.elapsed();
      setTimeout(() => {
        source.writeError("requests in progress did not finish in time; stopping without them");
        source.exit(1);
      }, drainDelayMs + STOP_TIMEOUT_MS).unref();
      resolve(signal);
    };
    source.on("SIGINT", () => stop("SIGINT"));
    source.on("SIGTERM", () => stop("SIGTERM"));
    // A listener would end the ignoring.
    if (!source.ignoresHangup()) source.on("SIGHUP", () => stop("SIGHUP"));
  });
}

/** `status` is /proc/self/status on Linux. SigIgn is a hexadecimal bit set, and SIGHUP is its first bit. */
export function hangupIsIgnored(status: string): boolean {
  const [, lastDigit = "0"] = /^SigIgn:\s*[\da-f]*([\da-f])$/m.exec(status) ?? [];
  return Number.parseInt(lastDigit, 16) % 2 === 1;
}
