import { DEFAULT_PLANS, type Plans } from "./plans.ts";
import { type Attribution, changeOf, type NewAuditEntry } from "./audit.ts";
import { type BanRules, DEFAULT_BAN } from "./ban-rules.ts";
import type { Limits } from "./rate-limit.ts";

/**
 * What all servers of an environment agree on, since it is in the database: the limits of the plans and of clients
 * without a key, and the ban rules. Operations change it.
 *
 * - A setting is a flag or variable of one server: a row of `SETTINGS` (config/options.ts).
 * - A reported setting is outside the policy, and should still be the same on all servers. Each reports the value that
 *   it has, and servers that differ are shown (servers.ts).
 * - A stored value is no setting: a text that servers and commands leave for one another (stored-values.ts).
 */
export interface Policy {
  readonly plans: Plans;
  readonly ban: BanRules;
}

/** The policy that a server applies. It is replaced as a whole when somebody changes it. */
export interface PolicyInEffect {
  readonly current: Policy;
}

/** The plans whose limits are stored. `anonymous` is that of clients without a valid key. */
export const LIMITED_PLANS = ["free", "pro", "business", "anonymous"] as const satisfies (keyof Plans)[];
export type LimitedPlan = (typeof LIMITED_PLANS)[number];

/** The policy of new tables. Those that have one keep it. */
export const DEFAULT_POLICY: Policy = {
  plans: DEFAULT_PLANS,
  ban: DEFAULT_BAN,
};

/** A change of the values that are given. */
export interface PolicyChange {
  readonly plans?: { readonly [Name in LimitedPlan]?: Partial<Limits> };
  readonly ban?: Partial<BanRules>;
}

/** Returns the changed policy. The longest ban is at least as long as a first one. */
export function applyPolicyChange({ plans, ban }: Policy, change: PolicyChange): Policy {
  const limits: Record<LimitedPlan, Limits> = { ...plans };
  for (const name of LIMITED_PLANS) limits[name] = { ...limits[name], ...change.plans?.[name] };
  const rules = { ...ban, ...change.ban };
  return {
    plans: limits,
    ban: { ...rules, maxLengthMs: Math.max(rules.lengthMs, rules.maxLengthMs) },
  };
}

/** Returns the audit entries of a change: one for each plan and one for the ban rules. */
export function policyEntries(before: Policy, after: Policy, by: Attribution): readonly NewAuditEntry[] {
  const plans = LIMITED_PLANS.flatMap((plan): NewAuditEntry[] => {
    const changed = changeOf({ ...before.plans[plan] }, { ...after.plans[plan] });
    if (changed === undefined) return [];
    return [{ ...by, action: "plan.updated", before: changed.before, after: { plan, ...changed.after } }];
  });
  const rules = changeOf({ ...before.ban }, { ...after.ban });
  return [...plans, ...(rules ? [{ ...by, ...rules, action: "ban-rules.updated" as const }] : [])];
}
