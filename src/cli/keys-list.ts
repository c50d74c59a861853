import { BAN, banOf, KEY_OPTIONS, PLACE, PLAN_LIMITS, placeOf, plansOf, whereIs } from "../config.ts";
import { printable } from "../config/problem.ts";
import { define } from "./define.ts";
import { isInUse, withKeys } from "./key-access.ts";
import { json, type KeyView, viewOf } from "./key-view.ts";
import { standingsOf, useUnknown } from "./standings.ts";
import { columns } from "./table.ts";

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

export const keysList = define({
  name: "keys list",
  summary: "All keys, with their limits, use and bans",
  description:
    "Lists the keys of an environment, oldest first. MINUTE and DAY are the requests used of each limit in the windows that are open now; while a server runs they are at most a second old. Secrets are not kept and so cannot be shown.",
  positionals: {},
  options: { ...PLACE, json: KEY_OPTIONS.json, ...PLAN_LIMITS, ...BAN },
  required: [],
  asServed: { ...PLAN_LIMITS, ...BAN },
  examples: ["petstore keys list", "petstore keys list --env staging --json"],
  async run({ values }, { clock, print, warn }) {
    const place = placeOf(values);
    const keys = isInUse(place) ? await withKeys(place, async (keys) => keys.listKeys()) : [];
    const standings = await standingsOf(place, keys, clock);
    if ("unknown" in standings) warn(useUnknown(standings));
    const [plans, ban, now] = [plansOf(values), banOf(values), clock.now()];
    const views = keys.map((key) => viewOf(key, { plans, ban, now, standings }));
    if (values.json) await print(json(views));
    else if (views.length > 0) await print(columns([HEADER, ...views.map(row)]));
    else {
      await print(
        `No keys yet in ${values.env} at ${whereIs(place).data}. Make one: petstore keys create --name NAME --plan free\n`,
      );
    }
    return undefined;
  },
});

function row({ id, name, plan, state, use, strikes, ...times }: KeyView): string[] {
  return [
    String(id),
    printable(name),
    plan,
    state,
    ...(use === null
      ? ["?", "?", "?", "?"]
      : [
          `${use.minute.used}/${use.minute.limit}`,
          `${use.day.used}/${use.day.limit}`,
          String(strikes),
          moment(times.bannedUntil),
        ]),
    moment(times.expiresAt),
    moment(times.createdAt),
  ];
}

/** To the second: `2026-11-15T09:30:00Z`. */
function moment(time: string | null): string {
  return time === null ? "-" : time.replace(/\.\d+/, "");
}
