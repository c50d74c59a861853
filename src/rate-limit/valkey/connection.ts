import { Cluster, Redis } from "ioredis";

export type Client = Redis | Cluster;

interface Address {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: object;
}

/** One server, or any hosts of a cluster. */
export interface Hosts {
  readonly addresses: readonly [Address, ...Address[]];
  readonly isCluster: boolean;
}

/**
 * The client neither reconnects nor queues nor repeats anything by itself. A command repeated behind our back would
 * be counted twice, and a frozen server keeps its sockets open, so only a new connection tells whether it is back.
 */
const NO_RETRIES = {
  lazyConnect: true,
  retryStrategy: null,
  autoResendUnfulfilledCommands: false,
  // Readiness is shown by running the real script; asking INFO as well would need one more permission.
  enableReadyCheck: false,
  disableClientInfo: true,
  connectionName: "petstore",
  protocol: 2,
  // A socket whose other end is frozen never says goodbye.
  disconnectTimeout: 50,
} as const;

const NO_CLUSTER_RETRIES = {
  lazyConnect: true,
  clusterRetryStrategy: null,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  enableReadyCheck: false,
  enableOfflineQueue: false,
} as const;

/** One frozen host must not use up the time in which another would tell where everything is. */
const SLOTS_TIMEOUT_MS = 150;

/**
 * Connects, and resolves once commands can be sent. Why that failed reaches us as an event only. The database is chosen
 * here: the client would go on in database 0 when the server has no such other.
 */
export async function connect(client: Client, { addresses: [{ db }] }: Hosts): Promise<void> {
  let reason: unknown;
  client.on("error", (error) => (reason = error));
  try {
    await client.connect();
  } catch (error) {
    throw reason ?? error;
  }
  if (client instanceof Redis && db !== 0) await client.select(db);
}

export function createClient({ addresses, isCluster }: Hosts): Client {
  const [{ host, port, db: _db, ...access }] = addresses;
  if (!isCluster) return new Redis({ host, port, ...access, ...NO_RETRIES, enableOfflineQueue: false });
  return new Cluster(
    addresses.map(({ host, port }) => ({ host, port })),
    {
      ...NO_CLUSTER_RETRIES,
      enableAutoPipelining: true,
      // The client follows a slot to its new node for single commands only, and `eval` is what is sent again then.
      autoPipeliningIgnoredCommands: ["eval"],
      slotsRefreshTimeout: SLOTS_TIMEOUT_MS,
      // Certificates name hosts, so hosts are not turned into addresses beforehand.
      dnsLookup: (host, callback) => callback(null, host),
      redisOptions: { ...access, ...NO_RETRIES },
    },
  );
}

const DEFAULT_PORT = 6379;

/** Throws on an address that cannot be one, and never repeats it: it may hold a password. */
export function parseHosts(url: string | readonly string[]): Hosts {
  const [first, ...others] = (typeof url === "string" ? [url] : url).map(parseAddress);
  if (first === undefined) throw new TypeError("a cluster needs the address of at least one of its hosts");
  return { addresses: [first, ...others], isCluster: typeof url !== "string" };
}

function parseAddress(text: string): Address {
  const url = URL.parse(text);
  if (!url || !/^rediss?:$/.test(url.protocol) || url.hostname === "") {
    throw new TypeError("a Valkey server's address must look like redis://host:6379 or rediss://host:6379");
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(url.port || DEFAULT_PORT),
    db: Number(/^\/(\d+)$/.exec(url.pathname)?.[1] ?? 0),
    ...(url.username !== "" && { username: decodeURIComponent(url.username) }),
    ...(url.password !== "" && { password: decodeURIComponent(url.password) }),
    ...(url.protocol === "rediss:" && { tls: {} }),
  };
}

/** An error fit for a log: those of the client carry the command that failed, and so the password of an AUTH. */
export function withoutSecrets(cause: unknown): Error {
  // Of a cluster none of whose hosts would do, what the last of them said tells more.
  const said: unknown = cause instanceof Error ? Reflect.get(cause, "lastNodeError") : undefined;
  const telling = said instanceof Error ? said : cause;
  return new Error(telling instanceof Error ? telling.message : String(telling));
}

export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
