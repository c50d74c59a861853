export const LOG_FORMATS = ["json", "text"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** In ascending order of importance. */
export const LOG_LEVELS = ["info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogEvent {
  /** An error needs an operator, a warning may need one. */
  readonly level: LogLevel;
  readonly message: string;
  /** The names of its details. */
  readonly fields?: readonly string[];
}

/** Every event of the log. Programs of operators look for these names and fields, so both stay as they are. */
export const LOG_EVENTS = {
  "server.started": {
    level: "info",
    message: "the server accepts requests",
    fields: ["version", "environment", "url", "data", "rateLimits", "pid"],
  },
  "server.stopping": {
    level: "info",
    message: "a stop signal arrived; finishing the requests in progress",
    fields: ["signal"],
  },
  "server.stopped": { level: "info", message: "the server has stopped", fields: ["afterMs"] },
  "server.close-failed": {
    level: "error",
    message: "a database or the rate limiter cannot be closed",
    fields: ["error"],
  },
  "server.overloaded": {
    level: "warn",
    message: "a queue is full, so a request got 503",
    fields: ["requestId", "where", "reason", "suppressed"],
  },
  "process.uncaught-error": {
    level: "error",
    message: "nothing caught an error, so the process ends",
    fields: ["error"],
  },

  "request.failed": {
    level: "error",
    message: "an internal error occurred, so a request got 500",
    fields: ["requestId", "where", "error", "suppressed"],
  },
  "request.unavailable": {
    level: "warn",
    message: "a request could not be executed in time, so it got 503",
    fields: ["requestId", "where", "reason", "suppressed"],
  },
  "request.unsupported": {
    level: "info",
    message: "a client sent HTTP that the server does not support",
    fields: ["requestId", "status", "suppressed"],
  },
  "authentication.flood": {
    level: "warn",
    message: "many requests have no valid API key; at most one event a minute",
    fields: ["requests", "address", "requestsOfAddress"],
  },

  "connection.failed": { level: "error", message: "a connection failed", fields: ["error"] },
  "connections.limit-lowered": {
    level: "warn",
    message: "--max-connections is lowered to what the limit of open files allows",
    fields: ["maxConnections"],
  },
  "connections.limit-reached": {
    level: "warn",
    message: "--max-connections is reached; new connections replace idle ones or are closed",
  },
  "connections.limit-ended": {
    level: "info",
    message: "connections are below --max-connections again",
    fields: ["evicted", "rejected"],
  },
  "connections.address-limit-reached": {
    level: "warn",
    message: "an address has reached --max-connections-per-address; its new connections are closed",
    fields: ["address"],
  },
  "connections.address-limit-ended": {
    level: "info",
    message: "no address reaches --max-connections-per-address any more",
    fields: ["rejected"],
  },
  "connections.plain-text": {
    level: "warn",
    message:
      "clients send their API keys in plain text; serve HTTPS with --tls-cert and --tls-key, or put a proxy that does in front and name it with --trust-proxy",
    fields: ["host"],
  },
  "tls.certificate-changed": {
    level: "info",
    message: "new connections get the new TLS certificate",
    fields: ["file"],
  },
  "tls.certificate-invalid": {
    level: "error",
    message: "the new TLS certificate cannot be used; the one before stays",
    fields: ["error"],
  },

  "database.unavailable": {
    level: "warn",
    message: "the database is unavailable; requests that need it get 503 until it is available again",
    fields: ["database", "cause"],
  },
  "database.available": {
    level: "info",
    message: "the database is available again",
    fields: ["database", "afterMs"],
  },
  "database.plain-text": {
    level: "warn",
    message:
      "the connection to PostgreSQL is in plain text, or may fall back to it; add ?sslmode=verify-full to its URL",
  },
  "valkey.unavailable": {
    level: "warn",
    message: "Valkey is unavailable; each server applies the rate limits on its own",
    fields: ["cause"],
  },
  "valkey.rejects-commands": {
    level: "warn",
    message:
      "Valkey rejects commands, so its configuration is wrong; each server applies the rate limits on its own",
    fields: ["cause"],
  },
  "valkey.available": { level: "info", message: "Valkey is available again; rate limits are shared" },
  "valkey.plain-text": {
    level: "warn",
    message: "the connection to Valkey is in plain text; use rediss:// in its URL",
  },
  "rate-limits.not-shared": {
    level: "warn",
    message: "each server applies the rate limits on its own; set --limits-url to share them",
  },
  "usage.in-memory": {
    level: "warn",
    message: "another server saves its quotas in this directory; this server keeps quotas in memory only",
    fields: ["folder"],
  },
  "usage.save-failed": {
    level: "warn",
    message: "used quotas cannot be saved; trying again",
    fields: ["error"],
  },
  "usage.saved-again": { level: "info", message: "used quotas can be saved again" },
  "usage-history.save-failed": {
    level: "warn",
    message: "the usage history cannot be saved; trying again",
    fields: ["error"],
  },
  "usage-history.saved-again": {
    level: "info",
    message: "the usage history can be saved again",
    fields: ["lostRequests"],
  },
  "usage-history.incomplete": {
    level: "error",
    message: "the last requests are missing in the usage history",
    fields: ["error"],
  },

  "key.first-created": { level: "info", message: "created the first API key", fields: ["file"] },
  "key.changed": {
    level: "info",
    message: "an API key was created or changed, and this server applies the change",
    fields: ["keyId", "plan", "state", "expiresAt"],
  },
  "key.many-changed": {
    level: "info",
    message: "so many API keys were changed at once that the others have no event of their own",
    fields: ["others"],
  },
  "key.banned": {
    level: "warn",
    message: "an API key is banned for ignoring its rate limit",
    fields: ["keyId", "bannedAt", "bannedUntil"],
  },
  "key.unbanned": {
    level: "info",
    message: "an operator ended the ban of an API key",
    fields: ["keyId"],
  },
  "key.unban-failed": {
    level: "error",
    message: "an API key cannot be unbanned; trying again",
    fields: ["keyId", "error"],
  },
  "key-changes.unreadable": {
    level: "warn",
    message: "changes of API keys cannot be read; trying again",
    fields: ["error"],
  },
  "key-changes.readable": { level: "info", message: "changes of API keys can be read again" },

  "admin.started": {
    level: "info",
    message: "the listener for operators accepts requests",
    fields: ["url", "tokenFile"],
  },
  "admin.plain-text": {
    level: "warn",
    message:
      "operators send the admin token in plain text; serve HTTPS with --tls-cert and --tls-key, or listen on a loopback address",
    fields: ["host"],
  },
  "admin.sign-in-failed": {
    level: "warn",
    message: "an operator or a program sent a wrong admin token",
    fields: ["address", "unrecorded"],
  },
  "admin.token-replaced": {
    level: "info",
    message: "the admin token was replaced, and all sessions have ended",
  },
  "admin.token-unreadable": {
    level: "warn",
    message: "the file of the admin token cannot be used; the token before stays",
    fields: ["file", "error"],
  },
  "admin.token-not-saved": {
    level: "warn",
    message:
      "the admin token cannot be kept in the data directory, so it is lost when the server stops; set PETSTORE_ADMIN_TOKEN",
    fields: ["error"],
  },
  "audit.write-failed": {
    level: "error",
    message: "an entry of the audit trail cannot be written",
    fields: ["action", "error"],
  },
  "audit.delete-failed": {
    level: "error",
    message: "old entries of the audit trail cannot be deleted; the server tries again in 10 minutes",
    fields: ["error"],
  },
  "audit.bans-lost": { level: "error", message: "bans are missing in the audit trail", fields: ["bans"] },

  "clock.changed": {
    level: "warn",
    message: "the system clock was changed; windows and bans keep their length",
    fields: ["byMs"],
  },
  "settings.save-failed": {
    level: "warn",
    message: "the settings cannot be saved, so petstore keys may show those of an earlier start",
    fields: ["error"],
  },
  "data-directory.made-private": {
    level: "info",
    message: "made files private that other users could read",
    fields: ["files"],
  },
  "data-directory.open-to-others": {
    level: "warn",
    message: "other users have access to the data directory; run chmod 700 on it",
    fields: ["directory", "mode"],
  },

  "access-log.failed": {
    level: "error",
    message: "the access log cannot be written; trying again",
    fields: ["file", "error"],
  },
  "access-log.recovered": {
    level: "info",
    message: "the access log can be written again",
    fields: ["file"],
  },
  "access-log.lines-dropped": {
    level: "warn",
    message: "the access log is written too slowly, so lines are missing in it",
    fields: ["file", "lines"],
  },
} as const satisfies Readonly<Record<string, LogEvent>>;

export type LogEventName = keyof typeof LOG_EVENTS;

type Events = typeof LOG_EVENTS;
type FieldOf<N extends LogEventName> = Events[N] extends { fields: readonly (infer F extends string)[] }
  ? F
  : never;

/** The details of an event: all of its fields. */
export type LogDetails<N extends LogEventName> = Readonly<Record<FieldOf<N>, unknown>>;

export type LogEventWithoutDetails = {
  [N in LogEventName]: FieldOf<N> extends never ? N : never;
}[LogEventName];
