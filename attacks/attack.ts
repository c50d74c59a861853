export interface Target {
  readonly host: string;
  readonly port: number;
  /** A valid API key, for attacks that need one. */
  readonly key?: string;
}

/** Load that must not harm other clients. */
export interface Attack {
  readonly name: string;
  readonly title: string;
  /** What must hold while the attack runs: the latency of a well-behaved client, and the memory of the server. */
  readonly bars: { readonly p99Ms?: number; readonly memoryMb?: number };
  /**
   * Whether the attack is what remains when it has done its work: the measurement begins when it calls `onReady`, and
   * the memory is that at the end instead of the peak.
   */
  readonly isMeasuredWhenReady?: true;
  /** Limit of open files of the server, if the attack depends on it. */
  readonly openFiles?: number;
  /** Attacks until the signal aborts. */
  run(target: Target, signal: AbortSignal, onReady: () => void): Promise<void>;
}
