import { plansOf, storageOf } from "../../config/config.ts";
import { KEY_OPTIONS } from "../../config/key-options.ts";
import { ADDRESS_OPTIONS, PLAN_OPTIONS, STORAGE_OPTIONS } from "../../config/options.ts";
import { quoted, UsageError } from "../../config/usage-error.ts";
import { formatOptionalTime, formatTime } from "../../contract/formatting.ts";
import { isKeyFailure } from "../../domain/key-management.ts";
import { limitsOf } from "../../domain/plans.ts";
import { defineCommand } from "../command.ts";
import { enterpriseLimits, failureOf, keyManagement, urlOf, withKeyStore } from "./key-store.ts";
import { formatLimits, formatSecret, json } from "../output.ts";

const { overlap: _overlap, clear: _clear, json: jsonOption, ...NEW_KEY_OPTIONS } = KEY_OPTIONS;

export const keysCreate = defineCommand({
  name: "keys create",
  summary: "Create an API key and print it",
  description:
    "Creates an API key and prints it. Petstore stores only a hash, so the key cannot be shown again. Running servers accept it at once. The data directory and its database are created if missing.",
  options: { ...NEW_KEY_OPTIONS, ...STORAGE_OPTIONS, json: jsonOption, ...ADDRESS_OPTIONS, ...PLAN_OPTIONS },
  required: ["name", "plan"],
  savedOptions: { ...ADDRESS_OPTIONS, ...PLAN_OPTIONS },
  examples: [
    "petstore keys create --name 'mobile app' --plan free --owner ann@example.com",
    "petstore keys create --name dashboard --plan pro --access read --label internal --label reports",
    "petstore keys create --name partner --plan enterprise --per-minute 5000 --per-day 2000000",
    "petstore keys create --name 'nightly build' --plan pro --expires 30d --env staging --json",
  ],
  async run(input, context) {
    const { name, plan, owner, notes, label: labels, access, expires, env, ...values } = input.values;
    const enterprise = enterpriseLimits(plan, input);
    if (enterprise instanceof UsageError) return enterprise;
    const draft = {
      name,
      plan,
      ...enterprise,
      ...(owner !== undefined && { owner }),
      ...(notes !== undefined && { notes }),
      ...(labels !== undefined && { labels }),
      ...(access !== undefined && { access }),
      ...(typeof expires === "number" && { expiresAt: context.clock.now() + expires }),
    };
    return withKeyStore(storageOf({ env, ...values }), async (stores) => {
      const created = await keyManagement(stores, env, context).create(draft);
      if (isKeyFailure(created)) return failureOf(created);
      const { key, secret } = created;
      const saved = await stores.settings.readSettings();
      const limits = limitsOf(key, plansOf(input.valuesWith(saved)));
      const expiresAt = formatOptionalTime(key.expiresAt);
      if (values.json) {
        const { id, owner = null, notes = null, labels, access } = key;
        const createdAt = formatTime(key.createdAt);
        const fields = {
          id,
          key: secret,
          name,
          owner,
          notes,
          labels,
          plan,
          limits,
          access,
          createdAt,
          expiresAt,
        };
        await context.print(json(fields));
      } else {
        const readOnly = key.access === "read" ? "; read-only" : "";
        const expiration = expiresAt === null ? "" : `; expires at ${expiresAt}`;
        const summary = `Created key ${key.id} ${quoted(name)} in ${env}: ${plan} plan, ${formatLimits(limits)}${readOnly}${expiration}`;
        await context.print(`${summary}\n${formatSecret(secret, urlOf(input, saved))}`);
      }
      return undefined;
    });
  },
});
