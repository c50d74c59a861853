import { useMemo } from "preact/hooks";
import { DEPRECATED_OPERATIONS } from "../../domain/usage-history.ts";
import { call, type Key } from "../admin-api.ts";
import { compact, count, localTime, percent, utcDay } from "../format.ts";
import { usePolled } from "../polling.ts";
import { navigate, urlWith, usePlace } from "../router.ts";
import { byOperation, type KeyUsageHistory, totalOf, usageSeries } from "../usage-series.ts";
import { Badge } from "./badge.tsx";
import { Loaded } from "./loading.tsx";
import { Plot } from "./plot.tsx";
import { Table } from "./table.tsx";

const DAY_MS = 86_400_000;
const PERIODS = {
  "24h": { text: "24 h by hour", by: "hour", days: 1 },
  "7d": { text: "7 days by hour", by: "hour", days: 7 },
  "30d": { text: "30 days by day", by: "day", days: 30 },
  "400d": { text: "400 days by day", by: "day", days: 400 },
} as const;
type Period = keyof typeof PERIODS;

function isPeriod(text: string | null): text is Period {
  return text !== null && text in PERIODS;
}

/** How much a key was used, since when, and why requests were rejected. */
export function KeyUsageSection({ apiKey }: { readonly apiKey: Key }) {
  const { query } = usePlace();
  const asked = query.get("usage");
  const period = isPeriod(asked) ? asked : "30d";
  const { by, days } = PERIODS[period];
  const usage = usePolled(`usage ${apiKey.id} ${period}`, () => {
    const now = Date.now();
    const length = by === "day" ? DAY_MS : DAY_MS / 24;
    const since = new Date(now - days * DAY_MS + length).toISOString();
    return call("getKeyUsage", { id: apiKey.id, query: { by, since, until: new Date(now).toISOString() } });
  });
  return (
    <section aria-labelledby="usage">
      <div class="page-head">
        <h2 id="usage">Usage</h2>
        <select
          aria-label="Period"
          value={period}
          onChange={({ currentTarget: { value } }) =>
            navigate(urlWith({ usage: value === "30d" ? "" : value }))
          }
        >
          {Object.entries(PERIODS).map(([value, { text }]) => (
            <option key={value} value={value}>
              last {text}
            </option>
          ))}
        </select>
      </div>
      <Loaded of={usage}>{(history) => <Usage history={history} createdAt={apiKey.createdAt} />}</Loaded>
    </section>
  );
}

interface UsageProps {
  readonly history: KeyUsageHistory;
  readonly createdAt: string;
}

function Usage({ history, createdAt }: UsageProps) {
  const { times, series } = useMemo(() => usageSeries(history, createdAt), [history, createdAt]);
  const { admitted, limited, banned, errors } = totalOf(history);
  if (admitted + limited + banned === 0) {
    return <p class="muted">No requests in this period. A request is counted here within 5 seconds.</p>;
  }
  return (
    <div class="sections">
      <dl class="stats">
        <Total name="admitted" value={admitted} />
        <Total name="limited" value={limited} />
        <Total name="banned" value={banned} />
        <div class="stat">
          <dt>errors, of the admitted</dt>
          <dd>{percent(errors, admitted)}</dd>
        </div>
      </dl>
      <Plot
        title={history.by === "day" ? "Requests per day (UTC)" : "Requests per hour"}
        kind="bars"
        isCount
        times={times}
        series={series}
        axisValue={compact}
        value={count}
        timeText={history.by === "day" ? utcDay : localTime}
        isInUtc={history.by === "day"}
        group="usage"
        empty="No requests in this period."
      />
      <Table
        caption="Requests by operation"
        rows={byOperation(history)}
        keyOf={({ operation }) => operation}
        columns={[
          {
            heading: "Operation",
            isLead: true,
            cell: ({ operation }) =>
              operation === "none" ? (
                <span class="muted">rejected, or unknown path</span>
              ) : (
                <OperationName operation={operation} />
              ),
          },
          { heading: "Admitted", isNumber: true, cell: (row) => count(row.admitted) },
          { heading: "Limited", isNumber: true, cell: (row) => count(row.limited) },
          { heading: "Banned", isNumber: true, cell: (row) => count(row.banned) },
          { heading: "Errors", isNumber: true, cell: (row) => count(row.errors) },
        ]}
      />
    </div>
  );
}

function OperationName({ operation }: { readonly operation: string }) {
  return (
    <>
      <code>{operation}</code> {isDeprecated(operation) && <Badge meaning="deprecated" text="deprecated" />}
    </>
  );
}

function isDeprecated(operation: string): boolean {
  return DEPRECATED_OPERATIONS.some((id) => id === operation);
}

function Total({ name, value }: { readonly name: string; readonly value: number }) {
  return (
    <div class="stat">
      <dt>{name}</dt>
      <dd>{count(value)}</dd>
    </div>
  );
}
