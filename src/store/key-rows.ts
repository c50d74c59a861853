import type { ApiKey } from "../domain/api-keys.ts";
import type { PlanName } from "../domain/plans.ts";
import type { KeyStore } from "../domain/ports.ts";

/** A key as it is kept, on both engines. Every number in it is far below 2^53. */
export interface KeyRow {
  readonly id: bigint;
  readonly name: string;
  readonly plan: PlanName;
  readonly perMinute: bigint | null;
  readonly perDay: bigint | null;
  readonly createdAt: bigint;
  readonly expiresAt: bigint | null;
  readonly revokedAt: bigint | null;
  readonly unbannedAt: bigint | null;
}

export const KEY_COLUMNS = `api_keys.id, name, plan, per_minute AS "perMinute", per_day AS "perDay",
  created_at AS "createdAt", expires_at AS "expiresAt", revoked_at AS "revokedAt", pardoned_at AS "unbannedAt"`;

/** What is null in the row is absent from the key. */
export function keyOf(row: KeyRow): ApiKey {
  const { perMinute, perDay, expiresAt, revokedAt, unbannedAt } = row;
  const hasLimits = perMinute !== null && perDay !== null;
  return {
    id: Number(row.id),
    name: row.name,
    plan: row.plan,
    ...(hasLimits && { limits: { perMinute: Number(perMinute), perDay: Number(perDay) } }),
    createdAt: Number(row.createdAt),
    ...(expiresAt !== null && { expiresAt: Number(expiresAt) }),
    ...(revokedAt !== null && { revokedAt: Number(revokedAt) }),
    ...(unbannedAt !== null && { unbannedAt: Number(unbannedAt) }),
  };
}

export type KeyChange = Parameters<KeyStore["updateKey"]>[1];

/** Own limits are for Enterprise: another plan brings its own numbers, so they go with the plan they were made for. */
export function changedKey(key: ApiKey, change: KeyChange): ApiKey {
  const { limits, ...rest } = { ...key, ...change };
  const kept = change.limits ?? (rest.plan === "enterprise" ? limits : undefined);
  return kept === undefined ? rest : { ...rest, limits: kept };
}
