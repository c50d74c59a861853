import { EXPIRES_SOON_MS } from "../../domain/api-keys.ts";
import { CLOSE_TO_LIMIT_PERCENT } from "../../domain/rate-limit.ts";
import { DAY_MS } from "../../text/time-units.ts";
import { nameOfServer } from "../../domain/servers.ts";
import {
  DEPRECATED_USE_DAYS,
  intervalStart,
  type KeyTotals,
  requestsOf,
  sumOfRequests,
} from "../../domain/usage-history.ts";
import { reuseByCost } from "../../runtime/reuse-by-cost.ts";
import type { ServerSeries } from "../operations.ts";
import { KeyViews, type KeyViewServices } from "./key-views.ts";
import { askOthers } from "./other-servers.ts";
import { combinedSeries } from "./series.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";

const TOP_KEYS = 20;

interface OverviewServices extends KeyViewServices, Pick<Services, "metrics" | "servers" | "questions"> {}

export function overviewHandlers(services: OverviewServices) {
  const { keys, usageHistory, limiterMonitor, metrics, clock } = services;
  const keyViews = new KeyViews(services);

  /** Reading the sums takes 160 ms with 10,000 keys that are used in every hour. A console asks every two seconds. */
  const readSums = reuseByCost(async () => {
    const now = clock.now();
    const day = { by: "hour", since: now - DAY_MS, until: now } as const;
    const totals = await usageHistory.usageByKey(day);
    const deprecatedSince = intervalStart("day", now - DEPRECATED_USE_DAYS * DAY_MS);
    const filter = { expiresBefore: now + EXPIRES_SOON_MS };
    const windows = await keyViews.windowsOf(totals);
    const ids = windows.filter(({ percent }) => percent >= CLOSE_TO_LIMIT_PERCENT).map(({ id }) => id);
    const close = await keyViews.list({ filter: { state: "active", ids }, limit: 1 });
    const [first = null] = close.items;
    return {
      totals: totals.slice(0, TOP_KEYS),
      keyRequests: requestsOf(sumOfRequests(totals)),
      deprecatedKeys: await usageHistory.countDeprecatedUse(deprecatedSince),
      expiringKeys: (await keys.listKeys({ filter, limit: 1, now })).total,
      closeKeys: { total: close.total, first: first && { id: first.id, name: first.name } },
    };
  });

  return {
    async getOverview({ query: { range = "1h" } }) {
      const { totals, ...counts } = await readSums();
      const topKeys = await viewTopKeys(totals);
      const banned = await keyViews.banned(1);
      return {
        range,
        ...(await readSeries(range)),
        bannedKeys: limiterMonitor.isAvailable ? banned.total : null,
        ...counts,
        topKeys,
      };
    },
  } satisfies Partial<AdminHandlers>;

  /** The series of all servers, and the servers whose series are missing. */
  async function readSeries(range: ServerSeries["range"]) {
    const asked = await askOthers("getSeries", { range }, services);
    const others = asked.flatMap(({ body }) => body ?? []);
    const missing = asked.flatMap(({ server, problem }) =>
      problem === null ? [] : [{ name: nameOfServer(server), problem }],
    );
    return { ...combinedSeries(metrics.live.read(range), others), missing };
  }

  async function viewTopKeys(totals: readonly KeyTotals[]) {
    const views = await keyViews.views(await keys.getKeys(totals.map(({ keyId }) => keyId)));
    return totals.flatMap(({ keyId, admitted, limited, banned, errors }) => {
      const view = views.find(({ id }) => id === keyId);
      if (view === undefined) return [];
      const { id, name, plan, state, usage, lastUsedAt } = view;
      return [{ id, name, plan, state, usage, admitted, limited, banned, errors, lastUsedAt }];
    });
  }
}
