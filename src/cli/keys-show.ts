import { BAN, banOf, KEY_OPTIONS, PLACE, PLAN_LIMITS, placeOf, plansOf } from "../config.ts";
import { grouped } from "../config/kinds.ts";
import { printable } from "../config/problem.ts";
import { define } from "./define.ts";
import { withKey } from "./key-access.ts";
import { keyId } from "./key-id.ts";
import { json, type KeyView, limitsInWords, viewOf, type WindowView } from "./key-view.ts";
import { standingsOf, useUnknown } from "./standings.ts";
import { columns } from "./table.ts";

export const keysShow = define({
  name: "keys show",
  summary: "One key, with its limits, use and ban",
  description:
    "Shows one key: its plan, what it has used of both limits, its strikes and its ban if it has one. While a server runs, use is at most a second old. The secret is not kept and so cannot be shown.",
  positionals: { ID: keyId },
  options: { ...PLACE, json: KEY_OPTIONS.json, ...PLAN_LIMITS, ...BAN },
  required: [],
  asServed: { ...PLAN_LIMITS, ...BAN },
  examples: ["petstore keys show 3", "petstore keys show 3 --json"],
  async run({ positionals: { ID: id }, values }, { clock, print, warn }) {
    const place = placeOf(values);
    return withKey({ place, id }, async (key) => {
      const standings = await standingsOf(place, [key], clock);
      if ("unknown" in standings) warn(useUnknown(standings));
      const view = viewOf(key, { plans: plansOf(values), ban: banOf(values), now: clock.now(), standings });
      await print(values.json ? json(view) : columns(lines(view)));
      return undefined;
    });
  },
});

function lines(view: KeyView): string[][] {
  return [
    ["Key", String(view.id)],
    ["Name", printable(view.name)],
    ["Plan", `${view.plan}: ${limitsInWords(view.limits)}`],
    ["State", stateInWords(view)],
    ["This minute", windowInWords(view.use?.minute)],
    ["This day", windowInWords(view.use?.day)],
    ["Strikes", String(view.strikes ?? "?")],
    ["Created", view.createdAt],
    ["Expires", view.expiresAt ?? "never"],
    ...(view.revokedAt === null ? [] : [["Revoked", view.revokedAt]]),
  ];
}

function stateInWords({ state, bannedUntil, use }: KeyView): string {
  if (state === "banned") return `banned until ${bannedUntil}`;
  return state === "active" && use === null ? "active, unless it is banned" : state;
}

function windowInWords(window: WindowView | undefined): string {
  if (window === undefined) return "?";
  const { used, limit, resetsAt } = window;
  const use = `${grouped(used)} of ${grouped(limit)} used`;
  return resetsAt === null ? use : `${use}, resets at ${resetsAt}`;
}
