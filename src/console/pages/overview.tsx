import { grouped } from "../../api/formatting.ts";
import { DEPRECATED_OPERATIONS, DEPRECATED_USE_DAYS } from "../../domain/usage-history.ts";
import { call, type Fleet, type Overview, type Server } from "../admin-api.ts";
import { FleetServers, FleetStats } from "../components/fleet.tsx";
import { SHARED_COLUMNS, KeyLink } from "../components/key-columns.tsx";
import { DEFAULT_RANGE, RANGES } from "../components/layout.tsx";
import { Empty, Loaded, type PageProps, PageSection } from "../components/page.tsx";
import { Plot } from "../components/plots.tsx";
import { type Column, DataTable } from "../components/tables.tsx";
import { Badge, Stat } from "../components/values.tsx";
import { compact, figure, latency, percent } from "../format.ts";
import { usePolled } from "../polling.ts";
import { useLocation } from "../router.ts";

export function OverviewPage({ server }: PageProps) {
  const { query } = useLocation();
  const range = query.get("range") ?? DEFAULT_RANGE;
  const overview = usePolled(`overview ${range}`, () => call("getOverview", { query: { range } }));
  const fleet = usePolled("servers", () => call("listServers"));
  return (
    <>
      <h1 class="visually-hidden" tabIndex={-1}>
        Overview
      </h1>
      <Loaded of={overview}>{(data) => <Content data={data} server={server} fleet={fleet.data} />}</Loaded>
    </>
  );
}

interface ContentProps {
  readonly data: Overview;
  readonly server: Server | undefined;
  /** Undefined until it is loaded. */
  readonly fleet: Fleet | undefined;
}

function Content({ data, server, fleet }: ContentProps) {
  const isShared = fleet !== undefined && fleet.items.length > 1;
  return (
    <div class="sections">
      <dl class="stats">
        {isShared ? <FleetStats fleet={fleet} /> : <Stats data={data} server={server} />}
        <CommonStats data={data} server={server} />
      </dl>
      {isShared && <FleetServers fleet={fleet} />}
      {isShared && server ? (
        <PageSection title={`Requests on ${server.instance.address}`}>
          <Plots data={data} />
        </PageSection>
      ) : (
        <Plots data={data} />
      )}
      {data.deprecatedKeys > 0 && <DeprecatedUse keys={data.deprecatedKeys} />}
      <PageSection
        title={
          <>
            Top keys <span class="muted small">by requests in the last 24 h, on all servers</span>
          </>
        }
      >
        {data.topKeys.length === 0 ? (
          <Empty title="No key was used in the last 24 hours">
            <a href="/keys/new">Create a key</a>, and send a request with it: its usage appears here within 5
            seconds.
          </Empty>
        ) : (
          <DataTable
            caption="Top keys"
            columns={TOP_COLUMNS}
            rows={data.topKeys}
            keyOf={({ id }) => `${id}`}
          />
        )}
      </PageSection>
    </div>
  );
}

function DeprecatedUse({ keys }: { readonly keys: number }) {
  return (
    <p>
      <Badge meaning="deprecated" text="Deprecated" />{" "}
      {keys === 1 ? "1 key has" : `${grouped(keys)} keys have`} called{" "}
      <code>{DEPRECATED_OPERATIONS.join(", ")}</code> in the last {DEPRECATED_USE_DAYS} days.{" "}
      <a href={`/keys?deprecated=${DEPRECATED_USE_DAYS}`}>Show</a>
    </p>
  );
}

type StatsProps = Pick<ContentProps, "data" | "server">;

/** What all servers share. */
function CommonStats({ data: { bannedKeys }, server }: StatsProps) {
  return (
    <>
      <Stat name="keys banned now" note={<a href="/keys?state=banned">Show</a>}>
        {bannedKeys === null ? "–" : grouped(bannedKeys)}
      </Stat>
      <Stat name="database" isWords note={<RateLimiterState server={server} />}>
        {server === undefined ? "–" : <DatabaseState {...server.database} />}
      </Stat>
    </>
  );
}

/** Of the only server. */
function Stats({ data, server }: StatsProps) {
  const { totals, step, requests, connections } = data;
  const range = RANGES[data.range];
  const now = lastSum(requests);
  const connected = connections.findLast((value) => value !== null) ?? null;
  return (
    <>
      <Stat name="requests now" note={`${grouped(totals.requests)} in ${range}`}>
        {now === undefined ? "–" : figure(now / step)}
        <span class="unit">/s</span>
      </Stat>
      <Stat name="limited or banned" note={`${grouped(totals.limited + totals.banned)} in ${range}`}>
        {percent(totals.limited + totals.banned, totals.requests)}
      </Stat>
      <Stat
        name={`p99 of ${range}`}
        note={totals.p50 === null ? "no requests" : `p50 ${latency(totals.p50)}`}
      >
        {totals.p99 === null ? "–" : latency(totals.p99)}
      </Stat>
      <Stat name={`server errors in ${range}`} note={`${grouped(totals.clientError)} client errors`}>
        {totals.serverError > 0 ? <span class="tone-error">■ {grouped(totals.serverError)}</span> : "0"}
      </Stat>
      <Stat name="connections now" note={<ServerState server={server} />}>
        {connected === null ? "–" : grouped(connected)}
      </Stat>
    </>
  );
}

function ServerState({ server }: Pick<ContentProps, "server">) {
  if (server?.draining) return <Badge meaning="limited" text="about to stop" />;
  return <>{server && `on ${server.instance.address}`}</>;
}

function RateLimiterState({ server }: Pick<ContentProps, "server">) {
  if (server === undefined) return null;
  const { kind, state, latencyMs } = server.rateLimiter;
  if (state === "unavailable") return <Badge meaning="error" text={`limits: ${kind} unavailable`} />;
  return <>{`limits: ${kind}${latencyMs === null ? "" : ` ${latency(latencyMs)}`}`}</>;
}

function DatabaseState({ kind, state }: Server["database"]) {
  if (state === "unavailable") return <span class="tone-error">■ {kind} unavailable</span>;
  return (
    <>
      {kind} <span class="tone-ok">ok</span>
    </>
  );
}

/** Requests of all outcomes in the last step that has data. */
function lastSum(requests: Overview["requests"]): number | undefined {
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

/** The axis begins at the first data, because a new server has none from before. It is two minutes wide at least. */
function firstShown({ times, step, connections }: Overview): number {
  const first = connections.findIndex((value) => value !== null);
  return Math.max(0, Math.min(first === -1 ? 0 : first, times.length - Math.ceil(120 / step)));
}

function Plots({ data }: Pick<ContentProps, "data">) {
  const { step, requests, p50, p99, connections } = data;
  const start = firstShown(data);
  const shared = {
    times: data.times.slice(start),
    group: "overview",
    empty: `No data yet. The first point appears within ${step} seconds.`,
  };
  return (
    <div class="plots">
      <Plot
        {...shared}
        title="Requests by outcome"
        kind="stacked"
        series={OUTCOMES.map(({ name, label, tone, symbol }) => ({
          label,
          tone,
          symbol,
          values: requests[name].slice(start).map((value) => (value === null ? null : value / step)),
        }))}
        axisValue={(value) => `${compact(value)}/s`}
        value={(value) => `${figure(value)}/s`}
      />
      <Plot
        {...shared}
        title="Latency"
        kind="lines"
        series={[
          { label: "p50", tone: "muted", symbol: "╌", isDashed: true, values: p50.slice(start) },
          { label: "p99", tone: "text", symbol: "—", values: p99.slice(start) },
        ]}
        axisValue={latency}
        value={latency}
        empty="No requests in this time."
      />
      <Plot
        {...shared}
        title="Connections"
        kind="lines"
        isCount
        series={[{ label: "open", tone: "text", symbol: "—", values: connections.slice(start) }]}
        axisValue={compact}
        value={grouped}
      />
    </div>
  );
}

const TOP_COLUMNS: readonly Column<Overview["topKeys"][number]>[] = [
  { heading: "Key", isLead: true, cell: KeyLink },
  SHARED_COLUMNS.plan,
  SHARED_COLUMNS.minute,
  SHARED_COLUMNS.day,
  { heading: "Admitted", isNumber: true, cell: ({ admitted }) => grouped(admitted) },
  { heading: "Limited", isNumber: true, cell: ({ limited, banned }) => grouped(limited + banned) },
  SHARED_COLUMNS.state,
  SHARED_COLUMNS.lastUsed,
];
