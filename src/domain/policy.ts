import { DEFAULT_PLANS, type Plans } from "./plans.ts";
import { type Attribution, changeOf, type NewAuditEntry } from "./audit.ts";
import { type BanRules, DEFAULT_BAN } from "./ban-rules.ts";
import type { Limits } from "./rate-limit.ts";
import { INITIAL_VALUES, type SharedValues } from "./shared-values.ts";

/**
 * What all servers of an environment agree on, since it is in the database: the limits of the plans and of clients
 * without a key, the ban rules and the shared values.
 *
 * - A setting is a flag or variable of one server: a row of `SETTINGS` (config/options.ts). A server that starts with
 *   one of `POLICY_OPTIONS` (config/policy-options.ts) changes the policy for all.
 * - A shared value is a single value of the policy: a row of `SHARED_VALUES` (shared-values.ts).
 * - A reported setting is outside the policy, and should still be the same on all servers. Each reports the value that
 *   it has, and servers that differ are shown (servers.ts).
 * - A stored value is no setting: a text that servers and commands leave for one another (stored-values.ts). Its table
 *   `server_settings` has the shared values, too.
 */
export interface Policy {
  readonly plans: Plans;
  readonly ban: BanRules;
  readonly sharedValues: SharedValues;
}

/** The policy that a server applies. It is replaced as a whole when somebody changes it. */
export interface PolicyInEffect {
  readonly current: Policy;
}

/** The plans whose limits are stored. `anonymous` is that of clients without a valid key. */
export const LIMITED_PLANS = ["free", "pro", "business", "anonymous"] as const satisfies (keyof Plans)[];
export type LimitedPlan = (typeof LIMITED_PLANS)[number];

/** The names of the settings with which a server that starts sets limits and ban rules. */
export const POLICY_SETTINGS = {
  plans: {
    free: "free-limits",
    pro: "pro-limits",
    business: "business-limits",
    anonymous: "anonymous-limits",
  },
  ban: {
    strikes: "ban-strikes",
    graceMs: "ban-grace",
    lengthMs: "ban-length",
    maxLengthMs: "ban-max-length",
  },
} as const;

/** The policy until one is stored. */
export const DEFAULT_POLICY: Policy = {
  plans: DEFAULT_PLANS,
  ban: DEFAULT_BAN,
  sharedValues: INITIAL_VALUES,
};

/** What the database has of a policy: nothing before the first start of a server. */
export interface StoredPolicy {
  readonly plans: Partial<Plans>;
  readonly ban?: BanRules | undefined;
  readonly sharedValues: Partial<SharedValues>;
}

/** A change of the values that are given. */
export interface PolicyChange {
  readonly plans?: { readonly [Name in LimitedPlan]?: Partial<Limits> };
  readonly ban?: Partial<BanRules>;
  readonly sharedValues?: Partial<SharedValues>;
}

export function policyOf({ plans, ban = DEFAULT_BAN, sharedValues }: StoredPolicy): Policy {
  return {
    plans: { ...DEFAULT_PLANS, ...plans },
    ban,
    sharedValues: { ...INITIAL_VALUES, ...sharedValues },
  };
}

/** Returns the changed policy. The longest ban is at least as long as a first one. */
export function applyPolicyChange({ plans, ban, sharedValues }: Policy, change: PolicyChange): Policy {
  const limits: Record<LimitedPlan, Limits> = { ...plans };
  for (const name of LIMITED_PLANS) limits[name] = { ...limits[name], ...change.plans?.[name] };
  const rules = { ...ban, ...change.ban };
  return {
    plans: limits,
    ban: { ...rules, maxLengthMs: Math.max(rules.lengthMs, rules.maxLengthMs) },
    sharedValues: { ...sharedValues, ...change.sharedValues },
  };
}

/**
 * Returns the audit entries of a change: one for each plan, one for the ban rules and one for the values. A
 * first one of limits or rules has no `before`.
 */
export function policyEntries(
  stored: StoredPolicy,
  after: Policy,
  by: Attribution,
): readonly NewAuditEntry[] {
  const policy = policyOf(stored);
  const plans = LIMITED_PLANS.flatMap((plan): NewAuditEntry[] => {
    const changed = changeOf({ ...policy.plans[plan] }, { ...after.plans[plan] });
    if (changed === undefined) return [];
    const before = stored.plans[plan] && { before: changed.before };
    return [{ ...by, action: "plan.updated", ...before, after: { plan, ...changed.after } }];
  });
  const rules = changeOf({ ...policy.ban }, { ...after.ban });
  const ban = rules && (stored.ban ? rules : { after: rules.after });
  const values = changeOf(policy.sharedValues, after.sharedValues);
  return [
    ...plans,
    ...(ban ? [{ ...by, ...ban, action: "ban-rules.updated" as const }] : []),
    ...(values ? [{ ...by, ...values, action: "settings.updated" as const }] : []),
  ];
}
