import { useMemo } from "preact/hooks";
import { formatTime, grouped } from "../../text/formatting.ts";
import { DEPRECATED_OPERATIONS } from "../../domain/operation-ids.ts";
import { DAY_MS, HOUR_MS } from "../../text/time-units.ts";
import {
  COUNTS,
  INTERVAL_LENGTH_MS,
  type RequestCounts,
  requestsOf,
  sumOfRequests,
} from "../../domain/usage-history.ts";
import { call, type Key } from "../admin-api.ts";
import { banMark, useBans } from "../bans.ts";
import { DocsButton, Empty, Loaded, PageSection } from "../components/page.tsx";
import { Plot } from "../components/plots.tsx";
import { DataTable } from "../components/tables.tsx";
import { UrlSelect } from "../components/url-choices.tsx";
import { Badge, type Figure, NO_VALUE, Stats } from "../components/values.tsx";
import { capitalized, change, compact, percent } from "../../pages/format.ts";
import { usePolled } from "../polling.ts";
import { urlWith } from "../router.ts";
import { consoleState } from "../state.ts";
import { byOperation, type UsageResponse, usageSeries } from "../usage-series.ts";
import { requestsUrl } from "./requests.tsx";

/** How much a key was used, since when, and why requests were rejected. */
export function KeyHistory(key: Key) {
  return key.lastUsedAt === null ? <NeverUsed {...key} /> : <UsageSection {...key} />;
}

function NeverUsed({ state }: Pick<Key, "state">) {
  const isActive = state === "active";
  return (
    <PageSection title="History">
      <Empty
        title={isActive ? "No requests yet" : "It was never used"}
        action={isActive && <DocsButton page="">How to send one</DocsButton>}
      >
        {isActive && "They appear here within 5 seconds, by day and by operation."}
      </Empty>
    </PageSection>
  );
}

const MONTH = { value: "30d", text: "last 30 days by day", by: "day", days: 30 } as const;
const PERIODS = [
  { value: "24h", text: "last 24 h by hour", by: "hour", days: 1 },
  { value: "7d", text: "last 7 days by hour", by: "hour", days: 7 },
  MONTH,
  { value: "400d", text: "last 400 days by day", by: "day", days: 400 },
] as const;
const PERIOD_OPTIONS = PERIODS.map(({ value, text }) => [value, text] as const);

function UsageSection({ id, createdAt, limits }: Key) {
  const { query } = consoleState;
  const { value, by, days } = PERIODS.find((period) => period.value === query.get("usage")) ?? MONTH;
  const load = (until: number) => {
    const since = formatTime(until - days * DAY_MS + (by === "day" ? DAY_MS : HOUR_MS));
    return call("getKeyUsage", { id, query: { by, since, until: formatTime(until) } });
  };
  const usage = usePolled(`usage ${id} ${value}`, () => load(Date.now()));
  const earlier = usePolled(`usage before ${id} ${value}`, () => load(Date.now() - days * DAY_MS));
  return (
    <PageSection
      title="History"
      control={
        <div class="actions">
          <UrlSelect aria-label="Period" name="usage" options={PERIOD_OPTIONS} initial={MONTH.value} />
        </div>
      }
    >
      <Loaded of={usage}>
        {(history) => (
          <UsageHistory
            history={history}
            createdAt={createdAt}
            perDay={limits.perDay}
            earlier={earlier.data?.items ?? []}
            keyId={id}
          />
        )}
      </Loaded>
    </PageSection>
  );
}

interface UsageHistoryProps {
  readonly history: UsageResponse;
  readonly createdAt: string;
  readonly perDay: number;
  /** The counts of the period before; empty also if that is too long ago. */
  readonly earlier: readonly RequestCounts[];
  readonly keyId: number;
}

function UsageHistory({ history, createdAt, perDay, earlier, keyId }: UsageHistoryProps) {
  const [counts, last] = [sumOfRequests(history.items), sumOfRequests(earlier)];
  const hasEarlier = earlier.length > 0;
  const figureOf = (name: keyof RequestCounts): Figure => [
    grouped(counts[name]),
    hasEarlier && (
      <>
        {change(counts[name], last[name])}
        {last[name] > 0 && counts[name] !== last[name] && `, ${grouped(last[name])} before`}
      </>
    ),
  ];
  const plotted = useMemo(() => usageSeries(history, createdAt, perDay), [history, createdAt, perDay]);
  const { by } = history;
  const [length, [first = 0]] = [INTERVAL_LENGTH_MS[by], plotted.times];
  const bans = useBans(`${first}`, () => first * 1_000, keyId);
  // A ban is at the bar that has its requests.
  const marks = useMemo(
    () => bans.map(({ at }) => banMark(Math.floor(Date.parse(at) / length) * (length / 1_000), "banned")),
    [bans, length],
  );
  if (requestsOf(counts) === 0) {
    return (
      <Empty
        title="No requests in this period"
        action={
          consoleState.query.get("usage") !== "400d" && (
            <a class="button" href={urlWith({ usage: "400d" })}>
              See 400 days
            </a>
          )
        }
      />
    );
  }
  const isByDay = by === "day";
  return (
    <div class="sections">
      <Plot
        title={isByDay ? "Requests per day (UTC)" : "Requests per hour"}
        kind="bars"
        lead={
          <Stats
            figures={{
              admitted: figureOf("admitted"),
              limited: figureOf("limited"),
              banned: figureOf("banned"),
              "errors, of the admitted": [
                percent(counts.errors, counts.admitted),
                hasEarlier && `${percent(last.errors, last.admitted)} before`,
              ],
            }}
          />
        }
        isCount
        {...plotted}
        axisValue={compact}
        value={grouped}
        isByDay={isByDay}
        group="usage"
        marks={marks}
        noDataText="before the key"
        pointUrl={(time) => requestsUrl(time * 1_000, time * 1_000 + length, keyId)}
      />
      <DataTable
        caption="Requests by operation"
        rows={byOperation(history)}
        columns={[
          {
            heading: "Operation",
            position: "lead",
            cell: ({ operation }) => <OperationName operation={operation} />,
          },
          ...COUNTS.map((name) => ({
            heading: capitalized(name),
            isNumber: true,
            cell: (row: RequestCounts) => (row[name] ? grouped(row[name]) : NO_VALUE),
          })),
        ]}
      />
    </div>
  );
}

function OperationName({ operation }: { readonly operation: string }) {
  if (operation === "none") return <span class="muted">rejected, or unknown path</span>;
  const isDeprecated = DEPRECATED_OPERATIONS.some((id) => id === operation);
  return (
    <>
      <code>{operation}</code> {isDeprecated && <Badge meaning="deprecated" text="deprecated" />}
    </>
  );
}
