import { useMemo } from "preact/hooks";
import { countOf, grouped } from "../../text/formatting.ts";
import { CLOSE_TO_LIMIT_PERCENT, EXPIRES_SOON_MS } from "../../domain/api-keys.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import { DEPRECATED_OPERATIONS, DEPRECATED_USE_DAYS } from "../../domain/usage-history.ts";
import { type Fleet, may, type Overview, type Server } from "../admin-api.ts";
import { SHARED_COLUMNS, KeyLink } from "../components/key-columns.tsx";
import { UrlSegments } from "../components/filters.tsx";
import { Empty, Loaded, PageSection } from "../components/page.tsx";
import { Plot, type Series } from "../components/plots.tsx";
import { type Column, DataTable } from "../components/tables.tsx";
import { Badge, type Figure, MissingServers, NO_VALUE, Stats, TimeAgo } from "../components/values.tsx";
import { compact, figure, latency, percent } from "../format.ts";
import { useCall } from "../polling.ts";
import { requestsUrl } from "./requests.tsx";
import { current, server } from "../state.ts";

const RANGES = { "15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h" } as const;
const DEFAULT_RANGE = "1h";

export function OverviewPage() {
  const { query } = current;
  const given = query.get("range") ?? "";
  const range = Object.hasOwn(RANGES, given) ? given : DEFAULT_RANGE;
  const overview = useCall("getOverview", { query: { range } });
  const fleet = useCall("listServers");
  return (
    <>
      <h1 class="visually-hidden" tabIndex={-1}>
        Overview
      </h1>
      <Loaded of={overview}>{(data) => <Content data={data} fleet={fleet.data} />}</Loaded>
    </>
  );
}

/** The fleet is undefined until it is loaded. */
function Content({ data, fleet }: { readonly data: Overview; readonly fleet: Fleet | undefined }) {
  const ownServer = server.use();
  const isShared = fleet !== undefined && fleet.items.length > 1;
  const database: Figure = ownServer
    ? [<AdapterState {...ownServer.database} />, <>limits: {<AdapterState {...ownServer.rateLimiter} />}</>]
    : ["–"];
  return (
    <div class="sections">
      <div class="attention">
        <Attention {...data} />
        {data.deprecatedKeys > 0 && <DeprecatedUse keys={data.deprecatedKeys} />}
        <UrlSegments
          aria-label="Time range"
          name="range"
          options={Object.entries(RANGES)}
          initial={DEFAULT_RANGE}
        />
      </div>
      <div class="leading">
        <Stats figures={{ ...(isShared ? fleetFigures(fleet) : serverFigures(data, ownServer)), database }} />
      </div>
      {isShared && (
        <PageSection title="Servers">
          <DataTable caption="Servers" columns={SERVER_COLUMNS} rows={fleet.items} />
        </PageSection>
      )}
      {isShared ? (
        <PageSection title="Requests on all servers">
          <MissingServers servers={data.missing} />
          <Plots {...data} latencyTitle="Latency of the slowest server" />
        </PageSection>
      ) : (
        <Plots {...data} latencyTitle="Latency" />
      )}
      <PageSection
        title={
          <>
            Top keys <span class="muted small">by requests in the last 24 h, on all servers</span>
          </>
        }
      >
        {data.topKeys.length === 0 ? (
          <Empty title="No key was used in the last 24 hours">
            {may("createKey") && <a href="/keys/new">Create a key.</a>} The usage of a key appears here within
            5 seconds of a request.
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

const EXPIRES_SOON_DAYS = EXPIRES_SOON_MS / DAY_MS;

/** What a person should look at, in words. */
function Attention({ bannedKeys, closeKeys, expiringKeys = 0 }: Overview) {
  const { total: close = 0, first = null } = closeKeys ?? {};
  const only = close === 1 ? first : null;
  const closeUrl = only ? `/keys/${only.id}` : `/keys?state=active&usedPercent=${CLOSE_TO_LIMIT_PERCENT}`;
  const sentences = [
    [bannedKeys ?? 0, "banned", "/keys?state=banned", "■", "tone-error"],
    [close, "close to the limit", closeUrl, "▲", "tone-limited"],
    [expiringKeys, "about to expire", `/keys?expires=${EXPIRES_SOON_DAYS}`, "▲", "tone-limited"],
  ] as const;
  const shown = sentences.filter(([count]) => count > 0);
  if (shown.length === 0) return <p class="muted">No key is banned, near its limit or about to expire.</p>;
  return (
    <p>
      {shown.map(([count, text, url, symbol, tone]) => (
        <a key={text} class={tone} href={url}>
          {symbol} {url === closeUrl && only ? <bdi>{only.name}</bdi> : countOf(count, "key")} {text}
        </a>
      ))}
    </p>
  );
}

function DeprecatedUse({ keys }: { readonly keys: number }) {
  return (
    <p>
      <Badge meaning="deprecated" text="Deprecated" /> {countOf(keys, "key")} {keys === 1 ? "has" : "have"}{" "}
      called <code>{DEPRECATED_OPERATIONS.join(", ")}</code> in the last {DEPRECATED_USE_DAYS} days.{" "}
      <a href={`/keys?deprecated=${DEPRECATED_USE_DAYS}`}>Show</a>
    </p>
  );
}

/** The figures of all servers together. */
function fleetFigures({ items, total }: Fleet): Readonly<Record<string, Figure>> {
  const rejections = `${grouped(total.rejections)} of ${grouped(total.requests)}`;
  return {
    "requests now": [
      perSecond(total.requestsPerSecond),
      `on ${countOf(items.filter(({ state }) => state !== "lost").length, "server")}`,
    ],
    "limited or banned": [percent(total.rejections, total.requests), `${rejections} since the start`],
    "p99 of 15 minutes": percentiles(total),
    "server errors": [errorCount(total.serverErrors), "since the start"],
    "connections now": [grouped(total.connections)],
  };
}

function perSecond(rate: number | undefined) {
  return (
    <>
      {rate === undefined ? "–" : figure(rate)}
      <span class="unit">/s</span>
    </>
  );
}

function percentiles({ p50, p99 }: Pick<Fleet["total"], "p50" | "p99">): Figure {
  return [p99 === null ? "–" : latency(p99), p50 === null ? "no requests" : `p50 ${latency(p50)}`];
}

function errorCount(count: number) {
  return count > 0 ? <span class="tone-error">■ {grouped(count)}</span> : "0";
}

/** The figures of the only server. */
function serverFigures(data: Overview, server: Server | undefined): Readonly<Record<string, Figure>> {
  const { totals, step, requests, connections } = data;
  const range = RANGES[data.range];
  const now = lastSum(requests);
  const rejections = totals.limited + totals.banned;
  const connected = connections.findLast((value) => value !== null) ?? null;
  return {
    "requests now": [perSecond(now && now / step), `${grouped(totals.requests)} in ${range}`],
    "limited or banned": [percent(rejections, totals.requests), `${grouped(rejections)} in ${range}`],
    [`p99 of ${range}`]: percentiles(totals),
    [`server errors in ${range}`]: [
      errorCount(totals.serverError),
      `${grouped(totals.clientError)} client errors`,
    ],
    "connections now": [connected === null ? "–" : grouped(connected), serverState(server)],
  };
}

function serverState(server: Server | undefined) {
  if (server?.draining) return <Badge meaning="limited" text="about to stop" />;
  return server && `on ${server.instance.address}`;
}

function AdapterState({ kind, state }: Server["database"] | Server["rateLimiter"]) {
  if (state === "unavailable") return <Badge meaning="error" text={`${kind} unavailable`} />;
  return <>{kind} ok</>;
}

/** Requests of all outcomes in the last step that has data. */
function lastSum(requests: Overview["requests"]): number | undefined {
  const index = requests.success.findLastIndex((value) => value !== null);
  if (index === -1) return undefined;
  return Object.values(requests).reduce((sum, values) => sum + (values[index] ?? 0), 0);
}

const OUTCOMES = [
  { name: "success", label: "success", tone: "ok", symbol: "●" },
  { name: "clientError", label: "4xx", tone: "muted", symbol: "◆" },
  { name: "limited", label: "limited", tone: "limited", symbol: "▲" },
  { name: "banned", label: "banned", tone: "error", symbol: "■" },
  { name: "serverError", label: "5xx", tone: "error", symbol: "✕" },
] as const;

function outcomeSeries(requests: Overview["requests"], step: number): Series[] {
  return OUTCOMES.map(({ name, label, tone, symbol }) => {
    const values = requests[name].map((value) => (value === null ? null : value / step));
    return { label, tone, symbol, values };
  });
}

function latencySeries(p50: Overview["p50"], p99: Overview["p99"]): Series[] {
  return [
    { label: "p50", tone: "muted", symbol: "╌", isDashed: true, values: p50 },
    { label: "p99", tone: "text", symbol: "—", values: p99 },
  ];
}

type PlotsProps = Overview & { readonly latencyTitle: string };

function Plots({ range, times, step, requests, p50, p99, latencyTitle }: PlotsProps) {
  const shared = {
    times,
    group: "overview",
    // A time is the end of its step.
    pointUrl: (time: number) => requestsUrl((time - step) * 1_000, time * 1_000),
    emptyText: `none in the last ${RANGES[range]}`,
  };
  const outcomes = useMemo(() => outcomeSeries(requests, step), [requests, step]);
  const latencies = useMemo(() => latencySeries(p50, p99), [p50, p99]);
  return (
    <div class="plots">
      <Plot
        {...shared}
        title="Requests by outcome"
        kind="stacked"
        series={outcomes}
        axisValue={(value) => `${compact(value)}/s`}
        value={(value) => `${figure(value)}/s`}
      />
      <Plot
        {...shared}
        title={latencyTitle}
        kind="lines"
        series={latencies}
        axisValue={latency}
        value={latency}
      />
    </div>
  );
}

const TOP_COLUMNS: readonly Column<Overview["topKeys"][number]>[] = [
  { heading: "Key", position: "lead", cell: KeyLink },
  SHARED_COLUMNS.plan,
  SHARED_COLUMNS.minute,
  SHARED_COLUMNS.day,
  { heading: "Admitted", isNumber: true, position: "wide-only", cell: ({ admitted }) => grouped(admitted) },
  {
    heading: "Limited",
    isNumber: true,
    position: "wide-only",
    cell: ({ limited, banned }) => grouped(limited + banned),
  },
  SHARED_COLUMNS.state,
  SHARED_COLUMNS.lastUsed,
];

type FleetServer = Fleet["items"][number];

function ServerName({ name, adminUrl, differing }: FleetServer) {
  return (
    <>
      <bdi class="name">{name}</bdi>{" "}
      {adminUrl !== null && <span class="muted small">{new URL(adminUrl).host}</span>}
      {differing.length > 0 && (
        <p class="sub wrap">
          Differs from most: {differing.map((each) => `${each.name} ${each.value}`).join(", ")}
        </p>
      )}
    </>
  );
}

const STATES = {
  up: { meaning: "ok", text: "up" },
  unknown: { meaning: "limited", text: "not heard of" },
  lost: { meaning: "error", text: "lost" },
} as const;

function State({ state, seenAt, differing }: FleetServer) {
  if (state === "up" && differing.length > 0) return <Badge meaning="limited" text="differs" />;
  return (
    <>
      <Badge {...STATES[state]} /> {state !== "up" && <TimeAgo at={seenAt} />}
    </>
  );
}

const SERVER_COLUMNS: readonly Column<FleetServer>[] = [
  { heading: "Server", position: "lead", cell: ServerName },
  { heading: "State", position: "at-end", cell: (each) => <State {...each} /> },
  { heading: "Version", position: "wide-only", cell: ({ version }) => version },
  { heading: "Started", cell: ({ startedAt }) => <TimeAgo at={startedAt} /> },
  { heading: "Requests/s", isNumber: true, cell: ({ requestsPerSecond }) => figure(requestsPerSecond) },
  { heading: "Requests", isNumber: true, position: "wide-only", cell: ({ requests }) => grouped(requests) },
  { heading: "Rejected", isNumber: true, cell: ({ rejections }) => grouped(rejections) },
  {
    heading: "p50",
    isNumber: true,
    position: "wide-only",
    cell: ({ p50 }) => (p50 === null ? NO_VALUE : latency(p50)),
  },
  { heading: "p99", isNumber: true, cell: ({ p99 }) => (p99 === null ? NO_VALUE : latency(p99)) },
];
