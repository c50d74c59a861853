import { MINUTE_MS } from "../text/time-units.ts";
import { Overloaded, Unavailable } from "../api/errors.ts";
import { messageOf } from "../runtime/message-of.ts";
import { type LimitEvent, type ProtocolErrorStatus, type Request, RequestAborted } from "../http1/index.ts";
import type { LogDetails } from "./log-events.ts";
import type { Log } from "./log.ts";
import { traceContextOf } from "./trace.ts";
import { formatOptionalTime } from "../text/formatting.ts";
import { TokenBucket } from "../runtime/token-bucket.ts";
import { type ApiKey, type AuthFailure, keyState } from "../domain/api-keys.ts";
import { type AuditEntry, auditView } from "../domain/audit.ts";
import { scheduler } from "../runtime/scheduler.ts";

/** The limit for the events of each kind. */
const EVENTS = { max: 100, perSecond: 10 };

/**
 * Logs an event for each 5xx response, with the identifiers of the request and of its trace. While a database is
 * unavailable, every request fails, so the number of events is limited. The next event after the limit has the number
 * of those that were suppressed.
 */
export class ErrorLog {
  readonly #failed = new TokenBucket(EVENTS);
  readonly #unavailable = new TokenBucket(EVENTS);
  readonly #overloaded = new TokenBucket(EVENTS);
  readonly #unsupported = new TokenBucket(EVENTS);

  constructor(private readonly log: Log) {}

  report(
    where: string,
    error: unknown,
    { requestId, request }: { requestId: string; request?: Request },
  ): void {
    const { log } = this;
    if (error instanceof RequestAborted) return;
    const traceId = request && traceContextOf(request)?.traceId;
    if (error instanceof Unavailable) {
      const isOverloaded = error instanceof Overloaded;
      (isOverloaded ? this.#overloaded : this.#unavailable).reportOrCount((suppressed) => {
        const details = { requestId, traceId, where, reason: messagesWithCauses(error), suppressed };
        log.event(isOverloaded ? "server.overloaded" : "request.unavailable", details);
      });
    } else {
      this.#failed.reportOrCount((suppressed) =>
        log.event("request.failed", { requestId, traceId, where, error, suppressed }),
      );
    }
  }

  /** Logs 501 and 505 responses, which the client has caused. */
  reportUnsupported(status: ProtocolErrorStatus, requestId: string): void {
    if (status < 500) return;
    this.#unsupported.reportOrCount((suppressed) =>
      this.log.event("request.unsupported", { requestId, status, suppressed }),
    );
  }
}

const MAX_CAUSES = 4;

/**
 * The messages of the error and its causes. Stacks are omitted, because they are all the same while a database is
 * unavailable.
 */
function messagesWithCauses(error: Error): string {
  const messages: string[] = [];
  let current: unknown = error;
  while (current !== undefined && messages.length < MAX_CAUSES) {
    const message = messageOf(current);
    if (!messages.some((earlier) => earlier.includes(message))) messages.push(message);
    current = current instanceof Error ? current.cause : undefined;
  }
  return messages.join(": ");
}

/** How many requests without a valid key within a minute are reported. */
const MANY = 100;
/** Requests from further addresses are counted in the total, but not by address. */
const MAX_ADDRESSES = 1_000;

/**
 * Logs when many requests have no valid API key: once at the hundredth within a minute, and then once a minute while
 * each minute has a hundred or more. Each event has the number of requests since the one before.
 */
export function watchFloods(log: Log): (failure: AuthFailure, address: string) => void {
  const byAddress = new Map<string, number>();
  let requests = 0;
  let countingSince = -Infinity;
  let isReported = false;

  function restart(): void {
    requests = 0;
    countingSince = scheduler.now();
    byAddress.clear();
  }

  function report(): void {
    const [address, requestsOfAddress] = most(byAddress);
    log.event("authentication.flood", { requests, address, requestsOfAddress });
    isReported = true;
    restart();
    scheduler.setTimeout(endMinute, MINUTE_MS).unref();
  }

  function endMinute(): void {
    if (requests >= MANY) return report();
    isReported = false;
    restart();
  }

  return (failure, address) => {
    if (failure instanceof Unavailable) return;
    if (!isReported && scheduler.now() - countingSince >= MINUTE_MS) restart();
    requests++;
    const count = byAddress.get(address);
    if (count !== undefined || byAddress.size < MAX_ADDRESSES) byAddress.set(address, (count ?? 0) + 1);
    if (requests === MANY && !isReported) report();
  };
}

function most(counts: ReadonlyMap<string, number>): [address: string, count: number] {
  let found: [string, number] = ["", 0];
  for (const entry of counts) if (entry[1] > found[1]) found = entry;
  return found;
}

/** The number of events for changes that a server reads together. A command may create thousands of keys. */
const MAX_EVENTS = 100;

export function logKeyChanges(log: Log, changed: readonly ApiKey[], now: number): void {
  for (const key of changed.slice(0, MAX_EVENTS)) {
    const { id: keyId, plan, expiresAt } = key;
    log.event("key.changed", {
      keyId,
      plan,
      state: keyState(key, { isBanned: false, now }),
      expiresAt: formatOptionalTime(expiresAt),
    });
  }
  if (changed.length > MAX_EVENTS) log.event("key.many-changed", { others: changed.length - MAX_EVENTS });
}

/** Logs every audit entry that this server has written. */
export function logAudit(log: Log): (entry: AuditEntry) => void {
  return (entry) => {
    const { action, ...details } = auditView(entry);
    log.event(`audit.${action}`, details);
  };
}

export function logConnectionLimit(
  log: Log,
  { limit, peer: address, isOver, evicted, rejected }: LimitEvent,
): void {
  if (limit === "all") {
    if (isOver) log.event("connections.limit-ended", { evicted, rejected });
    else log.event("connections.limit-reached");
  } else {
    const name = limit === "peer" ? "connections.address-limit" : "connections.handshake-limit";
    if (isOver) log.event(`${name}-ended`, { rejected });
    else log.event(`${name}-reached`, { address });
  }
}

/** Logs what changes in files of settings while a server runs. */
export function reportSettingFiles(log: Log) {
  return {
    onChange: (details: LogDetails<"settings.file-changed">) => log.event("settings.file-changed", details),
    onInvalid: (details: LogDetails<"settings.file-invalid">) => log.event("settings.file-invalid", details),
  };
}
