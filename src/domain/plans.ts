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

/** Returns the limits of the plan. Only an Enterprise key has its own. */
export function limitsOf(plan: PlanName, ownLimits: Limits | undefined, plans: Plans): Limits {
  return plan === "enterprise" ? (ownLimits ?? plans.business) : plans[plan];
}
