import { plansOf, storageOf } from "../config/config.ts";
import { ADDRESS_OPTIONS, KEY_OPTIONS, PLAN_OPTIONS, STORAGE_OPTIONS } from "../config/options.ts";
import { quoted, UsageError } from "../config/usage-error.ts";
import { generateSecret, hashSecret } from "../domain/api-keys.ts";
import { limitsOf } from "../domain/plans.ts";
import { defineCommand } from "./command.ts";
import { enterpriseLimits, urlOf, withKeyStore } from "./keys.ts";
import { formatLimits, formatSecret, formatTime, json } from "./output.ts";

const { overlap: _, json: jsonOption, ...NEW_KEY_OPTIONS } = KEY_OPTIONS;

export const keysCreate = defineCommand({
  name: "keys create",
  summary: "Create an API key and print it",
  description:
    "Creates an API key and prints it. Petstore stores only a hash, so the key cannot be shown again. Running servers accept it at once. The data directory and its database are created if missing.",
  options: { ...NEW_KEY_OPTIONS, ...STORAGE_OPTIONS, json: jsonOption, ...ADDRESS_OPTIONS, ...PLAN_OPTIONS },
  required: ["name", "plan"],
  savedOptions: { ...ADDRESS_OPTIONS, ...PLAN_OPTIONS },
  examples: [
    "petstore keys create --name 'mobile app' --plan free",
    "petstore keys create --name partner --plan enterprise --per-minute 5000 --per-day 2000000",
    "petstore keys create --name 'nightly build' --plan pro --expires 30d --env staging --json",
  ],
  async run(input, { clock, print }) {
    const { name, plan, env, expires, ...values } = input.values;
    const enterprise = enterpriseLimits(plan, input);
    if (enterprise instanceof UsageError) return enterprise;

    const now = clock.now();
    const expiry = expires === undefined ? {} : { expiresAt: now + expires };
    const newKey = { name, plan, ...enterprise, createdAt: now, ...expiry };
    const secret = generateSecret(env);
    const { key, saved } = await withKeyStore(storageOf({ env, ...values }), async ({ keys, settings }) => ({
      saved: await settings.readSettings(),
      key: await keys.createKey(newKey, hashSecret(secret)),
    }));

    const limits = limitsOf(key, plansOf(input.valuesWith(saved)));
    const createdAt = formatTime(now);
    const expiresAt = key.expiresAt === undefined ? null : formatTime(key.expiresAt);
    if (values.json) {
      await print(json({ id: key.id, key: secret, name, plan, limits, createdAt, expiresAt }));
    } else {
      const expiration = expiresAt === null ? "" : `; expires at ${expiresAt}`;
      const summary = `Created key ${key.id} ${quoted(name)} in ${env}: ${plan} plan, ${formatLimits(limits)}${expiration}`;
      await print(`${summary}\n${formatSecret(secret, urlOf(input, saved))}`);
    }
    return undefined;
  },
});
