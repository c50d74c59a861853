import { X509Certificate } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import type { CacheStatistics } from "../runtime/bounded-cache.ts";
import { AUTH_FAILURES } from "../domain/api-keys.ts";
import type { Clock } from "../domain/ports/clock.ts";
import { differingSettings, type ServerState } from "../domain/servers.ts";
import type { WaitingEntries } from "../domain/webhooks.ts";
import { type HttpServer, maxDescriptors, type ServerStatistics } from "../http1/index.ts";
import { formatMetrics, type Sample } from "./exposition.ts";
import { LiveSeries } from "./live-series.ts";
import type { Log } from "./log.ts";
import type {
  EngineMonitor,
  CommitMonitor,
  DatabaseMonitor,
  LimiterMonitor,
  SqliteLogMonitor,
} from "./engine-monitor.ts";
import { EventLoopDelay } from "./event-loop-delay.ts";
import type { RequestMetrics } from "./request-metrics.ts";

interface MetricsOptions {
  readonly clock: Pick<Clock, "now" | "steadyNow">;
  readonly version: string;
  readonly environment: string;
  readonly server: Pick<HttpServer, "statistics" | "maxConnections" | "isShuttingDown" | "tlsCertificate">;
  readonly requests: RequestMetrics;
  /** The hits and misses of the response cache. */
  readonly responseCacheStatistics: CacheStatistics;
  /** Undefined if no webhook is configured. */
  readonly webhook?:
    | {
        readonly counts: Readonly<Record<string, number>>;
        readonly waiting: WaitingEntries | undefined;
      }
    | undefined;
  /** Undefined if no request is traced. */
  readonly tracer?: { readonly counts: Readonly<Record<string, number>> } | undefined;
  readonly log: Pick<Log, "lines">;
  /** `at` is the time in milliseconds since the epoch; undefined if none is recorded. */
  readonly lastBackup: { readonly at: number | undefined };
  readonly authenticator: { readonly cacheStatistics: CacheStatistics; readonly lookupQueueLength: number };
  readonly adapters: {
    readonly database: DatabaseMonitor;
    readonly limiterMonitor: LimiterMonitor;
    readonly commits: CommitMonitor;
    readonly bans: { readonly count: number };
    /** The number of writes that wait for the next transaction. */
    readonly commitQueueLength: () => number;
    /** The number of queries that run or wait, if the database has a queue. */
    readonly queueLength?: () => number;
    /** `queueLength` is the number of decisions that wait, if the rate limiter has a queue. */
    readonly rateLimiter: { readonly queueLength?: number };
    readonly sqliteLog?: SqliteLogMonitor;
    /** The free space on the disk of SQLite. */
    readonly freeBytes?: () => number;
    readonly petJson: { readonly cacheStatistics?: CacheStatistics };
    readonly clockWatch: { readonly aheadMs: number | undefined };
  };
  readonly servers: { list(): readonly ServerState[] };
}

type MetricSources = MetricsOptions & Pick<AppMetrics, "eventLoopDelay">;

interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /**
   * The labels by name, each with a description of its values. Every label has few values, and none identifies a client
   * or its address.
   */
  readonly labels: Readonly<Record<string, string>>;
  /** Reads the values. A metric without labels has one value, or none if the system does not report it. */
  readonly read: (sources: MetricSources) => Sample["value"] | undefined | readonly Sample[];
}

const metricOf =
  (type: MetricDefinition["type"]) =>
  (
    help: string,
    read: MetricDefinition["read"],
    labels: MetricDefinition["labels"] = {},
  ): MetricDefinition => ({ type, help, read, labels });
const counter = metricOf("counter");
const gauge = metricOf("gauge");
const histogram = metricOf("histogram");

const statistic =
  (name: keyof ServerStatistics) =>
  ({ server }: MetricSources) =>
    server.statistics[name];

const OPERATION = "the operation, `none` (no operation was found), `page` (outside `/v1`) or `health`";
const RESULT =
  "`hit` or `miss` of a cache; `delivered`, `failed` or `skipped` of the webhook; `exported` or `dropped` of tracing";
const ENGINE_LABELS = {
  engine: "`SQLite`, `PostgreSQL` or `memory`",
  role: "`database` or `rate_limiter`",
};

/**
 * The table of metrics. The exposition, the documentation and the tests of dashboard and alerts derive from it. Names
 * and units follow https://prometheus.io/docs/practices/naming.
 */
export const METRICS: Readonly<Record<string, MetricDefinition>> = {
  petstore_build_info: gauge(
    "Always 1. The labels describe what is running.",
    ({ version, environment }) => [{ labels: { version, runtime: Bun.version, environment }, value: 1 }],
    {
      version: "the version of Petstore",
      runtime: "the version of Bun",
      environment: "`production` or `staging`",
    },
  ),
  petstore_servers_differing_settings: gauge(
    "Servers whose version or settings differ from those of most others.",
    ({ servers }) => differingSettings(servers.list()).size,
  ),
  petstore_draining: gauge("1 while the server drains before it stops.", ({ server }) =>
    Number(server.isShuttingDown),
  ),

  petstore_http_requests_total: counter(
    "Responses to requests, those to malformed requests included.",
    responseSamples,
    { operation: OPERATION, status: "the status code" },
  ),
  petstore_http_request_duration_seconds: histogram(
    "Time from the head of a request to its response, without sending it.",
    ({ requests }) =>
      requests
        .byOperation()
        .map(([operation, { durations }]) => ({ labels: { operation }, value: durations })),
    { operation: OPERATION },
  ),
  petstore_http_connections: gauge("Open connections.", statistic("connections")),
  petstore_http_max_connections: gauge(
    "The largest number of open connections.",
    ({ server }) => server.maxConnections,
  ),
  petstore_http_connections_accepted_total: counter("Connections that were accepted.", statistic("accepted")),
  petstore_http_connections_rejected_total: counter(
    "Connections that were closed at once because a maximum was reached.",
    statistic("rejected"),
  ),
  petstore_http_connections_evicted_total: counter(
    "Idle or slow connections that were closed for newer ones.",
    statistic("evicted"),
  ),
  petstore_http_received_bytes_total: counter("Bytes of requests, without TLS.", statistic("bytesReceived")),
  petstore_http_sent_bytes_total: counter("Bytes of responses, without TLS.", statistic("bytesSent")),
  petstore_http_queue_length: gauge(
    "Connections whose requests wait for others in this process.",
    statistic("queueLength"),
  ),

  petstore_rate_limit_decisions_total: counter(
    "Decisions of the rate limiter.",
    ({ requests }) =>
      Object.entries(requests.decisions).flatMap(([plan, counts]) =>
        Object.entries(counts)
          .filter(([outcome]) => plan !== "anonymous" || outcome !== "banned")
          .map(([outcome, value]) => ({ labels: { plan, outcome }, value })),
      ),
    {
      plan: "the key's plan, or `anonymous` for an address without a valid key",
      outcome: "`allowed`, `limited` or `banned`",
    },
  ),
  petstore_bans_total: counter("Bans that this server decided.", ({ adapters }) => adapters.bans.count),
  petstore_authentication_failures_total: counter(
    "Requests of the API without a valid key.",
    ({ requests }) =>
      Object.entries(requests.failures).map(([reason, value]) => ({ labels: { reason }, value })),
    {
      reason: `\`${AUTH_FAILURES.join("`, `")}\` or \`unavailable\``,
    },
  ),
  petstore_key_lookup_queue_length: gauge(
    "Lookups of unknown keys that wait.",
    ({ authenticator }) => authenticator.lookupQueueLength,
  ),
  petstore_cache_requests_total: counter("Requests to caches.", cacheSamples, {
    cache: "`keys`, `responses` or `pets` (the last two with SQLite only)",
    result: RESULT,
  }),

  petstore_engine_up: gauge(
    "1 while the engine is available.",
    ({ adapters }) => engineSamples(adapters, ({ isAvailable }) => Number(isAvailable)),
    ENGINE_LABELS,
  ),
  petstore_commits_wait_for_standby: gauge(
    "1 while commits of PostgreSQL wait for a synchronous standby that is away, so that writes get 503.",
    ({ adapters: { database } }) =>
      database.engine === "PostgreSQL" ? Number(database.waitsForStandby) : undefined,
  ),
  petstore_engine_request_duration_seconds: histogram(
    "Time of a query or transaction (PostgreSQL), of writes (SQLite), or of decisions of the rate limiter (PostgreSQL).",
    ({ adapters }) =>
      engineSamples(adapters, ({ engine, durations }) => (engine === "memory" ? [] : durations)),
    ENGINE_LABELS,
  ),
  petstore_engine_queue_length: gauge(
    "Queries that run or wait, and decisions of the rate limiter that wait (PostgreSQL).",
    ({ adapters }) => {
      const { queueLength: ofDatabase = () => 0, rateLimiter } = adapters;
      const lengths = { database: ofDatabase(), rate_limiter: rateLimiter.queueLength ?? 0 };
      return engineSamples(adapters, ({ engine }, role) => (engine === "memory" ? [] : lengths[role]));
    },
    ENGINE_LABELS,
  ),
  petstore_group_commit_writes: histogram(
    "Writes that shared a transaction.",
    ({ adapters }) => adapters.commits.sizes,
  ),
  petstore_group_commit_duration_seconds: histogram(
    "Time of such a transaction, until it was on disk.",
    ({ adapters }) => adapters.commits.durations,
  ),
  petstore_group_commit_queue_length: gauge("Writes that wait for the next transaction.", ({ adapters }) =>
    adapters.commitQueueLength(),
  ),

  petstore_sqlite_sync_duration_seconds: histogram(
    "Time that the disk took to confirm the log of SQLite. Writes wait for it, and nothing else does.",
    ({ adapters }) => adapters.sqliteLog?.syncs,
  ),
  petstore_sqlite_log_bytes: gauge(
    "Length of the log of SQLite, which starts anew at 16 MB.",
    ({ adapters }) => adapters.sqliteLog?.bytes(),
  ),

  petstore_webhook_deliveries_total: counter(
    "Attempts to send audit entries to the webhook.",
    ({ webhook }) =>
      Object.entries(webhook?.counts ?? {}).map(([result, value]) => ({ labels: { result }, value })),
    { result: RESULT },
  ),
  petstore_webhook_waiting_entries: gauge(
    "Audit entries that wait for the webhook, at most 1,000, on the server that delivers.",
    ({ webhook }) => webhook?.waiting?.count,
  ),
  petstore_webhook_oldest_waiting_seconds: gauge(
    "The age of the oldest of them.",
    ({ webhook, clock }) =>
      webhook?.waiting && Math.max(0, clock.now() - (webhook.waiting.oldestAt ?? Infinity)) / 1_000,
  ),

  petstore_traced_requests_total: counter(
    "Requests whose spans were exported or dropped.",
    ({ tracer }) =>
      Object.entries(tracer?.counts ?? {}).map(([result, value]) => ({ labels: { result }, value })),
    { result: RESULT },
  ),

  petstore_disk_free_bytes: gauge("Free space on the disk of SQLite.", ({ adapters }) =>
    adapters.freeBytes?.(),
  ),

  petstore_last_backup_timestamp_seconds: gauge(
    "When `petstore backup` made the last backup, as Unix time.",
    ({ lastBackup: { at } }) => at && at / 1_000,
  ),
  petstore_tls_certificate_expiry_timestamp_seconds: gauge(
    "When the certificate of the server expires, as Unix time.",
    ({ server: { tlsCertificate } }) =>
      tlsCertificate && new X509Certificate(tlsCertificate.cert).validToDate.getTime() / 1_000,
  ),
  petstore_clock_ahead_seconds: gauge(
    "The clock of the server minus that of PostgreSQL.",
    ({ adapters: { clockWatch } }) =>
      clockWatch.aheadMs === undefined ? undefined : clockWatch.aheadMs / 1_000,
  ),
  petstore_log_lines_total: counter(
    "Lines of the log.",
    ({ log }) => Object.entries(log.lines).map(([level, value]) => ({ labels: { level }, value })),
    { level: "`info`, `warn` or `error`" },
  ),

  petstore_event_loop_delay_seconds: histogram(
    "How late a timer fired, measured every 20 ms.",
    ({ eventLoopDelay }) => eventLoopDelay.seconds,
  ),
  petstore_event_loop_delay_max_seconds: gauge(
    "The longest such delay in the last 30 to 60 seconds.",
    ({ eventLoopDelay }) => eventLoopDelay.longestSeconds,
  ),

  process_cpu_seconds_total: counter("CPU time of the process.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000_000;
  }),
  process_resident_memory_bytes: gauge("Resident memory of the process.", () => process.memoryUsage.rss()),
  process_start_time_seconds: gauge(
    "When the process started, as Unix time.",
    () => performance.timeOrigin / 1000,
  ),
  process_open_fds: gauge("Open file descriptors.", openDescriptors),
  process_max_fds: gauge("The limit of open file descriptors.", () => {
    const max = maxDescriptors();
    return max === Infinity ? undefined : max;
  }),
};

function responseSamples({ requests }: MetricSources): Sample[] {
  return requests
    .byOperation()
    .flatMap(([operation, { responses }]) =>
      [...responses]
        .toSorted(([a], [b]) => a - b)
        .map(([status, value]) => ({ labels: { operation, status: `${status}` }, value })),
    );
}

function cacheSamples({ authenticator, adapters, responseCacheStatistics }: MetricSources): Sample[] {
  const { cacheStatistics: pets } = adapters.petJson;
  const caches = {
    keys: authenticator.cacheStatistics,
    ...(pets && { responses: responseCacheStatistics, pets }),
  };
  return Object.entries(caches).flatMap(([cache, { hits, misses }]) => [
    { labels: { cache, result: "hit" }, value: hits },
    { labels: { cache, result: "miss" }, value: misses },
  ]);
}

function engineSamples(
  { database, limiterMonitor }: MetricSources["adapters"],
  read: (monitor: EngineMonitor, role: "database" | "rate_limiter") => Sample["value"] | [],
): Sample[] {
  const roles = [
    ["database", database],
    ["rate_limiter", limiterMonitor],
  ] as const;
  return roles.flatMap(([role, monitor]) => {
    const value = read(monitor, role);
    return Array.isArray(value) ? [] : [{ labels: { engine: monitor.engine, role }, value }];
  });
}

const DESCRIPTORS = "/proc/self/fd";

/**
 * The number of open file descriptors, which Linux 6.2 and later report as the size of the directory. Listing 20,000 of
 * them would take 10 ms.
 */
function openDescriptors(): number | undefined {
  try {
    return statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length;
  } catch {
    return undefined;
  }
}

const REUSED_MS = 1_000;

/** The metrics of a server, counted since the construction of this object. */
export class AppMetrics {
  readonly requests: RequestMetrics;
  readonly eventLoopDelay = new EventLoopDelay();
  readonly live: LiveSeries;
  #scraped: { readonly text: string; readonly at: number } | undefined;

  constructor(private readonly options: MetricsOptions) {
    const { clock, server, requests } = options;
    this.requests = requests;
    this.live = new LiveSeries({
      requests,
      connections: () => server.statistics.connections,
      now: () => clock.now(),
    });
    this.eventLoopDelay.start();
    this.live.start();
  }

  /** How far the clock is ahead of that of the database; null if that is not known. */
  get clockAheadMs(): number | null {
    return this.options.adapters.clockWatch.aheadMs ?? null;
  }

  /** The text for Prometheus. It may be a second old: making it takes milliseconds, in which clients wait. */
  scrape(): string {
    const [last, now] = [this.#scraped, this.options.clock.steadyNow()];
    if (last && now - last.at < REUSED_MS) return last.text;
    this.#scraped = { text: this.expose(), at: now };
    return this.#scraped.text;
  }

  expose(): string {
    const sources = { ...this.options, eventLoopDelay: this.eventLoopDelay };
    const families = Object.entries(METRICS).map(([name, { type, help, read }]) => {
      const value = read(sources) ?? [];
      return { name, type, help, samples: Array.isArray(value) ? value : [{ value }] };
    });
    return formatMetrics(families);
  }

  close(): void {
    this.eventLoopDelay.stop();
    this.live.stop();
  }
}
