import { array, type Infer, integer, nullable, object, oneOf, updateSchema } from "../../api/schema.ts";
import { LIMITED_PLANS } from "../../domain/policy.ts";
import { BAN_BOUNDS } from "../../domain/ban-rules.ts";
import { REQUEST_LIMITS } from "../../domain/key-fields.ts";
import { count, ok, tagged } from "./rows.ts";

const plan = oneOf(LIMITED_PLANS, "Plan; `anonymous` is for clients without a valid key");

export const PlanLimits = object("A plan with its limits", {
  plan,
  ...REQUEST_LIMITS,
  keys: nullable(count("API keys with the plan that are not revoked"), "Null for `anonymous`"),
});
export type PlanLimits = Infer<typeof PlanLimits>;

export const PlanList = object("The plans, except Enterprise: each Enterprise key has its own limits", {
  items: array(PlanLimits),
});

export const PlanUpdate = updateSchema("The limits to change, at least one", REQUEST_LIMITS, { plan });

const banRules = {
  strikes: integer({ ...BAN_BOUNDS.strikes, description: "Strikes that ban an API key" }),
  graceMs: integer({
    ...BAN_BOUNDS.graceMs,
    description:
      "Milliseconds after the first 429, and after each strike, in which rejected requests are no strikes",
  }),
  lengthMs: integer({ ...BAN_BOUNDS.lengthMs, description: "Length of a first ban, in milliseconds" }),
  maxLengthMs: integer({
    ...BAN_BOUNDS.maxLengthMs,
    description: "Length of the longest ban, in milliseconds",
  }),
};

export const BanRulesView = object("When and for how long API keys are banned", banRules);
export type BanRulesView = Infer<typeof BanRulesView>;

export const BanRulesUpdate = updateSchema("The rules to change, at least one", banRules);

/** The operations on the limits of the plans and on the ban rules. */
export const POLICY_OPERATIONS = tagged("Plans", {
  listPlans: {
    method: "GET",
    path: "/plans",
    summary: "List the plans with their limits",
    description:
      "Lists the limits of the plans and those of clients without a valid key, which count by address. All servers apply them. Each Enterprise key has its own limits.",
    success: ok("The plans", PlanList),
  },
  updatePlan: {
    method: "PATCH",
    path: "/plans",
    audited: "plan.updated",
    summary: "Change the limits of a plan",
    description:
      "Changes the given limits, on every server within a second. What keys have used in open windows stays.",
    body: PlanUpdate,
    success: ok("The changed plan", PlanLimits),
  },
  getBanRules: {
    method: "GET",
    path: "/ban-rules",
    summary: "Show when API keys are banned, and for how long",
    description: "Shows the ban rules, which all servers apply.",
    success: ok("The ban rules", BanRulesView),
  },
  updateBanRules: {
    method: "PATCH",
    path: "/ban-rules",
    audited: "ban-rules.updated",
    summary: "Change when API keys are banned, and for how long",
    description:
      "Changes the given rules, on every server within a second. A ban keeps its length, or ends when it has lasted as long as the longest ban may. A length above the longest ban raises that too.",
    body: BanRulesUpdate,
    success: ok("The ban rules", BanRulesView),
  },
});
