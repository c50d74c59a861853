import type { Limits } from "./rate-limit.ts";

export const PLANS = ["free", "pro", "business", "enterprise"] as const;
export type PlanName = (typeof PLANS)[number];

/** An Enterprise key has its own limits. `anonymous` applies to an IP address without a valid key. */
export type Plans = Readonly<Record<Exclude<PlanName, "enterprise"> | "anonymous", Limits>>;

export const DEFAULT_PLANS: Plans = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
  anonymous: { perMinute: 300, perDay: 10_000 },
};

/** Only an Enterprise key has its own limits. */
export function limitsOf(key: { readonly plan: PlanName; readonly limits?: Limits }, plans: Plans): Limits {
  return key.plan === "enterprise" ? (key.limits ?? plans.business) : plans[key.plan];
}
