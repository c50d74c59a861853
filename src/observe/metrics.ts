import { CacheStatistics } from "../bounded-cache.ts";
import type { Clock } from "../domain/ports.ts";
import { EventLoopDelay, type CommitMonitor, type AdapterMonitor } from "./monitors.ts";
import { CONTENT_TYPES, formatFor, formatMetrics, type Sample, type Samples } from "./exposition.ts";
import { LiveSeries } from "./live-series.ts";
import {
  RequestMetrics,
  FAILURE_REASONS,
  OPERATION_LABELS,
  type OperationLabel,
  OUTCOMES,
  PLAN_LABELS,
} from "./request-metrics.ts";
import type { OperationId } from "../domain/usage-history.ts";
import { type HttpServer, maxDescriptors } from "../http1/index.ts";
import { readdirSync, statSync } from "node:fs";

interface MetricsOptions {
  readonly version: string;
  readonly environment: string;
  readonly server: Pick<HttpServer, "statistics" | "maxConnections" | "isShuttingDown">;
  /** Of the operations' responses. */
  readonly statuses: ReadonlyMap<OperationId, readonly number[]>;
  readonly authenticator: { readonly cacheStatistics: CacheStatistics; readonly lookupQueueLength: number };
  readonly adapters: {
    readonly database: AdapterMonitor;
    readonly limits: AdapterMonitor;
    readonly commits: CommitMonitor;
    readonly petJson: { readonly cacheStatistics?: CacheStatistics };
  };
}

interface Exposition {
  readonly contentType: string;
  readonly body: string;
}

/** The metrics of a server. */
export interface AppMetrics {
  readonly requests: RequestMetrics;
  readonly responseCache: CacheStatistics;
  readonly live: LiveSeries;
  /** The response to a scrape with this `Accept` header. */
  expose(accept: string | null): Exposition;
  stop(): void;
}

/** Counts from now on. */
export function startMetrics({
  clock,
  isApiPath,
  ...options
}: MetricsOptions & {
  readonly clock: Pick<Clock, "now">;
  readonly isApiPath: (path: string) => boolean;
}): AppMetrics {
  const requests = new RequestMetrics(isApiPath);
  const responseCache = new CacheStatistics();
  const eventLoopDelay = new EventLoopDelay();
  const live = new LiveSeries({
    requests,
    connections: () => options.server.statistics.connections,
    now: () => clock.now(),
  });
  const sources = { ...options, requests, responseCache, eventLoopDelay };
  eventLoopDelay.start();
  live.start();
  return {
    requests,
    responseCache,
    live,
    expose(accept) {
      const format = formatFor(accept);
      return { contentType: CONTENT_TYPES[format], body: formatMetrics(collectSamples(sources), format) };
    },
    stop() {
      eventLoopDelay.stop();
      live.stop();
    },
  };
}

/** Where the values come from. */
interface MetricSources extends MetricsOptions {
  readonly requests: RequestMetrics;
  readonly eventLoopDelay: EventLoopDelay;
  readonly responseCache: CacheStatistics;
}

/** The values of all metrics now. */
export function collectSamples(sources: MetricSources): Samples {
  return {
    ...serverSamples(sources),
    ...requestSamples(sources),
    ...cacheSamples(sources),
    ...adapterSamples(sources.adapters),
    petstore_event_loop_delay_seconds: one(sources.eventLoopDelay.seconds),
    petstore_event_loop_delay_max_seconds: one(sources.eventLoopDelay.longestSeconds),
    ...processSamples(),
  };
}

function serverSamples({ server, version, environment }: MetricSources) {
  const { statistics, maxConnections, isShuttingDown } = server;
  return {
    petstore_build_info: [{ labels: { version, runtime: Bun.version, environment }, value: 1 }],
    petstore_draining: one(isShuttingDown ? 1 : 0),
    petstore_http_connections: one(statistics.connections),
    petstore_http_max_connections: one(maxConnections),
    petstore_http_connections_accepted_total: one(statistics.accepted),
    petstore_http_connections_rejected_total: one(statistics.rejected),
    petstore_http_connections_evicted_total: one(statistics.evicted),
    petstore_http_received_bytes_total: one(statistics.bytesReceived),
    petstore_http_sent_bytes_total: one(statistics.bytesSent),
    petstore_http_queue_length: one(statistics.queueLength),
  };
}

/** Statuses whose series exist from the start: of a series that begins at 1, `rate` and `increase` miss the 1. */
function expectedStatuses(
  statuses: MetricSources["statuses"],
): ReadonlyMap<OperationLabel, readonly number[]> {
  return new Map<OperationLabel, readonly number[]>([
    ...statuses,
    ["none", [400, 401, 404, 405, 408, 429, 500, 503]],
    ["page", [200, 304, 404, 429]],
    ["health", [200, 503]],
  ]);
}

function requestSamples({ requests, statuses }: MetricSources) {
  const expected = expectedStatuses(statuses);
  return {
    petstore_http_requests_total: OPERATION_LABELS.flatMap((operation) =>
      responseSamples(requests, operation, expected.get(operation)),
    ),
    petstore_http_request_duration_seconds: OPERATION_LABELS.flatMap((operation, i) => {
      const value = requests.durations[i];
      return value ? [{ labels: { operation }, value }] : [];
    }),
    petstore_rate_limit_decisions_total: PLAN_LABELS.flatMap((plan) =>
      OUTCOMES.filter((outcome) => plan !== "anonymous" || outcome !== "banned").map((outcome) => ({
        labels: { plan, outcome },
        value: requests.decisions(plan, outcome),
      })),
    ),
    petstore_bans_total: one(requests.bans),
    petstore_authentication_failures_total: FAILURE_REASONS.map((reason) => ({
      labels: { reason },
      value: requests.failures(reason),
    })),
  };
}

function responseSamples(
  requests: RequestMetrics,
  operation: OperationLabel,
  expected: readonly number[] = [],
): Sample[] {
  const statuses = [...new Set([...expected, ...requests.statusesOf(operation)])].toSorted((a, b) => a - b);
  return statuses.map((status) => ({
    labels: { operation, status: `${status}` },
    value: requests.responses(operation, status),
  }));
}

function cacheSamples({ authenticator, adapters, responseCache }: MetricSources) {
  const { cacheStatistics: pets } = adapters.petJson;
  return {
    petstore_key_lookup_queue_length: one(authenticator.lookupQueueLength),
    petstore_cache_requests_total: [
      ...hitsAndMisses("keys", authenticator.cacheStatistics),
      ...(pets ? [...hitsAndMisses("responses", responseCache), ...hitsAndMisses("pets", pets)] : []),
    ],
  };
}

function hitsAndMisses(cache: string, { hits, misses }: CacheStatistics): Sample[] {
  return [
    { labels: { cache, result: "hit" }, value: hits },
    { labels: { cache, result: "miss" }, value: misses },
  ];
}

function adapterSamples({ database, limits, commits }: MetricSources["adapters"]) {
  const all = [
    { monitor: database, labels: { engine: database.name, role: "database" } },
    { monitor: limits, labels: { engine: limits.name, role: "rate_limiter" } },
  ];
  const servers = all.filter(({ monitor }) => monitor.name !== "memory");
  return {
    petstore_engine_up: all.map(({ monitor, labels }) => ({
      labels,
      value: monitor.isAvailable ? 1 : 0,
    })),
    petstore_engine_request_duration_seconds: servers.map(({ monitor, labels }) => ({
      labels,
      value: monitor.durations,
    })),
    petstore_engine_queue_length: servers.map(({ monitor, labels }) => ({
      labels,
      value: monitor.queueLength(),
    })),
    petstore_group_commit_writes: one(commits.sizes),
    petstore_group_commit_duration_seconds: one(commits.durations),
    petstore_group_commit_queue_length: one(commits.queueLength()),
  };
}

function processSamples() {
  const { user, system } = process.cpuUsage();
  const [open, max] = [openDescriptors(), maxDescriptors()];
  return {
    process_cpu_seconds_total: one((user + system) / 1_000_000),
    process_resident_memory_bytes: one(process.memoryUsage.rss()),
    process_start_time_seconds: one(performance.timeOrigin / 1000),
    process_open_fds: open === undefined ? [] : one(open),
    process_max_fds: max === undefined || max === Infinity ? [] : one(max),
  };
}

const DESCRIPTORS = "/proc/self/fd";

/** Linux 6.2 and later have the number as the directory's size. Listing 20,000 of them takes 10 ms. */
function openDescriptors(): number | undefined {
  try {
    return statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length;
  } catch {
    return undefined;
  }
}

function one(value: Sample["value"]): Sample[] {
  return [{ value }];
}
