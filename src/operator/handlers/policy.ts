import { Rejection } from "../../api/errors.ts";
import { variableOf } from "../../config/parse-options.ts";
import {
  LIMITED_PLANS,
  type LimitedPlan,
  type Policy,
  POLICY_SETTINGS,
  type PolicyChange,
} from "../../domain/policy.ts";
import type { Attribution } from "../../domain/audit.ts";
import type { BanRules } from "../../domain/ban-rules.ts";
import { type PolicySetter, policySetters } from "../../domain/servers.ts";
import { reuseByCost } from "../../runtime/reuse-by-cost.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";

interface PolicyServices extends Pick<Services, "policies" | "operatorReads" | "applyChanges"> {
  readonly servers: Pick<Services["servers"], "list" | "lost">;
}

/** Handles the operations on the limits of the plans and on the ban rules. */
export function policyHandlers(services: PolicyServices) {
  const { policies, operatorReads } = services;
  /** Counting 500,000 keys takes some tenths of a second, and a console asks every two seconds. */
  const countKeys = reuseByCost(async () => operatorReads.policies.countKeys());

  return {
    async listPlans() {
      const viewIn = await planViews();
      const policy = await policies.readPolicy();
      return { items: LIMITED_PLANS.map((plan) => viewIn(policy, plan)) };
    },

    async updatePlan({ body: { plan, ...limits } }, { by }) {
      // What the response shows is read first, so that nothing fails after the change.
      const viewIn = await planViews();
      return viewIn(await update({ plans: { [plan]: limits } }, by), plan);
    },

    getBanRules: async () => rulesView(await policies.readPolicy()),

    async updateBanRules({ body }, { by }) {
      const { ban } = await policies.readPolicy();
      const { lengthMs = ban.lengthMs, maxLengthMs = Infinity } = body;
      if (maxLengthMs < lengthMs) return SHORTER_THAN_FIRST;
      return rulesView(await update({ ban: body }, by), body);
    },
  } satisfies Partial<AdminHandlers>;

  async function update(change: PolicyChange, by: Attribution): Promise<Policy> {
    const policy = await policies.updatePolicy(change, by);
    await services.applyChanges();
    return policy;
  }

  async function planViews() {
    const counts = await countKeys();
    const setters = await listSetters();
    return ({ plans }: Policy, plan: LimitedPlan) => ({
      plan,
      ...plans[plan],
      keys: plan === "anonymous" ? null : counts[plan],
      setBy: settersOf(setters, [POLICY_SETTINGS.plans[plan]]),
    });
  }

  /** `setBy` has who sets one of the given rules. */
  async function rulesView({ ban }: Policy, rules: Partial<BanRules> = ban) {
    const names = Object.entries(POLICY_SETTINGS.ban).flatMap(([rule, name]) => (rule in rules ? name : []));
    return { ...ban, setBy: settersOf(await listSetters(), names) };
  }

  /** Lists the flags and variables with which servers set the policy when they start. */
  async function listSetters(): Promise<readonly PolicySetter[]> {
    const { servers } = services;
    return policySetters([...(await servers.list()), ...(await servers.lost())]);
  }
}

const SHORTER_THAN_FIRST = new Rejection("invalid_body", [
  { path: ["maxLengthMs"], message: "must be at least the length of a first ban" },
]);

function settersOf(setters: readonly PolicySetter[], names: readonly string[]): readonly PolicySetter[] {
  const given = new Set(names.flatMap((name) => [`--${name}`, variableOf(name)]));
  return setters.filter(({ setting }) => given.has(setting));
}
