import type { Authenticator } from "../../auth/authenticator.ts";
import type { CacheStatistics } from "../../bounded-cache.ts";
import { ERRORS } from "../../petstore/errors.ts";
import { type PetstoreOperation, OPERATIONS } from "../../petstore/operations.ts";
import type { HttpServer } from "../../http1/index.ts";
import type { CommitMonitor, EngineMonitor } from "./engine-monitor.ts";
import type { EventLoopDelay } from "./event-loop-delay.ts";
import type { Sample, Samples } from "./exposition.ts";
import { readProcessMetrics } from "./process-metrics.ts";
import {
  FAILURE_REASONS,
  OPERATION_LABELS,
  type OperationLabel,
  OUTCOMES,
  PLAN_LABELS,
  type RequestMetrics,
} from "./request-metrics.ts";

/** Where the values come from. */
export interface MetricSources {
  readonly version: string;
  readonly environment: string;
  readonly requests: RequestMetrics;
  readonly eventLoopDelay: Pick<EventLoopDelay, "seconds" | "longestSeconds">;
  readonly server: Pick<HttpServer, "statistics" | "maxConnections" | "isShuttingDown">;
  readonly authenticator: Pick<Authenticator, "cacheStatistics" | "lookUpQueueLength">;
  readonly adapters: {
    readonly database: EngineMonitor;
    readonly limits: EngineMonitor;
    readonly commits: CommitMonitor;
    readonly petJson: { readonly cacheStatistics?: CacheStatistics };
  };
  readonly responseCache: CacheStatistics;
}

/** The values of all metrics now. */
export function collectSamples(sources: MetricSources): Samples {
  return {
    ...serverSamples(sources),
    ...requestSamples(sources.requests),
    ...cacheSamples(sources),
    ...engineSamples(sources.adapters),
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
const EXPECTED_STATUSES: ReadonlyMap<OperationLabel, readonly number[]> = new Map<OperationLabel, number[]>([
  ...(Object.entries(OPERATIONS) as [OperationLabel, PetstoreOperation][]).map(
    ([id, operation]) => [id, statusesOf(operation)] as const,
  ),
  ["none", [400, 401, 404, 405, 408, 429, 500, 503]],
  ["page", [200, 304, 404, 429]],
  ["health", [200, 503]],
]);

function statusesOf({ success, errors }: PetstoreOperation): number[] {
  const notModified = success.headers.includes("ETag") ? [304] : [];
  return [success.status, ...notModified, ...errors.map((code) => ERRORS[code].status), 500, 503];
}

function requestSamples(requests: RequestMetrics) {
  return {
    petstore_http_requests_total: OPERATION_LABELS.flatMap((operation) =>
      responseSamples(requests, operation),
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

function responseSamples(requests: RequestMetrics, operation: OperationLabel): Sample[] {
  const expected = EXPECTED_STATUSES.get(operation) ?? [];
  const statuses = [...new Set([...expected, ...requests.statusesOf(operation)])].toSorted((a, b) => a - b);
  return statuses.map((status) => ({
    labels: { operation, status: `${status}` },
    value: requests.responses(operation, status),
  }));
}

function cacheSamples({ authenticator, adapters, responseCache }: MetricSources) {
  const { cacheStatistics: pets } = adapters.petJson;
  return {
    petstore_key_lookup_queue_length: one(authenticator.lookUpQueueLength),
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

function engineSamples({ database, limits, commits }: MetricSources["adapters"]) {
  const engines = [
    { monitor: database, labels: { engine: database.engine, role: "database" } },
    { monitor: limits, labels: { engine: limits.engine, role: "rate_limiter" } },
  ];
  const servers = engines.filter(({ monitor }) => monitor.engine !== "memory");
  return {
    petstore_engine_up: engines.map(({ monitor, labels }) => ({
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
  const { cpuSeconds, residentBytes, startedAtSeconds, openDescriptors, maxDescriptors } =
    readProcessMetrics();
  return {
    process_cpu_seconds_total: one(cpuSeconds),
    process_resident_memory_bytes: one(residentBytes),
    process_start_time_seconds: one(startedAtSeconds),
    process_open_fds: openDescriptors === undefined ? [] : one(openDescriptors),
    process_max_fds: maxDescriptors === undefined ? [] : one(maxDescriptors),
  };
}

function one(value: Sample["value"]): Sample[] {
  return [{ value }];
}
