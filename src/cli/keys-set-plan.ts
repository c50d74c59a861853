import { KEY_OPTIONS, PLACE, PLAN_LIMITS, placeOf, plansOf } from "../config.ts";
import { Problem } from "../config/problem.ts";
import { limitsOf } from "../domain/plans.ts";
import { define } from "./define.ts";
import { endOf, withKey } from "./key-access.ts";
import { keyId } from "./key-id.ts";
import { json, limitsInWords } from "./key-view.ts";
import { ownLimits } from "./own-limits.ts";

export const keysSetPlan = define({
  name: "keys set-plan",
  summary: "Move a key to another plan",
  description:
    "Moves a key to another plan, or an enterprise key to other numbers. Running servers follow within a second. What the key has used in its open windows still counts.",
  positionals: { ID: keyId, PLAN: KEY_OPTIONS.plan.kind },
  options: {
    "per-minute": KEY_OPTIONS["per-minute"],
    "per-day": KEY_OPTIONS["per-day"],
    ...PLACE,
    json: KEY_OPTIONS.json,
    ...PLAN_LIMITS,
  },
  required: [],
  asServed: PLAN_LIMITS,
  examples: [
    "petstore keys set-plan 3 business",
    "petstore keys set-plan 3 enterprise --per-minute 5000 --per-day 2000000",
  ],
  async run(input, { clock, print }) {
    const { positionals, values } = input;
    const { ID: id, PLAN: plan } = positionals;
    const own = ownLimits(plan, input);
    if (own instanceof Problem) return own;
    return withKey({ place: placeOf(values), id }, async (key, keys) => {
      const ended = endOf(key, clock.now(), "moved to another plan");
      if (ended) return ended;
      await keys.updateKey(id, { plan, ...own });
      const limits = limitsOf({ plan, ...own }, plansOf(values));
      const line = `Key ${id} is on the ${plan} plan now: ${limitsInWords(limits)}.`;
      await print(values.json ? json({ id, name: key.name, plan, limits }) : `${line}\n`);
      return undefined;
    });
  },
});
