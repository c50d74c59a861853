import { banRulesOf, plansOf, storageOf } from "../../config/config.ts";
import { KEY_OPTIONS } from "../../config/key-options.ts";
import { BAN_OPTIONS, PLAN_OPTIONS, STORAGE_OPTIONS } from "../../config/options.ts";
import { formatOptionalTime } from "../../contract/formatting.ts";
import { isKeyFailure } from "../../domain/key-management.ts";
import { keyView } from "../../domain/key-view.ts";
import { defineCommand, Failure } from "../command.ts";
import { keyTable } from "./key-output.ts";
import { readUsage, usageWarning } from "./key-usage.ts";
import { databaseExists, failureOf, keyDetails, keyManagement, withKeyStore } from "./key-store.ts";
import { json } from "../output.ts";

const BEARER = /^(?:authorization:\s*)?bearer\s+/i;

export const keysFind = defineCommand({
  name: "keys find",
  summary: "Find the API key that has a given secret",
  description:
    "Asks for a secret without showing it, or reads it from standard input, and shows its key as petstore keys show does. A secret is never an argument: other users of the machine could read it in the list of processes. It finds the key also if the secret no longer works.",
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json, ...PLAN_OPTIONS, ...BAN_OPTIONS },
  savedOptions: { ...PLAN_OPTIONS, ...BAN_OPTIONS },
  examples: ["petstore keys find", "petstore keys find --json < secret.txt"],
  async run({ values, valuesWith }, context) {
    const storage = storageOf(values);
    const typed = await context.readSecret("API key: ");
    const secret = typed.trim().replace(BEARER, "");
    if (secret === "") return new Failure("no API key was given");
    if (!databaseExists(storage)) return new Failure(`no key in ${values.env} has this secret`);
    return withKeyStore(storage, async (stores) => {
      const found = await keyManagement(stores, values.env, context).findBySecret(secret);
      if (isKeyFailure(found)) return failureOf(found);
      const { key } = found;
      const now = context.clock.now();
      const usage = await readUsage(storage, [key], context.clock);
      if ("reason" in usage) context.warn(usageWarning(usage));
      const saved = valuesWith(await stores.settings.readSettings());
      const details = await keyDetails(stores, [key.id]);
      const view = keyView(key, { plans: plansOf(saved), ban: banRulesOf(saved), now, usage, ...details });
      const secretValidUntil = formatOptionalTime(found.validUntil);
      await context.print(
        values.json
          ? json({ ...view, secretValidUntil })
          : keyTable(view, [["Given secret", describeEnd(found.validUntil, now)]]),
      );
      return undefined;
    });
  },
});

function describeEnd(validUntil: number | undefined, now: number): string {
  if (validUntil === undefined) return "the current one";
  const time = formatOptionalTime(validUntil);
  // An overlap of 0 is stored as the beginning of the epoch.
  if (validUntil === 0) return "replaced, and no longer valid";
  return now < validUntil ? `replaced, valid until ${time}` : `replaced, no longer valid since ${time}`;
}
