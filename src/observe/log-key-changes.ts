import { stateOf } from "../domain/key-view.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import type { Log } from "./log.ts";

/** Of the changes that a server reads at once. A command may create thousands of keys. */
const MAX_EVENTS = 100;

export function logKeyChanges(log: Log, changed: readonly ApiKey[], now: number): void {
  for (const key of changed.slice(0, MAX_EVENTS)) {
    const { id: keyId, plan, expiresAt } = key;
    log.event("key.changed", { keyId, plan, state: stateOf(key, false, now), expiresAt: timeOf(expiresAt) });
  }
  if (changed.length > MAX_EVENTS) log.event("key.many-changed", { others: changed.length - MAX_EVENTS });
}

function timeOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}
