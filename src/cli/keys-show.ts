import { banRulesOf, plansOf, storageOf } from "../config/config.ts";
import { BAN_OPTIONS, KEY_OPTIONS, PLAN_OPTIONS, STORAGE_OPTIONS } from "../config/options.ts";
import { printable } from "../config/usage-error.ts";
import { grouped } from "../config/value-types.ts";
import { defineCommand } from "./command.ts";
import { readUsage, usageWarning } from "./key-usage.ts";
import { type KeyView, keyView, type WindowView } from "./key-view.ts";
import { keyId, withKey } from "./keys.ts";
import { columns, formatLimits, json } from "./output.ts";

export const keysShow = defineCommand({
  name: "keys show",
  summary: "Show one API key with its limits, usage and ban",
  description:
    "Shows one key: its plan, its usage of both limits, its strikes and its ban. While a server runs, usage is at most a second old. The secret is not stored and cannot be shown.",
  positionals: { ID: keyId },
  options: { ...STORAGE_OPTIONS, json: KEY_OPTIONS.json, ...PLAN_OPTIONS, ...BAN_OPTIONS },
  savedOptions: { ...PLAN_OPTIONS, ...BAN_OPTIONS },
  examples: ["petstore keys show 3", "petstore keys show 3 --json"],
  async run({ positionals: { ID: id }, values, valuesWith }, { clock, print, warn }) {
    const storage = storageOf(values);
    return withKey({ storage, id }, async (key, { settings }) => {
      const usage = await readUsage(storage, [key], clock);
      if ("reason" in usage) warn(usageWarning(usage));
      const saved = valuesWith(await settings.readSettings());
      const view = keyView(key, { plans: plansOf(saved), ban: banRulesOf(saved), now: clock.now(), usage });
      await print(values.json ? json(view) : columns(rows(view)));
      return undefined;
    });
  },
});

function rows(view: KeyView): string[][] {
  return [
    ["Key", String(view.id)],
    ["Name", printable(view.name)],
    ["Plan", `${view.plan}: ${formatLimits(view.limits)}`],
    ["State", describeState(view)],
    ["This minute", describeWindow(view.usage?.minute)],
    ["This day", describeWindow(view.usage?.day)],
    ["Strikes", String(view.strikes ?? "?")],
    ["Created", view.createdAt],
    ["Expires", view.expiresAt ?? "never"],
    ...(view.revokedAt === null ? [] : [["Revoked", view.revokedAt]]),
  ];
}

function describeState({ state, bannedUntil, usage }: KeyView): string {
  if (state === "banned") return `banned until ${bannedUntil}`;
  return state === "active" && usage === null ? "active, unless it is banned" : state;
}

function describeWindow(window: WindowView | undefined): string {
  if (window === undefined) return "?";
  const { used, limit, resetsAt } = window;
  const usage = `${grouped(used)} of ${grouped(limit)} used`;
  return resetsAt === null ? usage : `${usage}, resets at ${resetsAt}`;
}
