import { Cluster, Redis } from "ioredis";
import type { Clock } from "../../domain/ports.ts";
import {
  type BanRules,
  formatSubject,
  type Subject,
  type Usage,
  usageNumbers,
} from "../../domain/rate-limit.ts";
import type { DecisionReply, DecisionRequest, KeyReport, Replies, ServerEntry, ValkeyLink } from "./link.ts";
import {
  DECIDE,
  ENTER_SERVER,
  parseDecisions,
  parseReported,
  parseTexts,
  parseUsage,
  READ_USAGE,
  REPORT,
  reportNumbers,
  run,
} from "./scripts.ts";
import { scheduler } from "../../event-loop.ts";

interface ServerAddress {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: { readonly ca?: string };
}

/** One server, or some of the hosts of a cluster. */
export interface Servers {
  readonly addresses: readonly [ServerAddress, ...ServerAddress[]];
  readonly isCluster: boolean;
}

interface ConnectionOptions {
  readonly servers: Servers;
  readonly prefix: string;
  readonly ban: BanRules;
  /** The scripts use it instead of the server's clock. */
  readonly testClock?: Clock | undefined;
  /** For everything that no request waits for: connecting, checking, and what operators do. */
  readonly backgroundTimeoutMs?: number | undefined;
}

const BACKGROUND_TIMEOUT_MS = 500;

/** A connection on which the decide script has been seen to work. */
export class ValkeyConnection implements ValkeyLink {
  readonly #client: Redis | Cluster;
  readonly #options: ConnectionOptions;
  /** As JSON. */
  readonly #rules: string;
  readonly #timeoutMs: number;
  openedAt = 0;

  private constructor(options: ConnectionOptions) {
    this.#timeoutMs = options.backgroundTimeoutMs ?? BACKGROUND_TIMEOUT_MS;
    this.#client = createClient(options.servers, this.#timeoutMs);
    this.#options = options;
    this.#rules = JSON.stringify(options.ban);
  }

  /**
   * Connects, and runs the decide script on a temporary key. In a cluster, that key lies in the same slot as the
   * subject's: the node that failed must work again, and not any other.
   */
  static async open(options: ConnectionOptions, subject: Subject): Promise<ValkeyConnection> {
    const connection = new ValkeyConnection(options);
    try {
      await withTimeout(connection.#timeoutMs, connection.#check(subject));
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  async #check(subject: Subject): Promise<void> {
    await connect(this.#client, this.#options.servers);
    const key = `${this.#keyOf(subject)}:trial`;
    const input = { keys: [key], args: [...this.#commonArgs(), "1", "1", "1"] };
    this.openedAt = parseDecisions(await run(this.#client, DECIDE, input), 1).now;
    await this.#client.unlink(key);
  }

  onEnd(listener: () => void): void {
    this.#client.once("end", listener);
  }

  async decide(requests: readonly DecisionRequest[]): Promise<Replies<DecisionReply>> {
    const keys: string[] = [];
    const args = this.#commonArgs();
    for (const { subject, limits, count } of runsOf(requests)) {
      keys.push(this.#keyOf(subject));
      args.push(`${limits.perMinute}`, `${limits.perDay}`, `${count}`);
    }
    return parseDecisions(await run(this.#client, DECIDE, { keys, args }), requests.length);
  }

  /** In a cluster a script may touch one slot only, and nodes have clocks of their own. */
  async report(reports: readonly KeyReport[]): Promise<Replies<Usage>> {
    if (!this.#options.servers.isCluster) return this.#report(reports);
    const replies = await Promise.all(
      reports.map((report) => this.#report([{ ...report, sentAt: undefined }])),
    );
    return {
      now: Math.max(...replies.map(({ now }) => now)),
      replies: replies.flatMap((each) => each.replies),
    };
  }

  async #report(reports: readonly KeyReport[]): Promise<Replies<Usage>> {
    const keys = reports.map(({ subject }) => this.#keyOf(subject));
    const args = [...this.#commonArgs(), JSON.stringify(reports.map(reportNumbers))];
    return parseReported(await run(this.#client, REPORT, { keys, args }), reports.length);
  }

  /** Another usage replaces it first if one is given. */
  async usage(subject: Subject, other?: Usage): Promise<Usage | undefined> {
    const numbers = other ? [JSON.stringify(usageNumbers(other))] : [];
    const input = { keys: [this.#keyOf(subject)], args: [...this.#commonArgs(), ...numbers] };
    return parseUsage(await withTimeout(this.#timeoutMs, run(this.#client, READ_USAGE, input)));
  }

  async servers({ id, text }: ServerEntry = { id: "", text: "" }): Promise<readonly string[]> {
    const input = { keys: [this.#register], args: [...this.#commonArgs(), id, text] };
    return parseTexts(await withTimeout(this.#timeoutMs, run(this.#client, ENTER_SERVER, input)));
  }

  async removeServer(id: string): Promise<void> {
    await withTimeout(this.#timeoutMs, this.#client.hdel(this.#register, id));
  }

  /** Its clock, in milliseconds since the epoch. */
  async time(): Promise<number> {
    const [seconds, microseconds] = await withTimeout(this.#timeoutMs, this.#client.time());
    return Number(seconds) * 1000 + Number(microseconds) / 1000;
  }

  /** What the server tells of itself, in lines such as `redis_version:7.0.15`. Servers need no permission for it. */
  info(): Promise<string> {
    return withTimeout(this.#timeoutMs, this.#client.info());
  }

  close(): void {
    this.#client.disconnect();
  }

  get #register(): string {
    return `${this.#options.prefix}servers`;
  }

  /** The part in braces chooses the slot of a cluster. */
  #keyOf(subject: Subject): string {
    return `${this.#options.prefix}{${formatSubject(subject)}}`;
  }

  #commonArgs(): string[] {
    const { testClock } = this.#options;
    return [testClock ? `${testClock.now()}` : "", this.#rules];
  }
}

/** Consecutive requests of one key: Valkey reads and writes its usage once (`wrk -c64`: 13 µs a request, not 23). */
function runsOf(requests: readonly DecisionRequest[]) {
  const runs: (DecisionRequest & { count: number })[] = [];
  for (const { subject, limits } of requests) {
    const last = runs.at(-1);
    const { perMinute, perDay } = last?.limits ?? {};
    const isAlike = perMinute === limits.perMinute && perDay === limits.perDay;
    if (isAlike && last?.subject.id === subject.id) last.count++;
    else runs.push({ subject, limits, count: 1 });
  }
  return runs;
}

/**
 * The client neither reconnects nor queues nor repeats anything by itself. A repeated command would count twice, and a
 * frozen server keeps its sockets open, so only a new connection shows whether it works again.
 */
const NO_RETRIES = {
  lazyConnect: true,
  retryStrategy: null,
  autoResendUnfulfilledCommands: false,
  // The check runs the real script; INFO would need one more permission.
  enableReadyCheck: false,
  disableClientInfo: true,
  connectionName: "petstore",
  protocol: 2,
  // A frozen server never closes its side.
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

/** Of the time for connecting: one frozen host must leave time to ask another where the slots are. */
const SLOTS_TIMEOUT_SHARE = 0.3;

function createClient({ addresses, isCluster }: Servers, timeoutMs: number): Redis | Cluster {
  const [{ host, port, db: _db, ...access }] = addresses;
  if (!isCluster) return new Redis({ host, port, ...access, ...NO_RETRIES, enableOfflineQueue: false });
  return new Cluster(
    addresses.map(({ host, port }) => ({ host, port })),
    {
      ...NO_CLUSTER_RETRIES,
      enableAutoPipelining: true,
      // The client follows a slot to its new node for single commands only, and `eval` is the one sent again then.
      autoPipeliningIgnoredCommands: ["eval"],
      slotsRefreshTimeout: SLOTS_TIMEOUT_SHARE * timeoutMs,
      // Certificates name hosts, so names are not resolved to addresses first.
      dnsLookup: (host, callback) => callback(null, host),
      redisOptions: { ...access, ...NO_RETRIES },
    },
  );
}

/**
 * Resolves once commands can be sent. The client reports the reason of a failure as an event only. The database is
 * selected here, because the client would go on in database 0 when the server does not have it.
 */
async function connect(client: Redis | Cluster, { addresses: [{ db }] }: Servers): Promise<void> {
  let reason: unknown;
  client.on("error", (error) => (reason = error));
  try {
    await client.connect();
  } catch (error) {
    throw reason ?? error;
  }
  if (client instanceof Redis && db !== 0) await client.select(db);
}

const DEFAULT_PORT = 6379;

/** Throws on an invalid address, without repeating it: it may hold a password. */
export function parseServers(url: string | readonly string[], ca?: string): Servers {
  const tls = ca === undefined ? {} : { ca };
  const [first, ...others] = (typeof url === "string" ? [url] : url).map((text) => parseAddress(text, tls));
  if (first === undefined) throw new TypeError("a cluster needs the address of at least one of its hosts");
  return { addresses: [first, ...others], isCluster: typeof url !== "string" };
}

function parseAddress(text: string, tls: { ca?: string }): ServerAddress {
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
    ...(url.protocol === "rediss:" && { tls }),
  };
}

/** An error that may be logged. The client's own errors carry the failed command, and so the password of an AUTH. */
export function loggableError(cause: unknown): Error {
  // When no host of a cluster works, the error of the last one says why.
  const nodeError: unknown = cause instanceof Error ? Reflect.get(cause, "lastNodeError") : undefined;
  const error = nodeError instanceof Error ? nodeError : cause;
  return new Error(error instanceof Error ? error.message : String(error));
}

async function withTimeout<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const timer = scheduler.setTimeout(() => reject(new Error(`no reply within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    timer.close();
  }
}
