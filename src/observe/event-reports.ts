import type { LimitEvent } from "../http1/index.ts";
import type { LogDetails } from "./log-events.ts";
import type { Log } from "./log.ts";
import { formatOptionalTime } from "../text/formatting.ts";
import { type ApiKey, keyState } from "../domain/api-keys.ts";
import { type AuditEntry, auditView } from "../domain/audit.ts";

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
