/** Two clocks, in milliseconds since the epoch. They are injected everywhere, so that no test sleeps. */
export interface Clock {
  /** Returns the time of the machine's clock, for times that people see: when a key expires, when a pet was created. */
  now(): number;
  /** Returns the time of a monotonic clock, which setting the machine's clock does not move: for windows and bans. */
  steadyNow(): number;
  /** How far the machine's clock has been set since the start: `now` is `steadyNow` plus this, apart from drift. */
  readonly stepMs: number;
}
