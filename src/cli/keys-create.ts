import { ADDRESS, expectedUrl, KEY_OPTIONS, PLACE, PLAN_LIMITS, placeOf, plansOf } from "../config.ts";
import { Problem, quoted } from "../config/problem.ts";
import { limitsOf } from "../domain/plans.ts";
import { define } from "./define.ts";
import { issueKey } from "./issue.ts";
import { withKeys } from "./key-access.ts";
import { json, limitsInWords, rfc3339 } from "./key-view.ts";
import { ownLimits } from "./own-limits.ts";
import { shownOnce } from "./secret.ts";

const { overlap: _, json: asJson, ...ABOUT_THE_KEY } = KEY_OPTIONS;

export const keysCreate = define({
  name: "keys create",
  summary: "Make a key and print it, once",
  description:
    "Makes an API key and prints it. Only a hash is kept, so this is the one time that it can be seen. A running server knows the key at once. The folder and its databases are made when missing.",
  positionals: {},
  options: { ...ABOUT_THE_KEY, ...PLACE, json: asJson, ...ADDRESS, ...PLAN_LIMITS },
  required: ["name", "plan"],
  asServed: { ...ADDRESS, ...PLAN_LIMITS },
  examples: [
    "petstore keys create --name 'mobile app' --plan free",
    "petstore keys create --name partner --plan enterprise --per-minute 5000 --per-day 2000000",
    "petstore keys create --name 'nightly build' --plan pro --expires 30d --env staging --json",
  ],
  async run(input, { clock, print }) {
    const { name, plan, env, expires, ...values } = input.values;
    const own = ownLimits(plan, input);
    if (own instanceof Problem) return own;

    const createdAt = clock.now();
    const lifetime = expires === undefined ? {} : { expiresAt: createdAt + expires };
    const { key, secret } = await withKeys(placeOf({ env, ...values }), (keys) =>
      issueKey(keys, env, { name, plan, ...own, createdAt, ...lifetime }),
    );

    const limits = limitsOf(key, plansOf(values));
    const expiresAt = key.expiresAt === undefined ? null : rfc3339(key.expiresAt);
    if (values.json) {
      const shown = { id: key.id, key: secret, name, plan, limits, createdAt: rfc3339(createdAt), expiresAt };
      await print(json(shown));
    } else {
      const end = expiresAt === null ? "" : `, until ${expiresAt}`;
      const about = `Key ${key.id} ${quoted(name)} for ${env}: ${plan}, ${limitsInWords(limits)}${end}`;
      await print(`${about}\n${shownOnce(secret, expectedUrl({ env, ...values }))}`);
    }
    return undefined;
  },
});
