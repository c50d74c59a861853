import { Problem } from "../config/problem.ts";
import type { Limits } from "../domain/rate-limit.ts";
import type { PlanName } from "../domain/plans.ts";

/** The numbers of an enterprise key, and where each was given. */
interface OwnLimits {
  readonly values: { readonly "per-minute": number | undefined; readonly "per-day": number | undefined };
  source(flag: "per-minute" | "per-day"): { readonly name: string } | undefined;
}

/** Enterprise keys bring both numbers; every other plan brings its own, so that a key never differs from its plan. */
export function ownLimits(plan: PlanName, { values, source }: OwnLimits): { limits?: Limits } | Problem {
  const given = source("per-minute") ?? source("per-day");
  if (plan !== "enterprise") {
    return given ? new Problem(`${given.name} is for the enterprise plan only, and the plan is ${plan}`) : {};
  }
  const { "per-minute": perMinute, "per-day": perDay } = values;
  if (perMinute === undefined || perDay === undefined) {
    const missing = perMinute === undefined ? "--per-minute" : "--per-day";
    return new Problem(`the enterprise plan needs ${missing}: its numbers are each key's own`);
  }
  return { limits: { perMinute, perDay } };
}
