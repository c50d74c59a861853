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
  {
    /** Null without a listener for operators; missing until it listens. */
    adminUrl: nullable(line(300)),
    /** Milliseconds since the epoch. */
    signedAt: count,
    signature: line(100),
  },
);
type ToldState = Infer<typeof ToldState>;

export type ServerIdentity = Pick<ToldState, "id" | "name" | "version" | "startedAt">;

/** Where a server listens for operators, signed: whoever can write to Valkey can tell anything. */
export type SignedUrl = Pick<ToldState, "signedAt" | "signature"> & { readonly adminUrl: string };

export interface ServerActivity extends Omit<ToldState, keyof ServerIdentity | "adminUrl"> {
  /** URL of its listener for operators; null if it has none, undefined until it is known. */
  readonly adminUrl: string | null | undefined;
}

export interface ServerState extends ServerIdentity, ServerActivity {
  /** When this server last heard of it, in milliseconds since the epoch. */
  readonly seenAt: number;
}

/** The name under which the number of servers is saved, for servers that start in an outage of Valkey. */
export const SERVERS_SETTING = "servers";

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
