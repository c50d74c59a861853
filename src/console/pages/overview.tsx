import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { DEPRECATED_OPERATIONS, DEPRECATED_USE_DAYS } from "../../domain/usage-history.ts";
import { call, type Overview as OverviewData, type Server } from "../admin-api.ts";
import { Badge } from "../components/badge.tsx";
import {
  DAY_COLUMN,
  KeyLink,
  LAST_USED_COLUMN,
  MINUTE_COLUMN,
  PLAN_COLUMN,
  STATE_COLUMN,
  withoutSort,
} from "../components/key-columns.tsx";
import { DEFAULT_RANGE, RANGES } from "../components/layout.tsx";
import { Empty, Loaded } from "../components/loading.tsx";
import { Plot } from "../components/plot.tsx";
import { type Column, Table } from "../components/table.tsx";
import { compact, count, figure, latency, percent } from "../format.ts";
import { usePolled } from "../polling.ts";
import { usePlace } from "../router.ts";
import type { Series } from "../series.ts";
import type { PageProps } from "./page.ts";

export function Overview({ session: { server } }: PageProps) {
  const { query } = usePlace();
  const range = query.get("range") ?? DEFAULT_RANGE;
  const overview = usePolled(`overview ${range}`, () => call("getOverview", { query: { range } }));
  return (
    <>
      <h1 class="visually-hidden" tabIndex={-1}>
        Overview
      </h1>
      <Loaded of={overview}>{(data) => <Content data={data} server={server} />}</Loaded>
    </>
  );
}

interface ContentProps {
  readonly data: OverviewData;
  readonly server: Server | undefined;
}

function Content({ data, server }: ContentProps) {
  return (
    <div class="sections">
      <Stats data={data} server={server} />
      <Plots data={data} />
      {data.deprecatedKeys > 0 && <DeprecatedUse keys={data.deprecatedKeys} />}
      <section aria-labelledby="top-keys">
        <h2 id="top-keys">
          Top keys <span class="muted small">by requests in the last 24 h, on all servers</span>
        </h2>
        {data.topKeys.length === 0 ? <NoTopKeys /> : <TopKeys keys={data.topKeys} />}
      </section>
    </div>
  );
}

function DeprecatedUse({ keys }: { readonly keys: number }) {
  return (
    <p>
      <Badge meaning="deprecated" text="Deprecated" /> {keys === 1 ? "1 key has" : `${count(keys)} keys have`}{" "}
      called <code>{DEPRECATED_OPERATIONS.join(", ")}</code> in the last {DEPRECATED_USE_DAYS} days.{" "}
      <a href={`/keys?deprecated=${DEPRECATED_USE_DAYS}`}>Show</a>
    </p>
  );
}

function Stats({ data, server }: ContentProps) {
  const { totals, step, requests, connections, bannedKeys } = data;
  const range = RANGES[data.range];
  const now = lastSum(requests);
  return (
    <dl class="stats">
      <Stat name="requests now" note={`${count(totals.requests)} in ${range}`}>
        {now === undefined ? "–" : figure(now / step)}
        <span class="unit">/s</span>
      </Stat>
      <Stat name="limited or banned" note={`${count(totals.limited + totals.banned)} in ${range}`}>
        {percent(totals.limited + totals.banned, totals.requests)}
      </Stat>
      <Stat name="keys banned now" note={<a href="/keys?state=banned">Show</a>}>
        {bannedKeys === null ? "–" : count(bannedKeys)}
      </Stat>
      <Stat
        name={`p99 of ${range}`}
        note={totals.p50 === null ? "no requests" : `p50 ${latency(totals.p50)}`}
      >
        {totals.p99 === null ? "–" : latency(totals.p99)}
      </Stat>
      <Stat name={`server errors in ${range}`} note={`${count(totals.clientError)} client errors`}>
        {totals.serverError > 0 ? <span class="tone-error">■ {count(totals.serverError)}</span> : "0"}
      </Stat>
      <Stat name="connections now" note={<ServerState server={server} />}>
        {last(connections) ?? "–"}
      </Stat>
      <Stat name="database" isWords note={<RateLimiterState server={server} />}>
        {server === undefined ? "–" : <Engine {...server.database} />}
      </Stat>
    </dl>
  );
}

function ServerState({ server }: Pick<ContentProps, "server">) {
  if (server === undefined) return null;
  return server.draining ? (
    <Badge meaning="limited" text="about to stop" />
  ) : (
    <>on {server.instance.address}</>
  );
}

function RateLimiterState({ server }: Pick<ContentProps, "server">) {
  if (server === undefined) return null;
  const { kind, state, latencyMs } = server.rateLimiter;
  if (state === "unavailable") return <Badge meaning="error" text={`limits: ${kind} unavailable`} />;
  return <>{`limits: ${kind}${latencyMs === null ? "" : ` ${latency(latencyMs)}`}`}</>;
}

function Engine({ kind, state }: Server["database"]) {
  return state === "available" ? (
    <>
      {kind} <span class="tone-ok">ok</span>
    </>
  ) : (
    <span class="tone-error">■ {kind} unavailable</span>
  );
}

interface StatProps {
  readonly name: string;
  readonly note?: ComponentChildren;
  readonly isWords?: boolean;
  readonly children: ComponentChildren;
}

function Stat({ name, note, isWords = false, children }: StatProps) {
  return (
    <div class="stat">
      <dt>{name}</dt>
      <dd class={isWords ? "words" : undefined}>{children}</dd>
      <dd class="note muted small">{note}</dd>
    </div>
  );
}

type Values = readonly (number | null)[];

function last(values: Values): string | undefined {
  const value = values.findLast((each) => each !== null);
  return value === undefined || value === null ? undefined : count(value);
}

/** Requests of all outcomes in the last step that has data. */
function lastSum(requests: OverviewData["requests"]): number | undefined {
  const index = requests.success.findLastIndex((value) => value !== null);
  if (index === -1) return undefined;
  return Object.values(requests).reduce((sum, values) => sum + (values[index] ?? 0), 0);
}

const OUTCOMES = [
  { name: "success", label: "success", tone: "ok", symbol: "●" },
  { name: "clientError", label: "client error", tone: "muted", symbol: "◆" },
  { name: "limited", label: "limited", tone: "limited", symbol: "▲" },
  { name: "banned", label: "banned", tone: "error", symbol: "■" },
  { name: "serverError", label: "server error", tone: "error", symbol: "✕" },
] as const;

const GROUP = "overview";
const perSecond = (value: number) => `${figure(value)}/s`;

/** The axis begins at the first data, because a new server has none from before. It is two minutes wide at least. */
function firstShown({ times, step, connections }: OverviewData): number {
  const first = connections.findIndex((value) => value !== null);
  return Math.max(0, Math.min(first === -1 ? 0 : first, times.length - Math.ceil(120 / step)));
}

function Plots({ data }: Pick<ContentProps, "data">) {
  const { times, outcomes, latencies, open } = useMemo(() => seriesOf(data), [data]);
  const shared = {
    times,
    group: GROUP,
    empty: `No data yet. The first point appears within ${data.step} seconds.`,
  };
  return (
    <div class="plots">
      <Plot
        {...shared}
        title="Requests by outcome"
        kind="stacked"
        series={outcomes}
        axisValue={(value) => `${compact(value)}/s`}
        value={perSecond}
      />
      <Plot
        {...shared}
        title="Latency"
        kind="lines"
        series={latencies}
        axisValue={latency}
        value={latency}
        empty="No requests in this time."
      />
      <Plot
        {...shared}
        title="Connections"
        kind="lines"
        isCount
        series={open}
        axisValue={compact}
        value={count}
      />
    </div>
  );
}

interface OverviewSeries {
  readonly times: readonly number[];
  readonly outcomes: readonly Series[];
  readonly latencies: readonly Series[];
  readonly open: readonly Series[];
}

function seriesOf(data: OverviewData): OverviewSeries {
  const { times, step, requests, p50, p99, connections } = data;
  const start = firstShown(data);
  return {
    times: times.slice(start),
    outcomes: OUTCOMES.map(({ name, label, tone, symbol }) => ({
      label,
      tone,
      symbol,
      values: requests[name].slice(start).map((value) => (value === null ? null : value / step)),
    })),
    latencies: [
      { label: "p50", tone: "muted", symbol: "╌", isDashed: true, values: p50.slice(start) },
      { label: "p99", tone: "text", symbol: "—", values: p99.slice(start) },
    ],
    open: [{ label: "open", tone: "text", symbol: "—", values: connections.slice(start) }],
  };
}

type TopKey = OverviewData["topKeys"][number];

const TOP_COLUMNS: readonly Column<TopKey>[] = [
  { heading: "Key", isLead: true, cell: KeyLink },
  withoutSort(PLAN_COLUMN),
  MINUTE_COLUMN,
  withoutSort(DAY_COLUMN),
  { heading: "Admitted", isNumber: true, cell: ({ admitted }) => count(admitted) },
  { heading: "Limited", isNumber: true, cell: ({ limited, banned }) => count(limited + banned) },
  STATE_COLUMN,
  withoutSort(LAST_USED_COLUMN),
];

function TopKeys({ keys }: { readonly keys: readonly TopKey[] }) {
  return <Table caption="Top keys" columns={TOP_COLUMNS} rows={keys} keyOf={({ id }) => `${id}`} hasLinks />;
}

function NoTopKeys() {
  return (
    <Empty title="No key was used in the last 24 hours">
      <p>
        <a href="/keys/new">Create a key</a>, and send a request with it: its usage appears here within 5
        seconds.
      </p>
    </Empty>
  );
}
