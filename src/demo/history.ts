import { DEFAULT_PLANS, limitsOf } from "../domain/plans.ts";
import { DEFAULT_BAN } from "../domain/ban-rules.ts";
import { decide, newQuota, type Quota } from "../domain/rate-limit.ts";
import { DAY_MS, HOUR_MS } from "../text/time-units.ts";
import { intervalStart, type KeyCounts, type UsageBatch } from "../domain/usage-history.ts";
import { latencyHistogram } from "../observe/histogram.ts";
import type { FiguresOf } from "../observe/live-series.ts";
import type { OperationId } from "../domain/operation-ids.ts";
import { anyOperation, type DemoClient, OPEN_MS, Pace } from "./clients.ts";

/** The requests of one client in one hour. */
interface Hour {
  readonly admitted: Map<OperationId, number>;
  limited: number;
  banned: number;
  lastUsedAt: number;
}

/** The requests of one client before the start of the demo. */
export interface EarlierRequests {
  /** The quota of the client at the start. */
  readonly quota: Quota;
  /** The requests of the client today, by the start of the hour. */
  readonly hours: ReadonlyMap<number, Hour>;
}

/** Makes the requests that a client sent today, and decides them as a server would. */
export function earlierRequests(client: DemoClient, now: number): EarlierRequests {
  const { key, habit, perSecond, isNew = false } = client;
  const quota = newQuota();
  const hours = new Map<number, Hour>();
  const openedAt = now - OPEN_MS;
  const pace = new Pace(client, openedAt);
  const limits = limitsOf(key.plan, key.limits, DEFAULT_PLANS);
  for (let at = perSecond === 0 || isNew ? now : openedAt; at < now;) {
    const decision = decide(quota, limits, at, DEFAULT_BAN);
    const start = intervalStart("hour", at);
    const hour = hours.get(start) ?? { admitted: new Map(), limited: 0, banned: 0, lastUsedAt: at };
    hours.set(start, hour);
    hour.lastUsedAt = at;
    if (decision.outcome === "allowed") {
      const operation = anyOperation(habit);
      hour.admitted.set(operation, (hour.admitted.get(operation) ?? 0) + 1);
    } else hour[decision.outcome]++;
    at += pace.pauseMsAfter(decision, at);
  }
  return { quota, hours };
}

interface DemoUsage extends EarlierRequests {
  readonly client: DemoClient;
  readonly keyId: number;
}

/** Two months of usage: one for the plots of the console, and one for comparison. */
const DAYS = 60;

/** Yields the usage of today, and before it that of days which resemble today. */
export function* usageBatches(clients: readonly DemoUsage[], now: number): Generator<UsageBatch> {
  const current = intervalStart("hour", now);
  let sequence = 0;
  for (let daysAgo = DAYS; daysAgo >= 0; daysAgo--) {
    const used = clients.filter(({ client }) => client.createdDaysAgo > daysAgo);
    const share = daysAgo === 0 ? 1 : shareOf(now - daysAgo * DAY_MS);
    // The last 24 hours contain the whole of their first hour, so yesterday ends before it.
    const last = daysAgo === 0 ? current : current - HOUR_MS;
    for (let start = intervalStart("hour", now - OPEN_MS); start <= last; start += HOUR_MS) {
      const keys = used.flatMap(({ keyId, hours }) => {
        const hour = hours.get(start);
        return hour
          ? [{ keyId, ...countsOf(hour, share), lastUsedAt: hour.lastUsedAt - daysAgo * DAY_MS }]
          : [];
      });
      yield { writer: "demo", sequence: ++sequence, hour: start - daysAgo * DAY_MS, keys };
    }
  }
}

/** Returns the figures of a server to which the clients have sent the requests of today. */
export function liveFigures(used: readonly DemoUsage[], now: number): FiguresOf {
  const connections = used.filter(({ hours }) => hours.size > 0).length;
  return (startsAt, stepMs) => {
    const hourAt = intervalStart("hour", startsAt);
    const usedFrom = Math.max(hourAt, now - OPEN_MS);
    const usedMs = Math.min(hourAt + HOUR_MS, now) - usedFrom;
    const hours = used.flatMap(({ hours: all }) => all.get(hourAt) ?? []);
    const inStep = (of: (hour: Hour) => number) => {
      const all = hours.reduce((sum, hour) => sum + of(hour), 0);
      const before = (time: number) => Math.floor((all * Math.max(0, time - usedFrom)) / usedMs);
      return usedMs > 0 ? before(startsAt + stepMs) - before(startsAt) : 0;
    };
    const admitted = inStep((hour) => countsOf(hour, 1).admitted);
    const clientError = Math.round(admitted * 0.02);
    const requests = {
      success: admitted - clientError,
      clientError,
      limited: inStep(({ limited }) => limited),
      banned: inStep(({ banned }) => banned),
      serverError: 0,
    };
    const latencies = latencyHistogram();
    for (let n = 0; n < admitted; n++) latencies.observe(secondsOfRequest());
    return { requests, latencies: Uint32Array.from(latencies.counts), connections };
  };
}

/** Returns a time that is mostly below a millisecond, and for one request in a hundred ten times as long. */
function secondsOfRequest(): number {
  return (0.0003 + 0.0006 * Math.random() * Math.random()) * (Math.random() < 0.01 ? 10 : 1);
}

/** The requests of an earlier day as a share of those of today: fewer on Saturdays and Sundays. */
function shareOf(time: number): number {
  return ([0, 6].includes(new Date(time).getUTCDay()) ? 0.6 : 1) * (0.75 + 0.25 * Math.random());
}

function countsOf(
  { admitted, limited, banned }: Hour,
  share: number,
): Omit<KeyCounts, "keyId" | "lastUsedAt"> {
  const byOperation = [...admitted].map(([operation, requests]) => {
    const count = Math.round(requests * share);
    return { operation, admitted: count, errors: Math.round(count * 0.02) };
  });
  return {
    admitted: byOperation.reduce((sum, each) => sum + each.admitted, 0),
    limited: Math.round(limited * share),
    banned: Math.round(banned * share),
    errors: byOperation.reduce((sum, each) => sum + each.errors, 0),
    byOperation,
  };
}
