import { array, type Infer, integer, line, nullable, object, quantity } from "../api/schema.ts";

const count = integer({ min: 0, max: Number.MAX_SAFE_INTEGER });

/** What a server reports to others. A server of another release may report more. */
export const ServerReport = object(
  "What a server reports about itself",
  {
    id: line(100),
    /** The name of its machine. */
    name: line(300),
    version: line(40),
    /** The time in milliseconds since the epoch, up to the last `Date`. */
    startedAt: integer({ min: 0, max: 8.64e15 }),
    connections: count,
    /** The rate of the last seconds. */
    requestsPerSecond: quantity(),
    /** The requests since the start; the next two counts are part of it. */
    requests: count,
    /** Requests that were limited or banned. */
    rejections: count,
    /** The 5xx responses. */
    serverErrors: count,
    /** The latencies of the last 15 minutes as pairs of a bucket and its count. */
    latencies: array(array(count)),
  },
  {
    /** Null without a listener for operators; missing until it listens. */
    adminUrl: nullable(line(300)),
    /** The time in milliseconds since the epoch. */
    signedAt: count,
    signature: line(100),
  },
);
type ServerReport = Infer<typeof ServerReport>;

export type ServerIdentity = Pick<ServerReport, "id" | "name" | "version" | "startedAt">;

/** Where a server listens for operators. It is signed, because whoever can write to Valkey can write any URL. */
export type SignedUrl = Pick<ServerReport, "signedAt" | "signature"> & { readonly adminUrl: string };

export interface ServerActivity extends Omit<ServerReport, keyof ServerIdentity | "adminUrl"> {
  /** The URL of its listener for operators; null if it has none, undefined until it is known. */
  readonly adminUrl: string | null | undefined;
}

export interface ServerState extends ServerIdentity, ServerActivity {
  /** When this server last read its report, in milliseconds since the epoch. */
  readonly seenAt: number;
}

/** The name of the setting that saves the number of servers, for servers that start in an outage of Valkey. */
export const SERVERS_SETTING = "servers";

/** The activity of a server that has just started. */
export const NO_ACTIVITY: ServerActivity = {
  adminUrl: undefined,
  connections: 0,
  requestsPerSecond: 0,
  requests: 0,
  rejections: 0,
  serverErrors: 0,
  latencies: [],
};

/** Collects the activity of a server from its parts, each of which adds what it knows when it starts. */
export class ActivityCollector {
  readonly #parts = new Set<() => Partial<ServerActivity>>();

  /** Returns a function that removes the part. */
  add(read: () => Partial<ServerActivity>): () => void {
    this.#parts.add(read);
    return () => void this.#parts.delete(read);
  }

  collect(): ServerActivity {
    return Object.assign({ ...NO_ACTIVITY }, ...[...this.#parts].map((read) => read()));
  }
}
