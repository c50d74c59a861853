import { array, type Infer, integer, line, nullable, object, quantity } from "../api/schema.ts";

const count = integer({ min: 0, max: Number.MAX_SAFE_INTEGER });

/** What a server tells others. One of another release may tell more. */
export const ToldState = object(
  "What a server tells of itself",
  {
    id: line(100),
    /** Of its machine. */
    name: line(300),
    version: line(40),
    /** Milliseconds since the epoch, up to the last `Date`. */
    startedAt: integer({ min: 0, max: 8.64e15 }),
    connections: count,
    /** In the last seconds. */
    requestsPerSecond: quantity(),
    /** Since the start, as are the next two. */
    requests: count,
    /** Requests that were limited or banned. */
    rejections: count,
    /** Responses 5xx. */
    serverErrors: count,
    /** Of the last 15 minutes: pairs of a bucket and its count. */
    latencies: array(array(count)),
  },
  { adminUrl: nullable(line(300)) },
);
type ToldState = Infer<typeof ToldState>;

export type ServerIdentity = Pick<ToldState, "id" | "name" | "version" | "startedAt">;

export interface ServerActivity extends Omit<ToldState, keyof ServerIdentity | "adminUrl"> {
  /** URL of its listener for operators; undefined if it has none. */
  readonly adminUrl: string | undefined;
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
