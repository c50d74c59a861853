import type { ApiKey } from "./api-keys.ts";
import type { Limits } from "./rate-limit.ts";

export const PLANS = ["free", "pro", "business", "enterprise"] as const;
export type PlanName = (typeof PLANS)[number];

/** Enterprise numbers are each key's own; `anonymous` is for callers without a valid key, by address. */
export type Plans = Readonly<Record<Exclude<PlanName, "enterprise"> | "anonymous", Limits>>;

export const DEFAULT_PLANS: Plans = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  anonymous: { perMinute: 300, perDay: 10_000 },
};

/** Own numbers are for Enterprise alone; on any other plan they would count for nothing. */
export function limitsOf(key: Pick<ApiKey, "plan" | "limits">, plans: Plans): Limits {
  return key.plan === "enterprise" ? (key.limits ?? plans.business) : plans[key.plan];
}
