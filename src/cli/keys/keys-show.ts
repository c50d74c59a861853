import { banRulesOf, plansOf, storageOf } from "../../config/config.ts";
import { KEY_OPTIONS, keyId } from "../../config/key-options.ts";
import { BAN_OPTIONS, PLAN_OPTIONS, STORAGE_OPTIONS } from "../../config/options.ts";
import { keyView } from "../../domain/key-view.ts";
import { defineCommand } from "../command.ts";
import { keyTable } from "./key-output.ts";
import { readUsage, usageWarning } from "./key-usage.ts";
import { keyDetails, withKey } from "./key-store.ts";
import { json } from "../output.ts";

export const keysShow = defineCommand({
  name: "keys show",
  summary: "Show one API key with its secrets, limits, usage and ban",
  description:
    "Shows one key: its plan, its usage of both limits, its strikes and its ban. While a server runs, usage is at most a second old. Of a secret it shows the first and the last characters; the whole is not stored. After a roll it shows the previous secrets until their overlap ends.",
  positionals: { ID: keyId },
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json, ...PLAN_OPTIONS, ...BAN_OPTIONS },
  savedOptions: { ...PLAN_OPTIONS, ...BAN_OPTIONS },
  examples: ["petstore keys show 3", "petstore keys show 3 --json"],
  async run({ positionals: { ID: id }, values, valuesWith }, { clock, print, warn }) {
    const storage = storageOf(values);
    return withKey({ storage, id }, async (key, stores) => {
      const usage = await readUsage(storage, [key], clock);
      if ("reason" in usage) warn(usageWarning(usage));
      const saved = valuesWith(await stores.settings.readSettings());
      const details = await keyDetails(stores, [id]);
      const [plans, ban] = [plansOf(saved), banRulesOf(saved)];
      const view = keyView(key, { plans, ban, now: clock.now(), usage, ...details });
      await print(values.json ? json(view) : keyTable(view));
      return undefined;
    });
  },
});
