import { formatTime } from "../../text/formatting.ts";
import { OPERATION_IDS } from "../../domain/usage-history.ts";
import { call, type RequestEntry, type RequestPage } from "../admin-api.ts";
import { hasFilters } from "../components/filters.tsx";
import { Empty } from "../components/page.tsx";
import { type Column, ListPage, useList } from "../components/tables.tsx";
import {
  Badge,
  Facts,
  LocalTime,
  type Meaning,
  MissingServers,
  NameLink,
  NO_VALUE,
} from "../components/values.tsx";
import { clockTime, latency } from "../format.ts";
import { urlWith } from "../router.ts";
import { current } from "../state.ts";

/** The requests of a period in milliseconds since the epoch, of all keys or of one. */
export function requestsUrl(since: number, until: number, keyId?: number | bigint | null): string {
  const url = `/requests?since=${formatTime(since)}&until=${formatTime(until)}`;
  return keyId === undefined || keyId === null ? url : `${url}&keyId=${keyId}`;
}

const STATUSES = ["2xx", "4xx", "5xx", "400", "401", "403", "404", "409", "429", "500", "503"];
/** Periods up to now, in minutes. */
const LAST = [
  ["5", "5 minutes"],
  ["15", "15 minutes"],
  ["60", "hour"],
  ["1440", "24 hours"],
] as const;
const SLOWER_THAN = [10, 100, 1_000, 5_000].map((ms) => [`${ms}`, latency(ms)] as const);

function loadRequests({ last, since = "", ...query }: Readonly<Record<string, string>>) {
  const minutes = Number(last ?? 0);
  const start = minutes > 0 ? formatTime(Date.now() - minutes * 60_000) : "";
  return call("listRequests", { query: { ...query, since: start > since ? start : since } });
}

export function RequestListPage() {
  const { query } = current;
  const requests = useList(loadRequests);
  const { items = [], servers = [] } = requests.data ?? {};
  const status = query.get("status") ?? "";
  const isLive = !["until", "cursor", "requestId"].some((name) => query.has(name));
  const found = query.has("requestId") && items.length === 1 ? items[0] : undefined;
  const nothing = <NoRequests servers={servers} />;
  return (
    <ListPage
      title="Requests"
      noun="request"
      of={requests}
      filters={{
        requestId: { label: "Request id", type: "search", placeholder: "X-Request-Id", maxLength: 128 },
        keyId: { label: "Key", placeholder: "Identifier", maxLength: 20 },
        status: { options: [...new Set([...STATUSES, status])].filter(Boolean) },
        code: { placeholder: "rate_limited", maxLength: 60 },
        operation: { options: OPERATION_IDS },
        address: { placeholder: "192.0.2.7", maxLength: 100 },
        last: { all: "–", options: LAST },
        since: { label: "From", type: "time" },
        until: { label: "To", type: "time" },
        slowerThanMs: { label: "Slower than", all: "–", options: SLOWER_THAN },
      }}
      columns={servers.length > 1 ? [...COLUMNS, serverColumn(servers)] : COLUMNS}
      actions={
        isLive &&
        items.length > 0 && (
          <a class="button" href={urlWith({ until: formatTime(Date.now()) })}>
            Pause
          </a>
        )
      }
      note={<MissingServers servers={servers} />}
      empty={nothing}
      noMatch={nothing}
    >
      {found && <RequestFacts request={found} />}
    </ListPage>
  );
}

/** A server has forgotten what it has no room for, and what was before its start. */
function NoRequests({ servers }: Pick<RequestPage, "servers">) {
  const { query } = current;
  const oldest = servers.flatMap(({ since }) => since ?? []).toSorted()[0] ?? null;
  const day = query.get("since")?.slice(0, "2026-11-16".length);
  if (!hasFilters(query)) {
    return (
      <Empty title="No requests since the server started">
        Each request of a client appears here within two seconds.{" "}
        <a href="/settings?search=request-log">The settings</a> say how much memory there is for them.
      </Empty>
    );
  }
  return (
    <Empty title="No request matches">
      The oldest one in memory: <LocalTime at={oldest} none="none" />.{" "}
      <a href="/requests">Clear the filters</a>
      {day !== undefined && (
        <>
          , or see <a href={`/audit?since=${day}&until=${day}`}>the changes of that day</a>
        </>
      )}
      .
    </Empty>
  );
}

const COLUMNS: readonly Column<RequestEntry>[] = [
  { heading: "When", cell: ({ at }) => <LocalTime at={at} text={clockTime} /> },
  {
    heading: "Request",
    position: "lead",
    cell: ({ method, path, requestId }) => (
      <NameLink url={`/requests?${new URLSearchParams({ requestId })}`} name={`${method} ${path}`} />
    ),
  },
  {
    heading: "Status",
    position: "at-end",
    cell: ({ status, code }) => <Badge meaning={meaningOf(status, code)} text={`${status}`} />,
  },
  {
    heading: "Code",
    cell: ({ code, message = null }) =>
      code === null ? (
        NO_VALUE
      ) : (
        <>
          <code>{code}</code>{" "}
          <span class="one-line" title={message ?? ""}>
            {message}
          </span>
        </>
      ),
  },
  { heading: "Duration", isNumber: true, cell: ({ durationMs }) => latency(durationMs) },
  {
    heading: "Key",
    cell: ({ keyId, keyName = null }) =>
      keyId === null ? (
        NO_VALUE
      ) : (
        <>
          <a class="above" href={`/keys/${keyId}`}>
            key {keyId}
          </a>{" "}
          <bdi class="one-line" title={keyName ?? ""}>
            {keyName}
          </bdi>
        </>
      ),
  },
  { heading: "Address", position: "wide-only", cell: ({ address }) => address },
  {
    heading: "User agent",
    position: "wide-only",
    cell: ({ userAgent }) => (
      <bdi class="one-line" title={userAgent ?? ""}>
        {userAgent ?? NO_VALUE}
      </bdi>
    ),
  },
];

function serverColumn(servers: RequestPage["servers"]): Column<RequestEntry> {
  const names = new Map(servers.map(({ id, name }) => [id, name]));
  return { heading: "Server", position: "wide-only", cell: ({ server }) => <bdi>{names.get(server)}</bdi> };
}

function meaningOf(status: number, code: string | null): Meaning {
  if (status >= 500 || code === "key_banned") return "error";
  if (status === 429) return "limited";
  return status < 400 ? "ok" : "muted";
}

/** How much before and after a request is of its moment. */
const AROUND_MS = 5_000;

function RequestFacts({ request }: { readonly request: RequestEntry }) {
  const { at, requestId, method, path, operation, keyId } = request;
  const ms = Date.parse(at);
  const shown = COLUMNS.map(({ heading, cell }) => [heading, cell(request)] as const);
  return (
    <div class="sections">
      <Facts
        facts={{
          "Request id": requestId,
          ...Object.fromEntries(shown),
          Request: `${method} ${path}`,
          UTC: at,
          Operation: operation ?? NO_VALUE,
        }}
      />
      <p>
        <a href={requestsUrl(ms - AROUND_MS, ms + AROUND_MS, keyId)}>
          {keyId === null ? "Requests" : "Requests of its key"} around that time
        </a>
      </p>
    </div>
  );
}
