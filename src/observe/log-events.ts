import { AUDIT_ACTIONS, type AuditAction } from "../domain/audit.ts";
import { CLOCK_TOLERANCE_MS } from "../domain/clock-difference.ts";
import type { LogLevel } from "../domain/logging.ts";
import { MAX_HANDSHAKES_PER_SECOND } from "../http1/index.ts";

export interface LogEvent<Field extends string = string> {
  /** An error needs an operator; a warning may need one. */
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: readonly Field[];
}

const eventOf =
  (level: LogLevel) =>
  <Field extends string = never>(message: string, fields: readonly Field[] = []): LogEvent<Field> => ({
    level,
    message,
    fields,
  });
const info = eventOf("info");
const warn = eventOf("warn");
const error = eventOf("error");

const UNAVAILABLE_FIELDS = ["requestId", "traceId", "where", "reason", "suppressed"] as const;

/** The problem of each connection in plain text, and its remedy. */
export const PLAIN_TEXT_WARNINGS: Readonly<
  Record<"connections" | "database" | "admin", readonly [problem: string, remedy: string]>
> = {
  connections: [
    "clients send API keys in plain text",
    "use --tls-cert and --tls-key, or a proxy with TLS and --trust-proxy",
  ],
  database: ["PostgreSQL is or may be used in plain text", "add ?sslmode=verify-full to --database-url"],
  admin: [
    "operators send tokens in plain text",
    "use --tls-cert and --tls-key, or a loopback --admin-address",
  ],
};

const AUDIT_FIELDS = ["id", "at", "actor", "target", "before", "after"] as const;

/** The events of the audit trail, one for each action. */
const AUDIT_EVENTS = Object.fromEntries(
  AUDIT_ACTIONS.map((action) => [
    `audit.${action}`,
    info("this server has added an entry to the audit trail", AUDIT_FIELDS),
  ]),
  // Every action has an event.
) as Readonly<Record<`audit.${AuditAction}`, LogEvent<(typeof AUDIT_FIELDS)[number]>>>;

/**
 * Every event of the log: its message, then the names of its fields. The names of events and fields never change,
 * because programs of operators search for them.
 */
export const LOG_EVENTS = {
  "server.started": info("the server accepts requests", [
    "version",
    "environment",
    "url",
    "data",
    "rateLimits",
    "pid",
  ]),
  "server.stopping": info("a stop signal arrived; finishing the requests in progress", ["signal"]),
  "server.stopped": info("the server has stopped", ["afterMs"]),
  "server.close-failed": error("a database or the rate limiter cannot be closed", ["error"]),
  "server.cannot-answer": warn(
    "questions of other servers and of commands cannot be answered; trying again",
    ["error"],
  ),
  "server.overloaded": warn("a queue is full, so a request got 503", UNAVAILABLE_FIELDS),
  "process.uncaught-error": error("nothing caught an error, so the process ends", ["error"]),

  "request.failed": error("an internal error occurred, so a request got 500", [
    "requestId",
    "traceId",
    "where",
    "error",
    "suppressed",
  ]),
  "request.unavailable": warn("a request could not be executed in time, so it got 503", UNAVAILABLE_FIELDS),
  "request.unsupported": info("a client sent HTTP that the server does not support", [
    "requestId",
    "status",
    "suppressed",
  ]),
  "authentication.flood": warn("many requests have no valid API key; at most one event a minute", [
    "requests",
    "address",
    "requestsOfAddress",
  ]),

  "connection.failed": error("a connection failed", ["error"]),
  "connections.limit-lowered": warn("--max-connections is lowered to what the limit of open files allows", [
    "maxConnections",
  ]),
  "connections.limit-reached": warn(
    "--max-connections is reached; new connections replace idle ones or are closed",
  ),
  "connections.limit-ended": info("connections are below --max-connections again", ["evicted", "rejected"]),
  "connections.address-limit-reached": warn(
    "an address has reached --max-connections-per-address; its new connections are closed",
    ["address"],
  ),
  "connections.address-limit-ended": info("no address reaches --max-connections-per-address now", [
    "rejected",
  ]),
  "connections.handshake-limit-reached": warn(
    `an address opens more than ${MAX_HANDSHAKES_PER_SECOND} TLS connections a second; those beyond it are closed`,
    ["address"],
  ),
  "connections.handshake-limit-ended": info(
    `no address opens more than ${MAX_HANDSHAKES_PER_SECOND} TLS connections a second now`,
    ["rejected"],
  ),
  "connections.plain-text": warn(PLAIN_TEXT_WARNINGS.connections.join("; "), ["host"]),
  "tls.certificate-changed": info("new connections get the new TLS certificate", ["file"]),
  "tls.certificate-incomplete": warn(
    "the new TLS certificate is unusable, perhaps because its other file follows; the previous one stays in use",
    ["error"],
  ),
  "tls.certificate-invalid": error("the new TLS certificate is unusable; the previous one stays in use", [
    "error",
  ]),

  "tls.certificate-expires": warn("the TLS certificate expires within 14 days; renew it", [
    "file",
    "validTo",
  ]),
  "tls.certificate-expired": error("the TLS certificate has expired, and clients reject it; renew it", [
    "file",
    "validTo",
  ]),
  "tls.certificate-not-yet-valid": error(
    "the TLS certificate is not valid yet, and clients reject it; check the clock, or wait until then",
    ["file", "validFrom"],
  ),

  "database.unavailable": error(
    "the database is unavailable; requests that need it get 503 until it is available again",
    ["database", "address", "cause"],
  ),
  "database.available": info("the database is available again", ["database", "afterMs"]),
  "database.primary-unknown": error(
    "the server starts when it knows which server of PostgreSQL is the primary",
    ["cause"],
  ),
  "database.waits-for-standby": error(
    "commits wait for a synchronous standby, so writes get 503; start it, or name one that runs in synchronous_standby_names",
    ["synchronousStandbyNames", "connectedStandbys"],
  ),
  "database.commits-again": info("commits no longer wait for a standby", ["afterMs"]),
  "database.migrated": info("the tables of an earlier release were migrated", ["from", "to"]),
  "database.changes-lost": error("the failover lost changes of API keys; every key is looked up again", [
    "revision",
    "revisionBefore",
  ]),
  "database.lost": error(
    "the database was deleted or replaced; the server has saved it elsewhere and stops",
    ["file", "savedTo"],
  ),
  "database.rescue-failed": error(
    "the deleted database cannot be saved elsewhere, and only this process has it; trying again",
    ["file", "pid", "error"],
  ),
  "database.sync-failed": error(
    "the disk did not confirm what was written, so nobody knows what is on it, and the server stops",
    ["file", "error"],
  ),
  "database.checkpoint-failed": warn(
    "the log of the database cannot be copied to the database, so it grows; trying again",
    ["file", "error"],
  ),
  "database.plain-text": warn(PLAIN_TEXT_WARNINGS.database.join("; ")),
  "quotas.save-failed": error("used quotas cannot be saved; trying again", ["error"]),
  "quotas.rewritten": warn("the limits database was deleted or replaced, and was written anew", ["file"]),
  "quotas.saved-again": info("used quotas can be saved again"),
  "usage-history.save-failed": warn("the usage history cannot be saved; trying again", ["error"]),
  "usage-history.requests-lost": error(
    "too many keys were used in an outage; requests are missing in the usage history",
    ["lostRequests"],
  ),
  "usage-history.saved-again": info("the usage history can be saved again", ["lostRequests"]),
  "usage-history.delete-failed": error("old usage cannot be deleted; the server tries again in 10 minutes", [
    "error",
  ]),
  "usage-history.incomplete": error("the last requests are missing in the usage history", ["error"]),

  "key.first-created": info("the first API key was created", ["file"]),
  "key.first-failed": warn(
    "creating the first API key failed; if there is no key, run petstore keys create",
    ["error"],
  ),
  "key.changed": info("an API key was created or changed, and this server applies the change", [
    "keyId",
    "plan",
    "state",
    "expiresAt",
  ]),
  "key.many-changed": info("many API keys were changed at once; the others have no events of their own", [
    "others",
  ]),
  "key.banned": warn("an API key is banned for ignoring its rate limit", [
    "keyId",
    "bannedAt",
    "bannedUntil",
  ]),
  "key.unbanned": info("an operator unbanned an API key", ["keyId"]),
  "key.unban-failed": error("an API key cannot be unbanned; trying again", ["keyId", "error"]),
  "key.expiry-not-announced": error("keys that expire soon cannot be announced; trying again in 10 minutes", [
    "error",
  ]),
  "key-changes.unreadable": warn("changes of API keys cannot be read; trying again", ["error"]),
  "key-changes.readable": info("changes of API keys can be read again"),

  "admin.started": info("the listener for operators accepts requests", ["url", "tokenFile"]),
  "admin.plain-text": warn(PLAIN_TEXT_WARNINGS.admin.join("; "), ["host"]),
  "admin.sign-in-failed": warn(
    "somebody sent a wrong token or sign-in code, or signed in with the provider and has no role",
    ["address", "unrecorded", "reason"],
  ),
  "admin.provider-unavailable": error("nobody can sign in with the provider; tokens work", [
    "provider",
    "error",
  ]),
  "admin.provider-available": info("people can sign in with the provider again", ["provider", "afterMs"]),
  "admin.token-imported": info("the operator now has the token from the setting", ["operator"]),
  "admin.token-rejected": error(
    "the token in a setting does not work; remove the setting or set a new token",
    ["operator", "reason"],
  ),
  "admin.token-not-imported": error("the token in a setting cannot be stored; trying again", [
    "operator",
    "error",
  ]),
  "admin.token-unreadable": warn("a token file is unusable; the previous token stays valid", [
    "file",
    "error",
  ]),
  "admin.token-not-saved": warn(
    "the token of the operator admin cannot be saved; run petstore operators rotate admin",
    ["error"],
  ),
  "admin.token-outdated": warn("the token in the file is no longer valid; delete the file", ["file"]),
  "audit.write-failed": error("an entry of the audit trail cannot be written", ["action", "error"]),
  "audit.delete-failed": error(
    "old entries of the audit trail cannot be deleted; the server tries again in 10 minutes",
    ["error"],
  ),
  "audit.bans-lost": error("bans are missing in the audit trail", ["bans"]),
  ...AUDIT_EVENTS,
  "webhook.failing": warn("the webhook did not accept an event; trying again", [
    "id",
    "type",
    "status",
    "error",
    "durationMs",
  ]),
  "webhook.recovered": info("the webhook accepts deliveries again", ["afterMs"]),
  "webhook.skipped": error("events whose delivery has failed for three days are skipped", ["entries"]),
  "webhook.unreadable": warn("the position of the webhook cannot be read or saved; trying again", ["error"]),

  "clock.changed": warn("the system clock was changed; windows and bans keep their length", ["byMs"]),
  "clock.differs": warn(
    `the clock of this machine differs from that of PostgreSQL by more than ${CLOCK_TOLERANCE_MS / 1_000} s; synchronize both with NTP`,
    ["aheadMs"],
  ),
  "clock.agrees": info("the clocks of this machine and of PostgreSQL agree again", ["aheadMs"]),
  "clock.database-changed": warn(
    "PostgreSQL's clock was set, or another server's took over; windows and bans end by so much earlier or later",
    ["byMs"],
  ),
  "clock.doubted": warn(
    "the system clock is more than a day off; old data is kept until it is right, or for a day",
  ),
  "clock.trusted": info("the system clock is trusted again, and old data is deleted"),
  "settings.file-changed": info("a file of settings has changed, and its new contents are in effect", [
    "setting",
    "file",
  ]),
  "settings.file-invalid": error(
    "a file of settings has changed and is unusable; its last contents stay in effect",
    ["setting", "file", "error"],
  ),
  "settings.save-failed": warn(
    "the URL of the API cannot be saved, so petstore keys may show that of an earlier start",
    ["error"],
  ),
  "limits.changed": info("limits or ban rules were changed, and apply from now on"),
  "data-directory.made-private": info("files that other users could read were made private", ["files"]),
  "data-directory.open-to-others": warn(
    "other users have access to the data directory; run chmod 700 on it",
    ["directory", "mode"],
  ),

  "tracing.failed": warn("the collector takes no spans; trying again", ["collector", "error"]),
  "tracing.recovered": info("the collector takes spans again", ["collector"]),
  "tracing.spans-dropped": warn("spans were dropped, because the collector did not take them", [
    "collector",
    "requests",
    "error",
  ]),

  "access-log.failed": error("the access log cannot be written; trying again", ["file", "error"]),
  "access-log.recovered": info("the access log can be written again", ["file"]),
  "access-log.lines-dropped": warn("the access log is written too slowly, so lines are missing in it", [
    "file",
    "lines",
  ]),
};

export type LogEventName = keyof typeof LOG_EVENTS;

type FieldOf<N extends LogEventName> = (typeof LOG_EVENTS)[N] extends LogEvent<infer Field> ? Field : never;

export type LogDetails<N extends LogEventName> = Readonly<Record<FieldOf<N>, unknown>>;

export type LogEventWithoutDetails = {
  [N in LogEventName]: FieldOf<N> extends never ? N : never;
}[LogEventName];
