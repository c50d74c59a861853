import { sha256 } from "../runtime/hash.ts";
import { array, type Infer, integer, line, nullable, object, quantity } from "../api/schema.ts";

/** The age of the last report of a server that is gone. The others list it as up for at most a second more. */
export const GONE_AFTER_MS = 4_000;

const MAX_VALUE_LENGTH = 300;
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
    /** The settings that should be the same on all servers, with their values in effect. */
    settings: array(object("A setting", { name: line(60), value: line(MAX_VALUE_LENGTH) })),
    /** The port of its listener for clients. */
    port: integer({ min: 0, max: 65_535 }),
    /** Its clock minus that of the database; null if the database has none of its own, or has not responded yet. */
    clockAheadMs: nullable(integer({ min: -8.64e15, max: 8.64e15 })),
  },
);
type ServerReport = Infer<typeof ServerReport>;

/** What a report of every release has. */
export const ServerVersion = object("The release of a server", { version: line(40) });

export type ServerIdentity = Pick<ServerReport, "id" | "name" | "version" | "startedAt">;

export interface ServerActivity extends Omit<ServerReport, keyof ServerIdentity | "adminUrl"> {
  /** The URL of its listener for operators; null if it has none, undefined until it is known. */
  readonly adminUrl: string | null | undefined;
}

/** What a server reports about its settings. The policy is not reported: it is the same on all servers. */
export type ReportedSettings = Required<Pick<ServerReport, "settings">>;
export type ReportedSetting = ReportedSettings["settings"][number];

/** Returns the value as it is reported, or its hash if it is long. */
export function reportedSetting(name: string, value: string): ReportedSetting {
  return { name, value: value.length <= MAX_VALUE_LENGTH ? value : `SHA-256 ${sha256(value)}` };
}

/**
 * Returns the settings in which a server differs from most others, by its identifier. The version counts as a setting.
 * If no value is that of most servers, all of them differ.
 */
export function differingSettings(
  servers: readonly ServerState[],
): ReadonlyMap<string, readonly ReportedSetting[]> {
  const reported = servers.flatMap(({ id, version, settings = [] }) =>
    [{ name: "version", value: version }, ...settings].map(({ name, value }) => ({ id, name, value })),
  );
  const differing = [...Map.groupBy(reported, ({ name }) => name).values()].flatMap((values) => {
    const byValue = [...Map.groupBy(values, ({ value }) => value).values()];
    return byValue.filter(({ length }) => 2 * length <= values.length).flat();
  });
  const byServer = Map.groupBy(differing, ({ id }) => id);
  return new Map([...byServer].map(([id, some]) => [id, some.map(({ name, value }) => ({ name, value }))]));
}

export interface ServerState extends ServerIdentity, ServerActivity {
  /** When this server last read its report, in milliseconds since the epoch. */
  readonly seenAt: number;
}

/** What a server has reported last, as JSON. */
export interface StoredReport {
  readonly id: string;
  readonly report: string;
  /** The time since then by the clock of the database; below 0 after that clock was set back. */
  readonly ageMs: number;
}

/** What a server or a command asks a server. */
export interface Question {
  readonly id: string;
  /** The identifier of a server, or the name of a machine, of whose servers one answers; undefined for any server. */
  readonly to?: string | undefined;
  /** An operation of operators. */
  readonly operation: string;
  /** The parameters of the operation as the query of a URL. */
  readonly query: string;
}

export interface QuestionState {
  readonly id: string;
  /** The server that answers it. */
  readonly takenBy?: string;
  readonly answer?: string;
}

/** The name of a server for operators. A machine can have several servers, on different ports. */
export function nameOfServer({ name, port }: Pick<ServerState, "name" | "port">): string {
  return port === undefined ? name : `${name}:${port}`;
}

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
