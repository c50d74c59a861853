import { DAY_MS } from "../src/domain/rate-limit.ts";
import { KEYS } from "./admin-data.ts";

/** A page of the console: the paths that it asks for at once, and then those that it asks for with the responses. */
export interface AdminPage {
  readonly name: string;
  readonly steps: readonly (readonly string[])[];
}

const KEY = KEYS / 2;
/** Every page asks for it. */
const SERVER = "/api/server";

/** As src/console/pages and src/console/components ask for them. */
export function consolePages(now = Date.now()): readonly AdminPage[] {
  const monthAgo = new Date(now - 30 * DAY_MS).toISOString();
  return [
    page("Overview, 1 h", "/api/overview?range=1h"),
    page("Overview, 24 h", "/api/overview?range=24h"),
    page("Keys", "/api/keys?limit=50"),
    page("Keys, search", "/api/keys?search=customer%2099&limit=50"),
    page("Keys, search without a match", "/api/keys?search=nobody&limit=50"),
    page("Keys, banned", "/api/keys?state=banned&limit=50"),
    page("Keys, not used for 30 days", `/api/keys?unusedSince=${monthAgo}&limit=50`),
    page("Keys, deprecated calls", `/api/keys?deprecatedSince=${monthAgo}&limit=50`),
    page("Keys by name", "/api/keys?sort=name&order=desc&limit=50"),
    page("Keys by last use", "/api/keys?sort=lastUsedAt&order=desc&limit=50"),
    page("Keys by use today", "/api/keys?sort=usedToday&order=desc&limit=50"),
    keyPage("Key, 30 days by day", { by: "day", days: 30, now }),
    keyPage("Key, 7 days by hour", { by: "hour", days: 7, now }),
    keyPage("Key, 400 days by day", { by: "day", days: 400, now }),
    page("Pets", "/api/pets?limit=50"),
    {
      name: "Pet",
      steps: [
        [SERVER, "/api/pets/77"],
        ["/api/orders?petId=77&limit=10", "/api/audit?target=pet%3A77&limit=10"],
      ],
    },
    page("Orders", "/api/orders?limit=50"),
    { name: "Order", steps: [[SERVER, "/api/orders/77"], ["/api/audit?target=order%3A77&limit=10"]] },
    page("Audit", "/api/audit?limit=50"),
    page("Audit of one action", "/api/audit?action=key.banned&limit=50"),
    page("Settings", "/api/settings"),
    // No page yet: what a program that bills asks for.
    page("Usage of 100 keys, 30 days (API)", "/api/usage"),
  ];
}

function page(name: string, ...paths: string[]): AdminPage {
  return { name, steps: [[SERVER, ...paths]] };
}

function keyPage(
  name: string,
  { by, days, now }: { readonly by: "hour" | "day"; readonly days: number; readonly now: number },
): AdminPage {
  const since = now - days * DAY_MS + (by === "day" ? DAY_MS : DAY_MS / 24);
  const period = `by=${by}&since=${new Date(since).toISOString()}&until=${new Date(now).toISOString()}`;
  return {
    name,
    steps: [
      [SERVER, `/api/keys/${KEY}`],
      [`/api/keys/${KEY}/usage?${period}`, `/api/audit?target=key%3A${KEY}&limit=10`],
    ],
  };
}
