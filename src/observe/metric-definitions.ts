export interface MetricDefinition {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** By name, what the values are. Every label has few values, and none tells a client or its address. */
  readonly labels?: Readonly<Record<string, string>>;
}

const OPERATION =
  "the operation, `none` (rejected before routing, or unknown path), `page` (outside `/v1`) or `health`";
const ENGINE = "`SQLite`, `PostgreSQL`, `memory` or `Valkey`";
const ROLE = "`database` or `rate_limiter`";

/**
 * The table of metrics. The exposition, the documentation and the tests of dashboard and alerts derive from it. Names
 * and units follow https://prometheus.io/docs/practices/naming.
 */
export const METRICS = {
  petstore_build_info: {
    type: "gauge",
    help: "Always 1. The labels tell what is running.",
    labels: { version: "of Petstore", runtime: "of Bun", environment: "`production` or `staging`" },
  },
  petstore_draining: { type: "gauge", help: "1 while the server drains before it stops." },

  petstore_http_requests_total: {
    type: "counter",
    help: "Responses to requests, those to malformed requests included.",
    labels: { operation: OPERATION, status: "the status code" },
  },
  petstore_http_request_duration_seconds: {
    type: "histogram",
    help: "Time from the head of a request to its response, without sending it.",
    labels: { operation: OPERATION },
  },
  petstore_http_connections: { type: "gauge", help: "Open connections." },
  petstore_http_max_connections: { type: "gauge", help: "The largest number of open connections." },
  petstore_http_connections_accepted_total: { type: "counter", help: "Connections that were accepted." },
  petstore_http_connections_rejected_total: {
    type: "counter",
    help: "Connections that were closed at once because a maximum was reached.",
  },
  petstore_http_connections_evicted_total: {
    type: "counter",
    help: "Idle or slow connections that were closed for newer ones.",
  },
  petstore_http_received_bytes_total: { type: "counter", help: "Bytes of requests, without TLS." },
  petstore_http_sent_bytes_total: { type: "counter", help: "Bytes of responses, without TLS." },
  petstore_http_queue_length: {
    type: "gauge",
    help: "Connections whose requests wait for others in this process.",
  },

  petstore_rate_limit_decisions_total: {
    type: "counter",
    help: "Decisions of the rate limiter.",
    labels: {
      plan: "the key's plan, or `anonymous` for an address without a valid key",
      outcome: "`allowed`, `limited` or `banned`",
    },
  },
  petstore_bans_total: { type: "counter", help: "Bans that this server decided." },
  petstore_authentication_failures_total: {
    type: "counter",
    help: "Requests of the API without a valid key.",
    labels: {
      reason:
        "`missing_api_key`, `invalid_api_key`, `disabled_api_key` or `unavailable` (the key could not be looked up)",
    },
  },
  petstore_key_lookup_queue_length: { type: "gauge", help: "Lookups of unknown keys that wait." },
  petstore_cache_requests_total: {
    type: "counter",
    help: "Requests to caches.",
    labels: {
      cache: "`keys`, `responses` or `pets` (the last two with SQLite only)",
      result: "`hit` or `miss`",
    },
  },

  petstore_engine_up: {
    type: "gauge",
    help: "1 while the engine is available.",
    labels: { engine: ENGINE, role: ROLE },
  },
  petstore_engine_request_duration_seconds: {
    type: "histogram",
    help: "Time of a query or transaction (PostgreSQL), a transaction of writes (SQLite), a batch of decisions (Valkey).",
    labels: { engine: ENGINE, role: ROLE },
  },
  petstore_engine_queue_length: {
    type: "gauge",
    help: "Queries that run or wait (PostgreSQL), decisions that wait (Valkey).",
    labels: { engine: ENGINE, role: ROLE },
  },
  petstore_group_commit_writes: { type: "histogram", help: "Writes that shared a transaction." },
  petstore_group_commit_duration_seconds: {
    type: "histogram",
    help: "Time of such a transaction, until it was on disk.",
  },
  petstore_group_commit_queue_length: { type: "gauge", help: "Writes that wait for the next transaction." },

  petstore_event_loop_delay_seconds: {
    type: "histogram",
    help: "How much later than asked a timer fired, every 20 ms.",
  },
  petstore_event_loop_delay_max_seconds: {
    type: "gauge",
    help: "The longest such delay of the last half minute to minute.",
  },

  process_cpu_seconds_total: { type: "counter", help: "CPU time of the process." },
  process_resident_memory_bytes: { type: "gauge", help: "Resident memory of the process." },
  process_start_time_seconds: { type: "gauge", help: "When the process started, as Unix time." },
  process_open_fds: { type: "gauge", help: "Open file descriptors." },
  process_max_fds: { type: "gauge", help: "The limit of open file descriptors." },
} as const satisfies Record<string, MetricDefinition>;

export type MetricName = keyof typeof METRICS;
