import type { Fleet } from "../../harness/fleet.ts";
import type { Receiver } from "../../harness/webhook-receiver.ts";
import type { ClockPeriod, Disturbance } from "./history.ts";

/** What clients and operators use while faults are injected into it. */
export interface Played {
  readonly fleet: Fleet;
  /** The flags that name the storage. */
  readonly storage: readonly string[];
  /** The URL of the server that is the primary now. */
  readonly primaryUrl: string;
  /** The number of the server that is paused. */
  readonly pausedServer?: number | undefined;
  readonly clocks?: readonly ClockPeriod[];
  /** The receiver of the webhook. */
  readonly receiver?: Receiver | undefined;
  readonly mayBeLostUntil?: number | undefined;
  readonly disturbances: Disturbance[];
  /** The failures of servers. */
  readonly failures: string[];
  /** Records servers that have ended by themselves. */
  checkRunning(): void;
}
