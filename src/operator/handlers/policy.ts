import { Rejection } from "../../api/errors.ts";
import { LIMITED_PLANS, type LimitedPlan, type Policy, type PolicyChange } from "../../domain/policy.ts";
import type { Attribution } from "../../domain/audit.ts";
import { reuseByCost } from "../../runtime/reuse-by-cost.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";

type PolicyServices = Pick<Services, "policies" | "operatorReads" | "applyChanges">;

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

    getBanRules: async () => (await policies.readPolicy()).ban,

    async updateBanRules({ body }, { by }) {
      const { ban } = await policies.readPolicy();
      const { lengthMs = ban.lengthMs, maxLengthMs = Infinity } = body;
      if (maxLengthMs < lengthMs) return SHORTER_THAN_FIRST;
      return (await update({ ban: body }, by)).ban;
    },
  } satisfies Partial<AdminHandlers>;

  async function update(change: PolicyChange, by: Attribution): Promise<Policy> {
    const policy = await policies.updatePolicy(change, by);
    await services.applyChanges();
    return policy;
  }

  async function planViews() {
    const counts = await countKeys();
    return ({ plans }: Policy, plan: LimitedPlan) => ({
      plan,
      ...plans[plan],
      keys: plan === "anonymous" ? null : counts[plan],
    });
  }
}

const SHORTER_THAN_FIRST = new Rejection("invalid_body", [
  { path: ["maxLengthMs"], message: "must be at least the length of a first ban" },
]);
