import { encodeCursor } from "../../domain/cursor.ts";
import { pageOf } from "../../domain/pages.ts";
import { Rejection } from "../../api/errors.ts";
import { toSafeNumber } from "../../api/json.ts";
import { formatOptionalTime, formatTime, parseOptionalTime } from "../../text/formatting.ts";
import { keyNotFound } from "../../domain/api-keys.ts";
import {
  defaultSince,
  INTERVAL_LENGTH_MS,
  intervalStart,
  type KeyTotals,
  type UsagePeriod,
} from "../../domain/usage-history.ts";
import { yieldToEventLoop } from "../../runtime/scheduler.ts";
import { type QueryOf, type ResponseOf, USAGE_LIMIT } from "../operations.ts";
import type { AdminHandlers } from "./context.ts";
import type { Services } from "../services.ts";

type UsageItems = ResponseOf<"getUsage">["items"];

/** Formatting the totals of this many keys takes half a millisecond. */
const FORMATTED_AT_ONCE = 1_000;

export function usageHandlers({
  keys,
  usageHistory,
  clock,
}: Pick<Services, "keys" | "usageHistory" | "clock">) {
  return {
    async getKeyUsage({ id, query }) {
      const period = periodOf(query, clock.now());
      if (period instanceof Rejection) return period;
      const key = await keys.getKey(toSafeNumber(id));
      if (key === undefined) return keyNotFound(id);
      const rows = await usageHistory.readUsage({ ...period, keyId: key.id });
      const items = rows.map(({ start, operation, admitted, limited, banned, errors }) => {
        return { start: formatTime(start), operation, admitted, limited, banned, errors };
      });
      return { by: period.by, ...formatPeriod(period), items };
    },

    async getUsage({ query: { limit = USAGE_LIMIT.default, cursor, ...query } }) {
      const period = periodOf(query, clock.now());
      if (period instanceof Rejection) return period;
      const all = await usageHistory.usageByKey(
        cursor === undefined ? { ...period, limit: limit + 1 } : period,
      );
      // The cursor is the key that the page follows. One without requests is less used than all others: none follow.
      const after = all.findIndex(({ keyId }) => keyId === Number(cursor));
      const start = cursor === undefined ? 0 : after === -1 ? all.length : after + 1;
      const { items: totals, hasMore } = pageOf(all.slice(start), limit);
      const items: UsageItems[number][] = [];
      // Requests of clients run between the steps: formatting and encoding the longest page takes 10 ms.
      for (let from = 0; from < totals.length; from += FORMATTED_AT_ONCE) {
        await yieldToEventLoop();
        items.push(...totals.slice(from, from + FORMATTED_AT_ONCE).map(totalsView));
      }
      await yieldToEventLoop();
      const last = totals.at(-1);
      const nextCursor = last && hasMore ? encodeCursor("usage", BigInt(last.keyId)) : null;
      return { ...formatPeriod(period), items, nextCursor };
    },
  } satisfies Partial<AdminHandlers>;
}

function totalsView({ keyId, name, plan, admitted, limited, banned, errors, lastUsedAt }: KeyTotals) {
  return { keyId, name, plan, admitted, limited, banned, errors, lastUsedAt: formatOptionalTime(lastUsedAt) };
}

function periodOf(query: QueryOf<"getKeyUsage">, now: number): UsagePeriod | Rejection<"invalid_parameter"> {
  const { by = "day" } = query;
  const until = parseOptionalTime(query.until) ?? now;
  const since = parseOptionalTime(query.since) ?? defaultSince(by, until);
  if (since <= until) return { by, since, until };
  return new Rejection("invalid_parameter", [{ path: ["since"], message: "must not be after until" }]);
}

function formatPeriod({ by, since, until }: UsagePeriod): { since: string; until: string } {
  return {
    since: formatTime(intervalStart(by, since)),
    until: formatTime(intervalStart(by, until) + INTERVAL_LENGTH_MS[by]),
  };
}
