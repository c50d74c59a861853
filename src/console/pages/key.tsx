import { useMemo } from "preact/hooks";
import { formatTime, grouped } from "../../text/formatting.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import { CLOSE_TO_LIMIT_PERCENT } from "../../domain/rate-limit.ts";
import {
  COUNTS,
  INTERVAL_LENGTH_MS,
  type RequestCounts,
  requestsOf,
  sumOfRequests,
} from "../../domain/usage-history.ts";
import { DEPRECATED_OPERATIONS } from "../../domain/operation-ids.ts";
import { call, type Key } from "../admin-api.ts";
import { may } from "../session.ts";
import { banMark, useBans } from "../bans.ts";
import { UrlSelect } from "../components/url-choices.tsx";
import { KeyActionButtons } from "../components/key-actions.tsx";
import { BanRulesText, LabelLinks, StateBadge, QuotaBar } from "../components/key-columns.tsx";
import {
  Details,
  DocsButton,
  Empty,
  Loaded,
  NameTitle,
  PageHead,
  type PageProps,
  PageSection,
} from "../components/page.tsx";
import { Plot } from "../components/plots.tsx";
import { DataTable } from "../components/tables.tsx";
import {
  Badge,
  Facts,
  type Figure,
  LocalTime,
  LocalTimeAndAgo,
  NO_VALUE,
  Stats,
  TimeAgo,
} from "../components/values.tsx";
import { Copyable } from "../components/copying.tsx";
import { capitalized, change, compact, ordinal, percent } from "../../pages/format.ts";
import { useCall, usePolled } from "../polling.ts";
import { byOperation, type UsageResponse, usageSeries } from "../usage-series.ts";
import { AuditSection } from "./audit.tsx";
import { requestsUrl } from "./requests.tsx";
import { urlWith } from "../router.ts";
import { current } from "../state.ts";

export function KeyDetailsPage({ id }: PageProps) {
  const key = useCall("getKey", { id });
  return (
    <Details of={key} kind="key" id={id}>
      {(data) => (
        <div class="sections">
          <PageHead title={<NameTitle name={data.name} />} badge={<StateBadge {...data} />}>
            <KeyActionButtons apiKey={data} isFinal={false} />
            {may("updateKey") && (
              <a
                class={data.state === "expired" ? "button primary" : "button"}
                href={`/keys/${data.id}/edit`}
              >
                Edit
              </a>
            )}
          </PageHead>
          <StateSentence {...data} />
          <div class="with-aside">
            <div class="sections">
              {data.state !== "revoked" && <Windows {...data} />}
              {data.lastUsedAt === null ? <NeverUsed {...data} /> : <UsageSection {...data} />}
            </div>
            <aside class="sections">
              <About {...data} />
              <Secrets {...data} />
            </aside>
            <div class="sections">
              <AuditSection target={`key:${data.id}`} />
              {data.state !== "revoked" && may("revokeKey") && (
                <PageSection title="Revoke" isCard>
                  <p class="muted">
                    Requests with it get 401 within one second, for good. Disable it to stop it for a while.
                  </p>
                  <div class="actions">
                    <KeyActionButtons apiKey={data} isFinal />
                  </div>
                </PageSection>
              )}
            </div>
          </div>
        </div>
      )}
    </Details>
  );
}

/** Says first what people look for: whether the key works, and until when it does not. */
function StateSentence({ id, state, bannedUntil, revokedAt, expiresAt, lastUsedAt, usage }: Key) {
  const sent = lastUsedAt ? (
    <>
      Last used <TimeAgo at={lastUsedAt} />.{" "}
      <a href={`/requests?keyId=${id}${state === "banned" ? "&status=429" : ""}`}>Its requests</a>
    </>
  ) : (
    "It was never used."
  );
  const usedTo = (percent: number) =>
    [usage?.minute, usage?.day].find((window) => window && window.used * 100 >= window.limit * percent);
  const [full, close] = [usedTo(100), usedTo(CLOSE_TO_LIMIT_PERCENT)];
  if (state === "banned") {
    return (
      <p class="sentence problem">
        Banned until <LocalTimeAndAgo at={bannedUntil ?? ""} />
        <TimesBanned id={id} />: requests get 429. {sent}
      </p>
    );
  }
  if (state === "disabled")
    return <p class="sentence notice">Requests get 401 until it is enabled again. {sent}</p>;
  if (state === "active") {
    return (
      <p class={close ? "sentence notice" : "sentence"}>
        {full ? (
          <>At its limit: requests get 429, and again 200 {<TimeAgo at={full.resetsAt} />}. </>
        ) : close ? (
          <>Close to its limit, which resets {<TimeAgo at={close.resetsAt} />}. </>
        ) : (
          "It works. "
        )}
        {sent}
      </p>
    );
  }
  return (
    <p class="sentence">
      {capitalized(state)} <TimeAgo at={revokedAt ?? expiresAt} />: requests get 401. {sent}
    </p>
  );
}

/** Says how many times the key was banned: each ban is longer than the one before. */
function TimesBanned({ id }: Pick<Key, "id">) {
  const { length: count } = useBans("24h", () => Date.now() - DAY_MS, id);
  return count > 1 ? <>, for the {ordinal(count)} time in 24 hours</> : null;
}

function Windows({ usage, strikes }: Key) {
  return (
    <section aria-label="Quota">
      <dl class="quota">
        <div class="card">
          <dt>This minute</dt>
          <dd>
            <QuotaBar window={usage?.minute} isWide />
          </dd>
        </div>
        <div class="card">
          <dt>24 hours</dt>
          <dd>
            <QuotaBar window={usage?.day} isWide />
          </dd>
        </div>
        <div class="card">
          <dt>Strikes</dt>
          <dd>
            <span class="number">
              <strong>{strikes === null ? "unknown" : grouped(strikes)}</strong>
            </span>
            <details>
              <summary>What bans a key</summary>
              <p class="muted small">
                <BanRulesText />
              </p>
            </details>
          </dd>
        </div>
      </dl>
    </section>
  );
}

function About(key: Key) {
  const { plan, limits, access, owner, labels, notes, createdAt, expiresAt, revokedAt } = key;
  return (
    <PageSection title="About">
      <Facts
        facts={{
          Identifier: <Copyable text={`${key.id}`} />,
          Plan: `${capitalized(plan)}: ${grouped(limits.perMinute)} a minute, ${grouped(limits.perDay)} a day`,
          Access: access === "read" ? "Read only" : "Read and write",
          Owner: owner === null ? NO_VALUE : <bdi>{owner}</bdi>,
          Labels: labels.length === 0 ? NO_VALUE : <LabelLinks labels={labels} />,
          Created: <LocalTime at={createdAt} />,
          Expires: <LocalTime at={expiresAt} none="never" />,
          ...(revokedAt !== null && { Revoked: <LocalTime at={revokedAt} /> }),
          Notes: notes === null ? NO_VALUE : <bdi class="preserve">{notes}</bdi>,
        }}
      />
    </PageSection>
  );
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

/** How much a key was used, since when, and why requests were rejected. */
function UsageSection({ id, createdAt, limits }: Key) {
  const { query } = current;
  const { value, by, days } = PERIODS.find((period) => period.value === query.get("usage")) ?? MONTH;
  const load = (until: number) => {
    const since = formatTime(until - days * DAY_MS + (by === "day" ? DAY_MS : DAY_MS / 24));
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
          current.query.get("usage") !== "400d" && (
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

function Secrets({ secrets, revokedAt }: Key) {
  return (
    <PageSection title="Secrets">
      <ul class="secrets">
        {secrets.map(({ hint, createdAt, validUntil }) => (
          <li key={hint}>
            {hint === null ? <code>of an earlier release</code> : <Copyable text={hint} />}
            <div class="muted small">
              Created <LocalTime at={createdAt} none="at an unknown time" />,{" "}
              {revokedAt !== null && "revoked"}
              {revokedAt === null && validUntil === null && "works without end"}
              {revokedAt === null && validUntil !== null && (
                <>
                  works until <LocalTimeAndAgo at={validUntil} />
                </>
              )}
            </div>
          </li>
        ))}
      </ul>
    </PageSection>
  );
}
