import { plansOf, storageOf } from "../../config/config.ts";
import { KEY_OPTIONS, keyId } from "../../config/key-options.ts";
import { PLAN_OPTIONS, STORAGE_OPTIONS } from "../../config/options.ts";
import { UsageError } from "../../config/usage-error.ts";
import { isKeyFailure } from "../../domain/key-management.ts";
import { limitsOf } from "../../domain/plans.ts";
import { defineCommand } from "../command.ts";
import { enterpriseLimits, failureOf, keyManagement, withKey } from "./key-store.ts";
import { formatLimits, json } from "../output.ts";

export const keysSetPlan = defineCommand({
  name: "keys set-plan",
  summary: "Move an API key to another plan",
  description:
    "Moves a key to another plan, or changes the limits of an Enterprise key. Running servers apply the change within a second. Usage in the current windows still counts.",
  positionals: { ID: keyId, PLAN: KEY_OPTIONS.plan.type },
  options: {
    "per-minute": KEY_OPTIONS["per-minute"],
    "per-day": KEY_OPTIONS["per-day"],
    ...STORAGE_OPTIONS,
    json: KEY_OPTIONS.json,
    ...PLAN_OPTIONS,
  },
  savedOptions: PLAN_OPTIONS,
  examples: [
    "petstore keys set-plan 3 business",
    "petstore keys set-plan 3 enterprise --per-minute 5000 --per-day 2000000",
  ],
  async run(input, context) {
    const { positionals, values } = input;
    const { ID: id, PLAN: plan } = positionals;
    const enterprise = enterpriseLimits(plan, input);
    if (enterprise instanceof UsageError) return enterprise;
    return withKey({ storage: storageOf(values), id }, async (_key, stores) => {
      const management = keyManagement(stores, values.env, context);
      const updated = await management.update(id, { plan, ...enterprise }, "moved to another plan");
      if (isKeyFailure(updated)) return failureOf(updated);
      const plans = plansOf(input.valuesWith(await stores.settings.readSettings()));
      const limits = limitsOf(updated, plans);
      const line = `Key ${id} is now on the ${plan} plan: ${formatLimits(limits)}.`;
      await context.print(values.json ? json({ id, name: updated.name, plan, limits }) : `${line}\n`);
      return undefined;
    });
  },
});
