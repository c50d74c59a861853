import { MINUTE_MS } from "../../text/time-units.ts";
import { useEffect, useRef } from "preact/hooks";
import { latency } from "../../text/durations.ts";
import { formatTime } from "../../text/formatting.ts";
import { OPERATION_IDS } from "../../domain/operation-ids.ts";
import { call, type RequestEntry, type RequestPage } from "../admin-api.ts";
import { countFilters } from "../components/filters.tsx";
import { DocsButton, Empty, Loaded } from "../components/page.tsx";
import { MissingServers } from "../components/servers.tsx";
import type { Column } from "../components/tables.tsx";
import { ListPage, NoMatch, useList } from "../components/lists.tsx";
import {
  Badge,
  Facts,
  LocalTime,
  LocalTimeAndAgo,
  NameLink,
  NO_VALUE,
  OtherLink,
} from "../components/values.tsx";
import { Copyable } from "../components/copying.tsx";
import { capitalized, clockTime } from "../../pages/format.ts";
import type { Meaning } from "../../pages/meanings.ts";
import { useCall } from "../polling.ts";
import { navigate, urlWith } from "../router.ts";
import { consoleState } from "../state.ts";

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

const FILTERS = {
  requestId: { label: "Request id", type: "search", placeholder: "X-Request-Id", maxLength: 128 },
  keyId: { label: "Key", placeholder: "Identifier", maxLength: 20 },
  status: { options: STATUSES },
  operation: { options: OPERATION_IDS },
  last: { all: "Any time", options: LAST },
  code: { placeholder: "rate_limited", maxLength: 60, isRare: true },
  address: { placeholder: "192.0.2.7", maxLength: 100, isRare: true },
  slowerThanMs: { label: "Slower than", all: "Any", options: SLOWER_THAN, isRare: true },
  since: { label: "From", type: "time", isRare: true },
  until: { label: "To", type: "time", isRare: true },
} as const;

function loadRequests({ last, since = "", ...query }: Readonly<Record<string, string>>) {
  const minutes = Number(last ?? 0);
  const start = minutes > 0 ? formatTime(Date.now() - minutes * MINUTE_MS) : "";
  return call("listRequests", { query: { ...query, since: start > since ? start : since } });
}

export function RequestListPage() {
  const { query } = consoleState;
  const requests = useList(loadRequests);
  const { items = [], servers = [] } = requests.data ?? {};
  const isLive = !["until", "cursor", "requestId"].some((name) => query.has(name));
  // The only request with the id that was searched for is open by itself.
  const found = query.has("requestId") && items.length === 1 ? items[0]?.requestId : undefined;
  const openId = query.get("open") ?? found;
  const nothing = <NoRequests servers={servers} />;
  return (
    <div class={openId === undefined ? undefined : "with-aside"}>
      <ListPage
        title="Requests"
        noun="request"
        of={requests}
        isFeed={isLive}
        isOpen={({ requestId }) => requestId === openId}
        filters={FILTERS}
        columns={servers.length > 1 ? [...COLUMNS, serverColumn(servers)] : COLUMNS}
        actions={
          isLive &&
          items.length > 0 && (
            <a class="button" href={urlWith({ until: formatTime(Date.now()) })}>
              Pause
            </a>
          )
        }
        note={servers.length > 1 && <MissingServers servers={servers} />}
        empty={nothing}
        noMatch={nothing}
      />
      {openId !== undefined && (
        <OpenRequest
          key={openId}
          requestId={openId}
          shown={items.find(({ requestId }) => requestId === openId)}
          servers={servers}
          takesFocus={openId !== found}
        />
      )}
    </div>
  );
}

/** A server has forgotten what it has no room for, and what was before its start. */
function NoRequests({ servers }: Pick<RequestPage, "servers">) {
  const { query } = consoleState;
  const problems = servers.flatMap(({ problem }) => problem ?? []);
  if (problems.length > 0 && problems.length === servers.length) {
    // Notes have the problem of each of several servers.
    const [problem = ""] = problems.length > 1 ? ["no requests to show"] : problems;
    const [reason = "", advice] = problem.split("; ");
    const Message = countFilters(query, FILTERS) > 0 ? NoMatch : Empty;
    return <Message title={capitalized(reason)}>{advice && `${capitalized(advice)}.`}</Message>;
  }
  const oldest = servers.flatMap(({ since }) => since ?? []).toSorted()[0] ?? null;
  const day = query.get("since")?.slice(0, "2026-11-16".length);
  if (countFilters(query, FILTERS) === 0 || oldest === null) {
    return (
      <Empty
        title="No requests since the server started"
        action={<DocsButton page="">How to send one</DocsButton>}
      >
        Each request of a client appears here within two seconds.
      </Empty>
    );
  }
  return (
    <NoMatch noun="request">
      The oldest one in memory: <LocalTime at={oldest} />.{" "}
      {day !== undefined && <a href={`/audit?since=${day}&until=${day}`}>See the changes of that day</a>}
    </NoMatch>
  );
}

const COLUMNS: readonly Column<RequestEntry>[] = [
  { heading: "When", position: "last", cell: ({ at }) => <LocalTime at={at} text={clockTime} /> },
  {
    heading: "Request",
    position: "lead",
    isRowLink: true,
    cell: ({ method, path, requestId }) => (
      <span class="mono">
        <NameLink url={withOpen(requestId)} name={`${method} ${path}`} />
      </span>
    ),
  },
  {
    heading: "Status",
    position: "at-end",
    cell: ({ status, code, message = null }) =>
      status < 400 ? (
        <span class="no-sign">{status}</span>
      ) : (
        <span title={message ?? ""}>
          <Badge meaning={meaningOf(status, code)} text={`${status} ${code ?? ""}`} />
        </span>
      ),
  },
  {
    heading: "Duration",
    isNumber: true,
    position: "below-end",
    cell: ({ durationMs }) => latency(durationMs),
  },
  { heading: "Key", cell: KeyOfRequest },
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

function KeyOfRequest({ keyId, keyName }: Pick<RequestEntry, "keyId" | "keyName">) {
  if (keyId === null) return NO_VALUE;
  return <OtherLink url={`/keys/${keyId}`} name={keyName ?? `key ${keyId}`} />;
}

function serverColumn(servers: RequestPage["servers"]): Column<RequestEntry> {
  const names = new Map(servers.map(({ id, name }) => [id, name]));
  return { heading: "Server", position: "wide-only", cell: ({ server }) => <bdi>{names.get(server)}</bdi> };
}

/** The meaning of a status from 400 on: what went well needs no sign. */
function meaningOf(status: number, code: string | null): Meaning {
  if (status >= 500 || code === "key_banned") return "error";
  return status === 429 ? "limited" : "muted";
}

/** The URL of this list with a request beside it. It is the same page of the list. */
function withOpen(requestId: string): string {
  return urlWith({ cursor: consoleState.query.get("cursor") ?? "", open: requestId });
}

/** The focus goes back to the row. */
function close(): void {
  document.querySelector<HTMLElement>("[data-open] .row-link")?.focus();
  navigate(urlWith({ cursor: consoleState.query.get("cursor") ?? "", open: "", requestId: "" }));
}

/** How much before and after a request is of its moment. */
const AROUND_MS = 5_000;

interface OpenRequestProps extends Pick<RequestPage, "servers"> {
  readonly requestId: string;
  /** The request as the list has it. */
  readonly shown: RequestEntry | undefined;
  readonly takesFocus: boolean;
}

/** Everything that is known of a request, beside the list. */
function OpenRequest({ requestId, shown, servers, takesFocus }: OpenRequestProps) {
  const found = useCall("listRequests", { query: { requestId, limit: "1" } });
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (takesFocus) heading.current?.focus();
  }, []);
  const request = found.data?.items[0] ?? shown;
  return (
    <aside
      class="beside"
      aria-labelledby="request"
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <section>
        <div class="page-head">
          <h2 id="request" ref={heading} tabIndex={-1}>
            Request
          </h2>
          <button type="button" class="menu" aria-label="Close" onClick={close}>
            ✕
          </button>
        </div>
        {request ? (
          <RequestFacts {...request} serverName={servers.find(({ id }) => id === request.server)?.name} />
        ) : (
          <Loaded of={found}>{() => <p class="muted">No server has it in memory any more.</p>}</Loaded>
        )}
      </section>
    </aside>
  );
}

function RequestFacts(request: RequestEntry & { readonly serverName: string | undefined }) {
  const { at, requestId, method, path, status, code, message = null, operation, durationMs } = request;
  const { keyId, address, userAgent, serverName } = request;
  const ms = Date.parse(at);
  return (
    <>
      <Facts
        facts={{
          Request: <bdi class="wrap mono">{`${method} ${path}`}</bdi>,
          Status: status < 400 ? `${status}` : <Badge meaning={meaningOf(status, code)} text={`${status}`} />,
          ...(code !== null && { Code: <a href={`/requests?code=${code}`}>{<code>{code}</code>}</a> }),
          ...(message !== null && { Message: <bdi>{message}</bdi> }),
          Duration: latency(durationMs),
          When: <LocalTimeAndAgo at={at} />,
          UTC: at,
          Key: <KeyOfRequest {...request} />,
          Operation: operation === null ? NO_VALUE : <code>{operation}</code>,
          Address: <Copyable text={address} />,
          "User agent": userAgent === null ? NO_VALUE : <bdi>{userAgent}</bdi>,
          Server: serverName === undefined ? NO_VALUE : <bdi>{serverName}</bdi>,
          "Request id": <Copyable text={requestId} />,
        }}
      />
      <p>
        <a href={requestsUrl(ms - AROUND_MS, ms + AROUND_MS, keyId)}>
          {keyId === null ? "Requests" : "Requests of its key"} around that time
        </a>
      </p>
    </>
  );
}
