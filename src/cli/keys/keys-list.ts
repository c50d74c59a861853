import { banRulesOf, describeStorage, plansOf, storageOf } from "../../config/config.ts";
import { KEY_FILTER_OPTIONS, KEY_OPTIONS } from "../../config/key-options.ts";
import { BAN_OPTIONS, PLAN_OPTIONS, STORAGE_OPTIONS } from "../../config/options.ts";
import { timeOf } from "../../config/time-types.ts";
import { UsageError } from "../../config/usage-error.ts";
import { matchesFilter } from "../../domain/key-filter.ts";
import { type KeyView, keyView } from "../../domain/key-view.ts";
import { defineCommand } from "../command.ts";
import { readUsage, usageWarning } from "./key-usage.ts";
import { databaseExists, keyDetails, withKeyStore } from "./key-store.ts";
import { columns, json, shortened } from "../output.ts";

const HEADER = [
  "ID",
  "NAME",
  "OWNER",
  "PLAN",
  "ACCESS",
  "STATE",
  "MINUTE",
  "DAY",
  "STRIKES",
  "BANNED UNTIL",
  "LAST USED",
  "EXPIRES",
  "CREATED",
] as const;

const { plan, owner, label, access } = KEY_OPTIONS;

export const keysList = defineCommand({
  name: "keys list",
  summary: "List the API keys with their limits, usage and bans",
  description:
    "Lists the API keys of an environment, oldest first: all of them, or those that meet every given condition (--plan, --owner, --label, --access, --state, --banned, --unused-since, --search). MINUTE and DAY are the requests used and the limit of the current window. While a server runs, usage is at most a second old. Secrets are not stored and cannot be shown.",
  options: {
    plan,
    owner,
    label,
    access: { type: access.type, help: access.help },
    ...KEY_FILTER_OPTIONS,
    ...STORAGE_OPTIONS,
    json: KEY_OPTIONS.json,
    ...PLAN_OPTIONS,
    ...BAN_OPTIONS,
  },
  savedOptions: { ...PLAN_OPTIONS, ...BAN_OPTIONS },
  examples: [
    "petstore keys list",
    "petstore keys list --banned",
    "petstore keys list --state active --unused-since 90d",
    "petstore keys list --search ann@example.com --env staging --json",
  ],
  async run({ values, valuesWith }, { clock, print, warn }) {
    const { state, banned } = values;
    if (banned && state !== undefined && state !== "banned") {
      return new UsageError(`--banned and --state ${state} exclude each other; use one of them`);
    }
    const storage = storageOf(values);
    const now = clock.now();
    const unusedSince = values["unused-since"] && timeOf(values["unused-since"], now);
    const { plan, owner, label: labels, access, search } = values;
    const filter = {
      plan,
      owner,
      labels,
      access,
      search,
      unusedSince,
      state: banned ? "banned" : state,
    } as const;
    const { keys, saved, details } = databaseExists(storage)
      ? await withKeyStore(storage, async (stores) => ({
          keys: await stores.keys.listKeys(),
          saved: valuesWith(await stores.settings.readSettings()),
          details: await keyDetails(stores),
        }))
      : { keys: [], saved: values, details: { secrets: new Map(), lastUsed: new Map() } };
    const usage = await readUsage(storage, keys, clock);
    if ("reason" in usage) warn(usageWarning(usage));
    const options = { plans: plansOf(saved), ban: banRulesOf(saved), now, usage, ...details };
    const views = keys.map((key) => keyView(key, options)).filter((view) => matchesFilter(view, filter));
    if (values.json) await print(json(views));
    else if (views.length > 0) await print(columns([HEADER, ...views.map(row)]));
    else if (keys.length === 1) await print(`The only key in ${values.env} does not match.\n`);
    else if (keys.length > 0) await print(`None of the ${keys.length} keys in ${values.env} matches.\n`);
    else {
      await print(
        `There are no keys in ${values.env} (data: ${describeStorage(storage).data}). Create one: petstore keys create --name NAME --plan free\n`,
      );
    }
    return undefined;
  },
});

function row({ id, name, owner, plan, access, state, usage, strikes, ...times }: KeyView): string[] {
  return [
    String(id),
    shortened(name, 40),
    shortened(owner ?? "-", 40),
    plan,
    access,
    state,
    ...(usage === null
      ? ["?", "?", "?", "?"]
      : [
          `${usage.minute.used}/${usage.minute.limit}`,
          `${usage.day.used}/${usage.day.limit}`,
          String(strikes),
          toSecond(times.bannedUntil),
        ]),
    toSecond(times.lastUsedAt),
    toSecond(times.expiresAt),
    toSecond(times.createdAt),
  ];
}

/** `2026-11-15T09:30:00Z`. */
function toSecond(time: string | null): string {
  return time === null ? "-" : time.replace(/\.\d+/, "");
}
