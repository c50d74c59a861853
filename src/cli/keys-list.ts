import { banRulesOf, describeStorage, plansOf, storageOf } from "../config/config.ts";
import { BAN_OPTIONS, KEY_OPTIONS, PLAN_OPTIONS, STORAGE_OPTIONS } from "../config/options.ts";
import { printable } from "../config/usage-error.ts";
import { defineCommand } from "./command.ts";
import { readUsage, usageWarning } from "./key-usage.ts";
import { type KeyView, keyView } from "./key-view.ts";
import { databaseExists, withKeyStore } from "./keys.ts";
import { columns, json } from "./output.ts";

const HEADER = [
  "ID",
  "NAME",
  "PLAN",
  "STATE",
  "MINUTE",
  "DAY",
  "STRIKES",
  "BANNED UNTIL",
  "EXPIRES",
  "CREATED",
] as const;

export const keysList = defineCommand({
  name: "keys list",
  summary: "List the API keys with their limits, usage and bans",
  description:
    "Lists the API keys of an environment, oldest first. MINUTE and DAY are the requests used and the limit of the current window. While a server runs, usage is at most a second old. Secrets are not stored and cannot be shown.",
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json, ...PLAN_OPTIONS, ...BAN_OPTIONS },
  savedOptions: { ...PLAN_OPTIONS, ...BAN_OPTIONS },
  examples: ["petstore keys list", "petstore keys list --env staging --json"],
  async run({ values, valuesWith }, { clock, print, warn }) {
    const storage = storageOf(values);
    const { keys, saved } = databaseExists(storage)
      ? await withKeyStore(storage, async ({ keys, settings }) => ({
          keys: await keys.listKeys(),
          saved: valuesWith(await settings.readSettings()),
        }))
      : { keys: [], saved: values };
    const usage = await readUsage(storage, keys, clock);
    if ("reason" in usage) warn(usageWarning(usage));
    const options = { plans: plansOf(saved), ban: banRulesOf(saved), now: clock.now(), usage };
    const views = keys.map((key) => keyView(key, options));
    if (values.json) await print(json(views));
    else if (views.length > 0) await print(columns([HEADER, ...views.map(row)]));
    else {
      await print(
        `There are no keys in ${values.env} (data: ${describeStorage(storage).data}). Create one: petstore keys create --name NAME --plan free\n`,
      );
    }
    return undefined;
  },
});

function row({ id, name, plan, state, usage, strikes, ...times }: KeyView): string[] {
  return [
    String(id),
    printable(name),
    plan,
    state,
    ...(usage === null
      ? ["?", "?", "?", "?"]
      : [
          `${usage.minute.used}/${usage.minute.limit}`,
          `${usage.day.used}/${usage.day.limit}`,
          String(strikes),
          toSecond(times.bannedUntil),
        ]),
    toSecond(times.expiresAt),
    toSecond(times.createdAt),
  ];
}

/** `2026-11-15T09:30:00Z`. */
function toSecond(time: string | null): string {
  return time === null ? "-" : time.replace(/\.\d+/, "");
}
