/** Who a server is. */
export interface ServerIdentity {
  readonly id: string;
  /** Of its machine. */
  readonly name: string;
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
}

/** What a server does. */
export interface ServerActivity {
  /** URL of its listener for operators; undefined if it has none. */
  readonly adminUrl: string | undefined;
  readonly connections: number;
  /** In the last seconds. */
  readonly requestsPerSecond: number;
  /** Since the start. */
  readonly requests: number;
  /** Requests that were limited or banned, since the start. */
  readonly rejections: number;
  /** Responses 5xx since the start. */
  readonly serverErrors: number;
  /** Of the last 15 minutes: pairs of a bucket and its count. */
  readonly latencies: readonly (readonly [number, number])[];
}

export interface ServerState extends ServerIdentity, ServerActivity {
  /** When this server last heard of it, in milliseconds since the epoch. */
  readonly seenAt: number;
}

/** A server that has just started. */
export const NO_ACTIVITY: ServerActivity = {
  adminUrl: undefined,
  connections: 0,
  requestsPerSecond: 0,
  requests: 0,
  rejections: 0,
  serverErrors: 0,
  latencies: [],
};
