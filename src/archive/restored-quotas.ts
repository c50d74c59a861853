/* The quotas of a backup, beside those that the data have which it replaces. */

import { merge } from "../domain/rate-limit.ts";
import type { KeyQuotas } from "../store/sql/table-store.ts";

/**
 * The larger count of each window holds, and the later ban: what was used since the backup stays used. Quotas that are
 * over change no decision, so they are stored with the others. Doing it twice changes nothing.
 */
export function restoredQuotas(backup: KeyQuotas, present: KeyQuotas, now: number): KeyQuotas {
  const quotas = new Map(present);
  for (const [keyId, known] of backup) {
    const quota = quotas.get(keyId);
    if (quota) merge(quota, known, now);
    else quotas.set(keyId, known);
  }
  return [...quotas];
}
