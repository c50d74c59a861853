import { Cluster, Redis } from "ioredis";
import type { Clock } from "../../domain/ports.ts";
import type { BanRules, Subject, Usage } from "../../domain/rate-limit.ts";
import type { DecisionRequest } from "./batcher.ts";
import {
  DECIDE,
  type Decisions,
  formatSubject,
  parseDecisions,
  parseUsage,
  READ_USAGE,
  run,
  SET_USAGE,
  UNBAN,
  usageNumbers,
} from "./scripts.ts";

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
export class ValkeyConnection {
  readonly #client: Redis | Cluster;
  readonly #options: ConnectionOptions;
  /** As JSON. */
  readonly #rules: string;
  readonly #timeoutMs: number;

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
    const input = { keys: [key], args: [...this.#commonArgs(), "1", "1"] };
    parseDecisions(await run(this.#client, DECIDE, input), 1);
    await this.#client.unlink(key);
  }

  /** Called when the connection ends, on either side. */
  onEnd(listener: () => void): void {
    this.#client.once("end", listener);
  }

  /** One round trip for all requests. */
  async decide(requests: readonly DecisionRequest[]): Promise<Decisions> {
    const keys = requests.map(({ subject }) => this.#keyOf(subject));
    const args = this.#commonArgs();
    for (const { limits } of requests) args.push(`${limits.perMinute}`, `${limits.perDay}`);
    return parseDecisions(await run(this.#client, DECIDE, { keys, args }), requests.length);
  }

  async usage(subject: Subject): Promise<Usage | undefined> {
    const input = { keys: [this.#keyOf(subject)], args: this.#commonArgs() };
    return parseUsage(await withTimeout(this.#timeoutMs, run(this.#client, READ_USAGE, input)));
  }

  /** Returns what is stored now: nothing if all of the usage has expired. */
  async setUsage(subject: Subject, usage: Usage): Promise<Usage | undefined> {
    const numbers = JSON.stringify(usageNumbers(usage));
    const input = { keys: [this.#keyOf(subject)], args: [...this.#commonArgs(), numbers] };
    return parseUsage(await withTimeout(this.#timeoutMs, run(this.#client, SET_USAGE, input)));
  }

  async unban(subject: Subject, agoMs: number): Promise<void> {
    const input = { keys: [this.#keyOf(subject)], args: [...this.#commonArgs(), `${agoMs}`] };
    await withTimeout(this.#timeoutMs, run(this.#client, UNBAN, input));
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

  /** Does not wait for the server, which may be dead. */
  close(): void {
    this.#client.disconnect();
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
  const timer = setTimeout(() => reject(new Error(`no reply within ${ms} ms`)), ms);
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

export type OnStateChange = (state: "available" | "unavailable", cause?: unknown) => void;

interface ReconnectorOptions {
  /** Opens a connection on which requests of this subject work. */
  connect(subject: Subject): Promise<ValkeyConnection>;
  /** Called before `onStateChange`. */
  onConnection(connection: ValkeyConnection | undefined): void;
  readonly onStateChange: OnStateChange | undefined;
}

/** A server that works again is used again within a second. */
const RETRY_EVERY_MS = 250;
/** A connection that lasted this long may have failed for a moment only, so the first retry follows at once. */
const STABLE_AFTER_MS = 1_000;
const ANY_SUBJECT: Subject = { kind: "key", id: 0 };

/**
 * Owns the one connection, or retries until it has one. A connection that failed is never used again: on it, every
 * command would wait behind those without a reply.
 */
export class Reconnector {
  readonly #options: ReconnectorOptions;
  #connection: ValkeyConnection | undefined;
  #connectedAt = 0;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: ReconnectorOptions) {
    this.#options = options;
  }

  /** A server that is unavailable at the start delays the start a little and does not prevent it. */
  async start(): Promise<void> {
    try {
      this.#use(await this.#options.connect(ANY_SUBJECT));
    } catch (cause) {
      this.#retryIn(RETRY_EVERY_MS, ANY_SUBJECT);
      this.#report("unavailable", cause);
    }
  }

  /** Closes a connection that failed; `subject` is the one whose request failed. */
  connectionFailed(connection: ValkeyConnection, cause: unknown, subject = ANY_SUBJECT): void {
    if (connection !== this.#connection) return;
    this.#connection = undefined;
    connection.close();
    this.#options.onConnection(undefined);
    const wasStable = performance.now() - this.#connectedAt >= STABLE_AFTER_MS;
    this.#retryIn(wasStable ? 0 : RETRY_EVERY_MS, subject);
    this.#report("unavailable", cause);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#connection?.close();
    this.#connection = undefined;
  }

  #use(connection: ValkeyConnection): void {
    if (this.#isClosed) return connection.close();
    this.#connection = connection;
    this.#connectedAt = performance.now();
    connection.onEnd(() => this.connectionFailed(connection, new Error("the connection was closed")));
    this.#options.onConnection(connection);
  }

  #retryIn(ms: number, subject: Subject): void {
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => void this.#retry(subject), ms);
    this.#timer.unref();
  }

  async #retry(subject: Subject): Promise<void> {
    const connection = await this.#options.connect(subject).catch(() => undefined);
    if (connection === undefined) return this.#retryIn(RETRY_EVERY_MS, subject);
    this.#use(connection);
    this.#report("available");
  }

  #report(state: "available" | "unavailable", cause?: unknown): void {
    if (this.#isClosed) return;
    this.#options.onStateChange?.(state, cause === undefined ? undefined : loggableError(cause));
  }
}
