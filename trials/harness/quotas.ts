/* The quota of key 1, which a backup has and a restore puts back. */

import { join } from "node:path";
import { newQuota } from "../../src/domain/rate-limit.ts";
import type { KeyQuotas } from "../../src/store/sql/table-store.ts";
import { readSavedQuotas } from "../../src/store/sqlite/backup-tables.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";

/** The file of quotas in a data directory. */
export const quotaFile = (data: string): string => join(data, "production-limits.db");

/** The number of requests of key 1 in its day. */
const USED = 55;

export function saveQuota(data: string): void {
  const quotas = openQuotaStore(quotaFile(data));
  const day = { openedAt: Date.now(), used: USED, graceBeganAt: -1, strikes: 0 };
  quotas.save([
    [
      { kind: "key", id: 1 },
      { ...newQuota(), day },
    ],
  ]);
  quotas.close();
}

export const hasQuota = (quotas: KeyQuotas): boolean =>
  quotas.find(([id]) => id === 1)?.[1].day.used === USED;

/** Whether a server on SQLite would find the quota. */
export const hasSavedQuota = (data: string): boolean => hasQuota(readSavedQuotas(quotaFile(data)));
