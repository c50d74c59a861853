/** `sqlite`: one server. `shared`: two servers on one PostgreSQL and one Valkey. */
export const ENGINES = ["sqlite", "shared"] as const;
export type Engines = (typeof ENGINES)[number];

export interface Target {
  readonly host: string;
  readonly port: number;
  /** A valid API key, for attacks that need one. */
  readonly key?: string;
}

/** What must hold while the attack runs. */
export interface Bars {
  /** The latency of a well-behaved client. */
  readonly p99Ms?: number;
  /** The memory of a server. */
  readonly memoryMb?: number;
  /** The entries in Valkey, of which every API key that is used has one. */
  readonly valkeyEntries?: number;
  /** The transactions of PostgreSQL, for all servers and clients. */
  readonly transactionsPerSecond?: number;
}

/** Load that must not harm other clients. */
export interface Attack {
  readonly name: string;
  readonly title: string;
  /** What it applies to; by default `sqlite` alone. */
  readonly engines?: readonly Engines[];
  /** Whether it attacks the first of the servers only, and not each of them. The well-behaved client uses the last. */
  readonly firstServerOnly?: true;
  /** What a server logs when the attack reaches its aim. */
  readonly logs?: RegExp;
  readonly bars: Bars;
  /**
   * Whether the attack is what remains when it has done its work: the measurement begins when it calls `onReady`, and
   * the memory is that at the end instead of the peak.
   */
  readonly isMeasuredWhenReady?: true;
  /** Whether it takes some time to begin, and calls `onReady` when it has begun. */
  readonly preparesFirst?: true;
  /** Limit of open files of the server, if the attack depends on it. */
  readonly openFiles?: number;
  /** Attacks until the signal aborts. */
  run(target: Target, signal: AbortSignal, onReady: () => void): Promise<void>;
}
