import { Cluster, Redis } from "ioredis";
import { messageOf } from "../../runtime/message-of.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { parseTimeline, type Timeline } from "../../domain/timeline.ts";
import type { BanRules } from "../../domain/ban-rules.ts";
import {
  type KeySubject,
  expire,
  formatSubject,
  isExpired,
  NEVER,
  type Subject,
  type Quota,
} from "../../domain/rate-limit.ts";
import { toStored, fromStored } from "../../domain/stored-quota.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { type KeyHandOver, parseReplies, type Replies, type RequestGroup, runScript } from "./script.ts";

interface ServerAddress {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: { readonly ca?: string };
}

/** One server, or some of the hosts of a cluster. */
export interface ValkeyServers {
  readonly addresses: readonly [ServerAddress, ...ServerAddress[]];
  readonly isCluster: boolean;
}

export interface ValkeyOptions {
  /** A `redis://` or `rediss://` URL, or several for hosts of a cluster. */
  readonly urls: readonly string[];
  /** Certificates (PEM) of the authorities that sign the server's, for `rediss://`; by default the well-known ones. */
  readonly ca?: string;
  /** The beginning of every key's name. Each environment that shares a Valkey needs its own. */
  readonly prefix: string;
}

interface ConnectionOptions {
  readonly servers: ValkeyServers;
  readonly prefix: string;
  /** Returns the rules that apply now. */
  readonly ban: () => BanRules;
  /** Replaces the clock of Valkey. */
  readonly testClock?: Clock | undefined;
  /** The timeout of everything that no request waits for: connecting, checking, and what operators do. */
  readonly backgroundTimeoutMs?: number | undefined;
}

const BACKGROUND_TIMEOUT_MS = 500;
/** The fields of a quota, in the order of its numbers. */
const FIELDS = ["mo", "mu", "mr", "ms", "do", "du", "dr", "ds", "ba", "bu"] as const;
/**
 * Stores a timeline as its number, which earlier releases write and read alone, and as its text. The script uses only
 * commands for which servers have permission anyway.
 */
const STORE_TIMELINE = `
  local stored = redis.call('HMGET', KEYS[1], 'timeline', 'marked')
  local number, mark = tonumber(stored[1] or 0), ''
  local marked_number, marked = string.match(stored[2] or '', '^(%d+) (%w+)$')
  if marked_number and tonumber(marked_number) == number then mark = marked end
  local given = tonumber(ARGV[1])
  local is_later = given > number or given == number and mark == ''
  if ARGV[3] ~= 'always' and not is_later then return number .. ' ' .. mark end
  local text = ARGV[1] .. ' ' .. ARGV[2]
  redis.call('HSET', KEYS[1], 'timeline', ARGV[1], 'marked', text)
  return text`;

/** What the rate limiter needs of a connection. A simulation replaces it. */
export type LimiterConnection = Pick<ValkeyConnection, "decide" | "quota" | "time" | "onEnd" | "close">;

/** A connection on which the script has run. */
export class ValkeyConnection {
  readonly #client: Redis | Cluster;
  readonly #options: ConnectionOptions;
  /** The ban rules as JSON, with the rules themselves, which may be replaced. */
  #rules: { readonly of: BanRules; readonly json: string } | undefined;
  readonly #timeoutMs: number;

  private constructor(options: ConnectionOptions) {
    this.#timeoutMs = options.backgroundTimeoutMs ?? BACKGROUND_TIMEOUT_MS;
    this.#client = createClient(options.servers, this.#timeoutMs);
    this.#options = options;
  }

  /**
   * Connects, and runs the script on a temporary key. In a cluster, that key is in the same slot as the subject's, so
   * that the check reaches the node that failed.
   */
  static async open(options: ConnectionOptions, subject: KeySubject): Promise<ValkeyConnection> {
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
    const client = this.#client;
    const [{ db }] = this.#options.servers.addresses;
    await this.#withReason(async () => {
      await client.connect();
      // The client would continue in database 0 if the server does not have this one.
      if (client instanceof Redis && db !== 0) await client.select(db);
      const key = `${this.#hashOf(subject)}:trial`;
      await runScript(client, [key], [...this.#commonArgs(), "1", "1", "1"]);
      await client.unlink(key);
    });
  }

  /** Throws the cause of a failure instead of the client's message. */
  async #withReason(work: () => Promise<void>): Promise<void> {
    let reason: unknown;
    const keep = (error: unknown) => void (CLOSED.test(messageOfLastNode(error)) || (reason = error));
    this.#client.on("error", keep);
    this.#client.on("node error", keep);
    try {
      await work();
    } catch (error) {
      if (!CLOSED.test(messageOfLastNode(error))) throw error;
      throw reason ?? (await this.#hostError()) ?? error;
    }
  }

  /** Finds out why no host of a cluster is available, because the client's message lacks it. */
  async #hostError(): Promise<unknown> {
    const [first] = this.#options.servers.addresses;
    const client = createClient({ addresses: [first], isCluster: false }, this.#timeoutMs);
    let reason: unknown;
    client.on("error", (error) => (reason = error));
    await this.#inTime(client.connect()).catch(() => {});
    client.disconnect();
    return reason;
  }

  /** Called when the connection ends, on either side. */
  onEnd(listener: () => void): void {
    this.#client.once("end", listener);
  }

  /**
   * Takes over what is handed over and then decides the requests, in their order, in one step. Waits for the reply
   * without a timeout. In a cluster all of them are about one key, because a script may use one slot only.
   */
  async decide(groups: readonly RequestGroup[], handOvers: readonly KeyHandOver[] = []): Promise<Replies> {
    const keys: string[] = [];
    const args = this.#commonArgs();
    for (const { subject, unbannedAt, quota } of handOvers) {
      keys.push(this.#hashOf(subject));
      args.push(JSON.stringify([unbannedAt, ...toStored(quota)]), "", "0");
    }
    for (const { subject, limits, requests } of groups) {
      keys.push(this.#hashOf(subject));
      args.push(`${limits.perMinute}`, `${limits.perDay}`, `${requests.length}`);
    }
    const counts = { handOvers: handOvers.length, groups: groups.length };
    return parseReplies(await runScript(this.#client, keys, args), counts);
  }

  /** Returns the quota, undefined if none of it is current, and the time by Valkey's clock. */
  async quota(subject: Subject): Promise<{ readonly quota: Quota | undefined; readonly now: number }> {
    const key = this.#hashOf(subject);
    const values = await this.#inTime(this.#client.hmget(key, ...FIELDS));
    const quota = fromStored(values.map((value) => (value === null ? undefined : Number(value))));
    const now = await this.time(key);
    expire(quota, now, this.#options.ban());
    return { quota: isExpired(quota, now) ? undefined : quota, now };
  }

  /** Returns whether any of the quota is current. Otherwise the quota is deleted. */
  async replaceQuota(subject: KeySubject, quota: Quota): Promise<boolean> {
    const key = this.#hashOf(subject);
    const now = await this.time(key);
    expire(quota, now, this.#options.ban());
    await this.#inTime(this.#client.unlink(key));
    if (isExpired(quota, now)) return false;
    await this.#inTime(this.decide([], [{ subject, quota, unbannedAt: NEVER }]));
    return true;
  }

  /** Resolves to the timeline that is stored afterwards. */
  async storeTimeline({ number, mark }: Timeline, condition: "if later" | "always"): Promise<Timeline> {
    const work = this.#client.eval(STORE_TIMELINE, 1, this.#timelineKey, number, mark, condition);
    return parseTimeline(String(await this.#inTime(work)));
  }

  /** Returns the time of the node that has the key, in milliseconds since the epoch. */
  async time(key = this.#timelineKey): Promise<number> {
    if (this.#options.testClock) return this.#options.testClock.now();
    const reply: unknown = await this.#inTime(this.#client.eval("return redis.call('TIME')", 1, key));
    const [seconds, microseconds] = Array.isArray(reply) ? reply : [];
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  /** Returns lines such as `redis_version:7.0.15`. Petstore servers do not need the permission for it. */
  info(): Promise<string> {
    return this.#inTime(this.#client.info());
  }

  close(): void {
    this.#client.disconnect();
  }

  #inTime<T>(work: Promise<T>): Promise<T> {
    return withTimeout(this.#timeoutMs, work);
  }

  get #timelineKey(): string {
    return `${this.#options.prefix}timeline`;
  }

  /** The part in braces chooses the slot of a cluster. */
  #hashOf(subject: Subject): string {
    return `${this.#options.prefix}{${formatSubject(subject)}}`;
  }

  #commonArgs(): string[] {
    const { testClock, ban } = this.#options;
    const rules = ban();
    if (this.#rules?.of !== rules) this.#rules = { of: rules, json: JSON.stringify(rules) };
    return [testClock ? `${testClock.now()}` : "", this.#rules.json];
  }
}

/**
 * The client neither reconnects nor queues nor repeats commands by itself. A repeated command would count twice, and a
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

/** The part of the connection timeout for one host, so that time is left to ask another for the slots. */
const SLOTS_TIMEOUT_SHARE = 0.3;

function createClient({ addresses, isCluster }: ValkeyServers, timeoutMs: number): Redis | Cluster {
  const [{ host, port, db: _db, ...access }] = addresses;
  if (!isCluster) return new Redis({ host, port, ...access, ...NO_RETRIES, enableOfflineQueue: false });
  return new Cluster(
    addresses.map(({ host, port }) => ({ host, port })),
    {
      ...NO_CLUSTER_RETRIES,
      enableAutoPipelining: true,
      // The client follows a slot to its new node for single commands only. Of scripts it sends `eval` again.
      autoPipeliningIgnoredCommands: ["eval", "hmget", "unlink"],
      slotsRefreshTimeout: SLOTS_TIMEOUT_SHARE * timeoutMs,
      // Certificates contain the names of hosts, so names are not resolved to addresses first.
      dnsLookup: (host, callback) => callback(null, host),
      redisOptions: { ...access, ...NO_RETRIES },
    },
  );
}

/** The client's messages for a connection that failed. The cause is in an event, or missing in a cluster. */
const CLOSED = /^(?:Connection is closed|None of startup nodes is available|Failed to refresh slots cache)/;

const DEFAULT_PORT = 6379;

/** Parses a URL, or several for hosts of a cluster. The error of an invalid URL omits it: it may contain a password. */
export function parseServers(urls: readonly string[], ca?: string): ValkeyServers {
  const tls = ca === undefined ? {} : { ca };
  const [first, ...others] = urls.map((text) => parseAddress(text, tls));
  if (first === undefined) throw new TypeError("Valkey needs an address");
  return { addresses: [first, ...others], isCluster: others.length > 0 };
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

/**
 * Returns an error that may be logged. The client's own errors contain the failed command, and so the password of an
 * AUTH. The message of a server that does not know AUTH quotes it too.
 */
export function loggableError(cause: unknown): Error {
  const message = messageOfLastNode(cause).replace(/, with args beginning with:.*$/s, "");
  return new Error(/^(?:MOVED|CROSSSLOT) /.test(message) ? `${message}: ${CLUSTER_NODE_HINT}` : message);
}

const CLUSTER_NODE_HINT =
  "this is a node of a cluster, so repeat --limits-url for at least one more of its nodes";

/** When no host of a cluster works, the error of the last one has the cause. */
function messageOfLastNode(cause: unknown): string {
  const nodeError: unknown = cause instanceof Error ? Reflect.get(cause, "lastNodeError") : undefined;
  return messageOf(nodeError ?? cause);
}
