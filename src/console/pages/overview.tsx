import { useMemo, useState } from "preact/hooks";
import { latency } from "../../text/durations.ts";
import { countOf, grouped, figure } from "../../text/formatting.ts";
import { EXPIRES_SOON_MS } from "../../domain/api-keys.ts";
import { clockProblem } from "../../domain/clock-difference.ts";
import { CLOSE_TO_LIMIT_PERCENT } from "../../domain/rate-limit.ts";
import { DAY_MS } from "../../text/time-units.ts";
import { DEPRECATED_USE_DAYS, requestsOf } from "../../domain/usage-history.ts";
import { DEPRECATED_OPERATIONS } from "../../domain/operation-ids.ts";
import type { ServerList, Overview, Server } from "../admin-api.ts";
import { UrlSegments } from "../components/url-choices.tsx";
import { SHARED_COLUMNS, KeyLink } from "../components/key-columns.tsx";
import { Loaded, PageSection } from "../components/page.tsx";
import { type Column, DataTable } from "../components/tables.tsx";
import { MissingServers } from "../components/servers.tsx";
import { Badge, NO_VALUE, TimeAgo } from "../components/values.tsx";
import { clock, percent } from "../../pages/format.ts";
import { useCall } from "../polling.ts";
import { consoleState, serverSignal } from "../state.ts";
import {
  forgottenOf,
  shownPartOf,
  RANGE_TEXTS,
  rangeOf,
  type ShownRange,
  usualRange,
} from "../live-range.ts";
import { FirstSteps } from "./first-steps.tsx";
import { Cards } from "./overview-cards.tsx";

export function OverviewPage() {
  const startedAt = serverSignal.use()?.startedAt ?? "";
  // It stays as it is while somebody looks at the page.
  const usual = useMemo(() => usualRange(Date.now() - Date.parse(startedAt)), [startedAt]);
  const shown = rangeOf(consoleState.query.get("range"), Date.now(), usual);
  const overview = useCall("getOverview", { query: { range: shown.range } });
  const list = useCall("listServers");
  return (
    <>
      <h1 class="visually-hidden" tabIndex={-1}>
        Overview
      </h1>
      <Loaded of={overview}>
        {(data) => <Content {...{ data, shown, usual }} servers={list.data?.items ?? []} />}
      </Loaded>
    </>
  );
}

interface ContentProps {
  readonly data: Overview;
  readonly shown: ShownRange;
  readonly usual: string;
  /** Empty until they are loaded. */
  readonly servers: ServerList["items"];
}

function Content({ data, shown, usual, servers }: ContentProps) {
  const isShared = servers.length > 1;
  const part = useMemo(() => shownPartOf(data, shown), [data, shown.value]);
  const forgotten = forgottenOf(part, servers);
  return (
    <div class="sections">
      <div class="attention">
        <Health servers={servers} />
        <div class="pills">
          <Attention {...data} />
          {data.deprecatedKeys > 0 && <DeprecatedUse keys={data.deprecatedKeys} />}
        </div>
        <UrlSegments
          aria-label="Time range"
          name="range"
          options={[
            ...Object.entries(RANGE_TEXTS),
            ...(shown.part ? [[shown.value, shown.text] as const] : []),
          ]}
          initial={usual}
        />
      </div>
      <MissingServers servers={data.missing} />
      {forgotten.length > 0 && (
        <p class="muted small">
          Not in the plots:{" "}
          {forgotten.map(({ name, state, until }, i) => (
            <>
              {i > 0 && "; "}requests of <bdi>{name}</bdi>
              {state === "lost" ? ", which is lost" : ` before its start at ${clock(until * 1_000)}`}
            </>
          ))}
          . A server has its figures in memory while it runs.
        </p>
      )}
      <FirstSteps isUsed={data.topKeys.length > 0} hasRequests={data.totals.requests > 0}>
        <Cards data={part} {...{ shown, servers, forgotten }} />
      </FirstSteps>
      {isShared && (
        <PageSection title="Servers">
          <DataTable caption="Servers" columns={SERVER_COLUMNS} rows={servers} />
        </PageSection>
      )}
      {data.topKeys.length > 0 && <TopKeys {...data} />}
    </div>
  );
}

/** Whether requests are served, and by what. */
function Health({ servers }: Pick<ContentProps, "servers">) {
  const own = serverSignal.use();
  if (own === undefined) return null;
  const { database, rateLimiter, draining } = own;
  const isLost = consoleState.retryAt !== undefined;
  const isDown = database.state === "unavailable" || database.waitsForStandby;
  const isWhole = rateLimiter.state === "available" && servers.every(({ state }) => state === "up");
  const meaning = isLost ? "muted" : isDown ? "error" : draining || !isWhole ? "limited" : "ok";
  const serving = servers.length > 1 ? serversText(servers) : "Serving";
  return (
    <p class="health">
      <Badge meaning={meaning} text={isLost ? "No response" : draining ? "About to stop" : serving} />{" "}
      {!isLost && (
        <span class="muted small">
          <EngineState {...database} engine={database.kind} />,{" "}
          <EngineState {...rateLimiter} engine="limits" />
        </span>
      )}
    </p>
  );
}

/** `2 of 3 servers up`; of a server that is not heard of nobody knows whether it is. */
function serversText(servers: ServerList["items"]): string {
  const count = (state: keyof typeof STATES) => servers.filter((each) => each.state === state).length;
  const [up, unknown, lost] = [count("up"), count("unknown"), count("lost")];
  if (unknown === 0) return `${up} of ${servers.length} servers up`;
  return `${countOf(up, "server")} up, ${unknown} not heard of${lost > 0 ? `, ${lost} lost` : ""}`;
}

function EngineState({
  engine,
  state,
  waitsForStandby = false,
}: Pick<Server["database"], "state"> & {
  readonly engine: string;
  readonly waitsForStandby?: boolean;
}) {
  if (state === "unavailable") return <Badge meaning="error" text={`${engine} unavailable`} />;
  if (waitsForStandby)
    return <Badge meaning="error" text={`${engine} waits for a standby, so writes get 503`} />;
  return <>{engine} ok</>;
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
  if (shown.length === 0)
    return <p class="muted small">No key is banned, near its limit or about to expire.</p>;
  return shown.map(([count, text, url, symbol, tone]) => (
    <a key={text} class={`pill ${tone}`} href={url}>
      {symbol} {url === closeUrl && only ? <bdi>{only.name}</bdi> : countOf(count, "key")} {text}
    </a>
  ));
}

function DeprecatedUse({ keys }: { readonly keys: number }) {
  const [verb, days] = [keys === 1 ? "calls" : "call", DEPRECATED_USE_DAYS];
  return (
    <a
      class="pill tone-deprecated"
      href={`/keys?deprecated=${days}`}
      title={`Called in the last ${days} days. It is deprecated.`}
    >
      ◇ {countOf(keys, "key")} still {verb} {DEPRECATED_OPERATIONS.join(", ")}
    </a>
  );
}

/** The number of keys that fit on the first screen. */
const FIRST_KEYS = 5;

function TopKeys({ topKeys, keyRequests }: Overview) {
  const [isWhole, setWhole] = useState(false);
  const rows = isWhole ? topKeys : topKeys.slice(0, FIRST_KEYS);
  return (
    <PageSection
      title={
        <>
          Top keys <span class="muted small">by requests in the last 24 h</span>
        </>
      }
      control={
        <div class="actions">
          {rows.length < topKeys.length && (
            <button type="button" onClick={() => setWhole(true)}>
              Show {topKeys.length}
            </button>
          )}
        </div>
      }
    >
      <DataTable
        caption="Top keys"
        columns={topColumns(keyRequests)}
        rows={rows}
        identityOf={({ id }) => `${id}`}
      />
    </PageSection>
  );
}

type TopKey = Overview["topKeys"][number];

/** `all` is the number of requests with any key. */
function topColumns(all: number | undefined): readonly Column<TopKey>[] {
  return [
    { heading: "Key", position: "lead", isRowLink: true, cell: KeyLink },
    { ...SHARED_COLUMNS.plan, position: "wide-only" },
    { heading: "Share", isNumber: true, cell: (key) => (all ? percent(requestsOf(key), all) : NO_VALUE) },
    {
      heading: "Requests",
      isNumber: true,
      position: "wide-only",
      cell: (key) => grouped(requestsOf(key)),
    },
    {
      heading: "Rejected",
      isNumber: true,
      position: "wide-only",
      cell: ({ limited, banned }) => grouped(limited + banned),
    },
    SHARED_COLUMNS.minute,
    SHARED_COLUMNS.day,
    SHARED_COLUMNS.state,
    SHARED_COLUMNS.lastUsed,
  ];
}

type ListedServer = ServerList["items"][number];

function ServerName({ name, adminUrl, differing, state, clockAheadMs }: ListedServer) {
  const problem = state === "up" ? clockProblem(clockAheadMs) : undefined;
  return (
    <>
      <strong>
        <bdi class="one-line" title={name}>
          {name}
        </bdi>
      </strong>{" "}
      {adminUrl !== null && <span class="muted small">{new URL(adminUrl).host}</span>}
      {differing.length > 0 && (
        <p class="sub wrap">Differs in {differing.map((each) => `${each.name} ${each.value}`).join(", ")}</p>
      )}
      {problem !== undefined && <p class="sub wrap">Synchronize the clocks: {problem}</p>}
    </>
  );
}

const STATES = {
  up: { meaning: "ok", text: "up" },
  unknown: { meaning: "limited", text: "not heard of" },
  lost: { meaning: "error", text: "lost" },
} as const;

function State({ state, seenAt, differing }: ListedServer) {
  if (state === "up" && differing.length > 0) return <Badge meaning="limited" text="differs" />;
  return (
    <>
      <Badge {...STATES[state]} />{" "}
      {state !== "up" && (
        <span class="muted small">
          <TimeAgo at={seenAt} />
        </span>
      )}
    </>
  );
}

const SERVER_COLUMNS: readonly Column<ListedServer>[] = [
  { heading: "Server", position: "lead", cell: ServerName },
  { heading: "State", position: "at-end", cell: (each) => <State {...each} /> },
  { heading: "Version", position: "wide-only", cell: ({ version }) => version },
  { heading: "Started", position: "wide-only", cell: ({ startedAt }) => <TimeAgo at={startedAt} /> },
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
