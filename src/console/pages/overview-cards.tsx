import { useMemo } from "preact/hooks";
import { latency } from "../../text/durations.ts";
import { countOf, grouped, figure } from "../../text/formatting.ts";
import type { ServerList, Overview } from "../admin-api.ts";
import { banMark, useBans } from "../bans.ts";
import type { Mark, Series } from "../components/plot-data.ts";
import { Plot } from "../components/plots.tsx";
import { Stats } from "../components/values.tsx";
import { change, compact, percent } from "../../pages/format.ts";
import { type Forgotten, partValue, type ShownRange } from "../live-range.ts";
import { urlWith } from "../router.ts";
import { requestsUrl } from "./requests.tsx";

const OUTCOMES = [
  { name: "success", label: "success", tone: "series", symbol: "●" },
  { name: "clientError", label: "4xx", tone: "muted", symbol: "◆" },
  { name: "limited", label: "limited", tone: "limited", symbol: "▲" },
  { name: "banned", label: "banned", tone: "error", symbol: "■" },
  { name: "serverError", label: "5xx", tone: "fault", symbol: "✕" },
] as const;

function outcomeSeries(requests: Overview["requests"], step: number): Series[] {
  return OUTCOMES.map(({ name, label, tone, symbol }) => {
    const values = requests[name].map((value) => (value === null ? null : value / step));
    return { label, tone, symbol, values };
  });
}

function latencySeries(p50: Overview["p50"], p99: Overview["p99"]): Series[] {
  return [
    { label: "p50", tone: "muted", symbol: "– –", isDashed: true, values: p50 },
    { label: "p99", tone: "text", symbol: "—", values: p99 },
  ];
}

interface CardsProps {
  readonly data: Overview;
  readonly shown: ShownRange;
  readonly servers: ServerList["items"];
  readonly forgotten: readonly Forgotten[];
}

/** How much, how fast and how much rejected: each figure with its plot. */
export function Cards({ data, shown, servers, forgotten }: CardsProps) {
  const { times, step, requests, p50, p99, totals, before } = data;
  const [only, ...others] = forgotten;
  const incomplete = only && {
    until: Math.max(...forgotten.map(({ until }) => until)),
    text: `without ${others.length === 0 ? only.name : `${forgotten.length} servers`}`,
  };
  const shared = {
    times,
    group: "overview",
    // A time is the end of its step.
    pointUrl: (time: number) => requestsUrl((time - step) * 1_000, time * 1_000),
    zoomUrl: (from: number, until: number) => urlWith({ range: partValue(from, until) }),
    noDataText: "before the start",
    // Latency has no value without requests either, which is known.
    isUnknown: (index: number) => requests.success[index] === null,
    incomplete,
    emptyText: shown.part ? "none at that time" : `none in the last ${shown.text}`,
  };
  const marks = useMarks(data, shown, servers);
  const outcomes = useMemo(() => outcomeSeries(requests, step), [requests, step]);
  const latencies = useMemo(() => latencySeries(p50, p99), [p50, p99]);
  const rejected = useMemo(
    () => outcomes.filter(({ label }) => label === "limited" || label === "banned"),
    [outcomes],
  );
  const now = lastSum(requests);
  const rejections = totals.limited + totals.banned;
  const length = shown.part ? "that time" : shown.text;
  /** How a figure has changed since the period before, with what it was on hover. */
  const changeText = (
    value: number | null,
    earlier: number | null | undefined,
    text: (value: number) => string,
  ) =>
    value === null || earlier === null || earlier === undefined ? null : (
      <span title={`${text(earlier)} in the ${length} before`}>{change(value, earlier)}</span>
    );
  // Long ranges have whole minutes.
  const sinceStart = step < 60 ? "since the start" : "up to the last minute";
  const since = requests.success[0] === null ? sinceStart : `in ${length}`;
  const count = (value: number, earlier: number | undefined) => {
    const changed = changeText(value, earlier, grouped);
    return (
      <>
        {grouped(value)} {since}
        {changed && <>, {changed}</>}
      </>
    );
  };
  const slower = changeText(totals.p99, before?.p99, latency);
  const { serverError: failed } = totals;
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const failedUrl = `${requestsUrl((first - step) * 1_000, last * 1_000)}&status=5xx`;
  const moreFailed =
    failed + (before?.serverError ?? 0) > 0 && changeText(failed, before?.serverError, grouped);
  return (
    <div class="plots">
      <Plot
        {...shared}
        title="Requests per second"
        lead={
          <Stats
            figures={{
              [shown.part ? "at the end" : step < 60 ? "now" : "last minute"]: [
                perSecond(now && now / step),
                count(totals.requests, before?.requests),
              ],
              [failed === 1 ? "server error" : "server errors"]: [
                failed > 0 ? (
                  <a class="tone-fault" href={failedUrl}>
                    ✕ {grouped(failed)}
                  </a>
                ) : (
                  "0"
                ),
                <>
                  {countOf(totals.clientError, "client error")}
                  {moreFailed && <>, 5xx {moreFailed}</>}
                </>,
              ],
            }}
          />
        }
        kind="stacked"
        series={outcomes}
        marks={marks}
        axisValue={(value) => `${compact(value)}/s`}
        value={figure}
      />
      <Plot
        {...shared}
        title={servers.length > 1 ? "Latency of the slowest server" : "Latency"}
        lead={
          <Stats
            figures={{
              [shown.part ? "highest p99" : `p99 of ${length}`]: [
                totals.p99 === null ? "–" : latency(totals.p99),
                <>
                  {totals.p50 === null ? "none admitted" : `p50 ${latency(totals.p50)}`}
                  {slower && <>, p99 {slower}</>}
                </>,
              ],
            }}
          />
        }
        kind="lines"
        isLog
        series={latencies}
        axisValue={latency}
        value={latency}
      />
      <Plot
        {...shared}
        title="Rejected per second"
        lead={
          <Stats
            figures={{
              "of all requests": [
                percent(rejections, totals.requests),
                count(rejections, before ? before.limited + before.banned : undefined),
              ],
            }}
          />
        }
        kind="stacked"
        series={rejected}
        axisValue={(value) => `${compact(value)}/s`}
        value={figure}
      />
    </div>
  );
}

function perSecond(rate: number | undefined) {
  return (
    <>
      {rate === undefined ? "–" : figure(rate)}
      <span class="unit">/s</span>
    </>
  );
}

/** Requests of all outcomes in the last step that has data. */
function lastSum(requests: Overview["requests"]): number | undefined {
  const index = requests.success.findLastIndex((value) => value !== null);
  if (index === -1) return undefined;
  return Object.values(requests).reduce((sum, values) => sum + (values[index] ?? 0), 0);
}

/** The bans and the starts of servers that the plots span. */
function useMarks({ times }: Overview, { value }: ShownRange, servers: ServerList["items"]) {
  const since = (times[0] ?? 0) * 1_000;
  const bans = useBans(value, () => since);
  const starts = servers.map(({ name, startedAt }) => `${startedAt} ${name}`).join("\n");
  return useMemo<readonly Mark[]>(() => {
    const banned = bans.map(({ at, target }) =>
      banMark(Date.parse(at) / 1_000, `${target?.name ?? `key ${target?.id}`} was banned`),
    );
    const started = servers.map(({ name, startedAt }): Mark => {
      const text = servers.length > 1 ? `${name} started` : "the server started";
      return { time: Date.parse(startedAt) / 1_000, label: "starts", tone: "muted", symbol: "▽", text };
    });
    const [first = 0, last = 0] = [times[0], times.at(-1)];
    return [...banned, ...started]
      .filter(({ time }) => time > first && time <= last)
      .toSorted((a, b) => a.time - b.time);
  }, [bans, starts, times]);
}
