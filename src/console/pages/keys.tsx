import { formatTime } from "../../text/formatting.ts";
import { DAY_MS } from "../../text/time-units.ts";
import { CLOSE_TO_LIMIT_PERCENT } from "../../domain/rate-limit.ts";
import { KEY_STATES } from "../../domain/api-keys.ts";
import { PLANS } from "../../domain/plans.ts";
import { call, type Key, type ResponseOf } from "../admin-api.ts";
import { may } from "../session.ts";
import { KeyActionButtons } from "../components/key-actions.tsx";
import { BanRulesText, KeyLink, LabelLinks, SHARED_COLUMNS } from "../components/key-columns.tsx";
import { countFilters } from "../components/filters.tsx";
import { UrlSegments } from "../components/url-choices.tsx";
import { Empty } from "../components/page.tsx";
import { REQUEST_ID } from "../components/palette.tsx";
import { type Column, Menu } from "../components/tables.tsx";
import { ListPage, NoMatch, useList } from "../components/lists.tsx";
import { Badge, NO_VALUE } from "../components/values.tsx";
import { Copyable } from "../components/copying.tsx";
import { capitalized } from "../../pages/format.ts";
import { navigate, urlWith } from "../router.ts";
import { announce, consoleState } from "../state.ts";

const DAYS = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
] as const;

const PERCENTAGES = [50, CLOSE_TO_LIMIT_PERCENT, 100].map(
  (percent) => [`${percent}`, `${percent} % of a limit`] as const,
);

/** The time so many days before now, or after it. */
function daysAway(days: string | undefined, sign: 1 | -1): string | undefined {
  const number = Number(days ?? 0);
  return number > 0 ? formatTime(Date.now() + sign * number * DAY_MS) : undefined;
}

const DEFAULT_SORT = "lastUsedAt";

function loadKeys({ unused, deprecated, expires, ...query }: Readonly<Record<string, string>>) {
  const unusedSince = daysAway(unused, -1);
  // The period begins at the start of a day, as that of the overview does.
  const deprecatedSince = daysAway(deprecated, -1)?.replace(/T.*/, "T00:00:00Z");
  return call("listKeys", {
    query: {
      ...(query["sort"] === undefined && { sort: DEFAULT_SORT, order: "desc" }),
      ...query,
      unusedSince,
      deprecatedSince,
      expiresBefore: daysAway(expires, 1),
    },
  });
}

const FILTERS = {
  search: {
    type: "search",
    placeholder: "Name, owner, label or secret",
    onSecret: openKeyOfSecret,
  },
  plan: { options: PLANS.map((plan) => [plan, capitalized(plan)] as const) },
  access: {
    isRare: true,
    options: [
      ["write", "read and write"],
      ["read", "read only"],
    ],
  },
  usedPercent: { label: "Used at least", all: "–", options: PERCENTAGES, isRare: true },
  expires: { label: "Expire within", all: "–", options: DAYS, isRare: true },
  unused: { label: "Not used for", all: "–", options: DAYS, isRare: true },
  deprecated: { label: "Deprecated calls in", all: "–", options: DAYS, isRare: true },
  state: { isElsewhere: true },
  label: { isElsewhere: true },
} as const;

export function KeyListPage() {
  const { query } = consoleState;
  const label = query.get("label");
  const keys = useList(loadKeys);
  const hasOwners = keys.data?.items.some(({ owner }) => owner !== null);
  const columns = hasOwners ? COLUMNS : COLUMNS.filter(({ heading }) => heading !== "Owner");
  const create = may("createKey") && (
    <a class="button primary" href="/keys/new">
      Create key
    </a>
  );
  return (
    <ListPage
      title="Keys"
      noun="key"
      of={keys}
      filters={FILTERS}
      linkedFilters={
        label !== null && (
          <a href={urlWith({ label: "" })} title="Remove this filter">
            Label: <bdi>{label}</bdi> ✕
          </a>
        )
      }
      columns={may("disableKey") ? [...columns, ACTIONS] : columns}
      defaultSort={DEFAULT_SORT}
      tabs={<StateTabs counts={keys.data?.counts} />}
      actions={create}
      empty={
        <Empty title="There are no keys yet" action={create}>
          A client needs a key for every request. {!create && "An operator with the role admin creates them."}
        </Empty>
      }
      noMatch={<NoKeyMatches query={query} />}
    />
  );
}

/** How many keys the other filters leave in each state. Few keys expire, so that tab comes with them. */
function StateTabs({ counts }: { readonly counts: ResponseOf<"listKeys">["counts"] | undefined }) {
  const given = consoleState.query.get("state");
  const states = KEY_STATES.filter(
    (state) => state !== "expired" || given === state || (counts?.expired ?? 0) > 0,
  );
  const total = counts && KEY_STATES.reduce((sum, state) => sum + counts[state], 0);
  return (
    <UrlSegments
      aria-label="State"
      name="state"
      initial=""
      options={[
        ["", "All", total],
        ...states.map((state) => [state, capitalized(state), counts?.[state]] as const),
      ]}
    />
  );
}

function NoKeyMatches({ query }: { readonly query: URLSearchParams }) {
  const search = query.get("search") ?? "";
  if (query.get("state") === "banned" && countFilters(query, FILTERS) === 1) {
    return (
      <Empty title="No key is banned">
        <BanRulesText /> <a href="/plans">The ban rules</a> say how strict that is.
      </Empty>
    );
  }
  return (
    <NoMatch noun="key">
      {REQUEST_ID.test(search) && (
        <>
          You can look for{" "}
          <a href={`/requests?${new URLSearchParams({ requestId: search })}`}>the request with this id</a>.
        </>
      )}
    </NoMatch>
  );
}

const COLUMNS: readonly Column<Key>[] = [
  { heading: "Key", sort: "name", position: "lead", isRowLink: true, cell: KeyCell },
  {
    heading: "Owner",
    position: "wide-only",
    cell: ({ owner }) =>
      owner === null ? (
        NO_VALUE
      ) : (
        <bdi class="one-line" title={owner}>
          {owner}
        </bdi>
      ),
  },
  SHARED_COLUMNS.plan,
  SHARED_COLUMNS.minute,
  SHARED_COLUMNS.day,
  SHARED_COLUMNS.state,
  SHARED_COLUMNS.lastUsed,
];

const ACTIONS: Column<Key> = {
  heading: "Actions",
  position: "menu-cell",
  cell: (key) => (
    <Menu label={`Actions for ${key.name}`}>
      {may("updateKey") && <a href={`/keys/${key.id}/edit`}>Edit</a>}
      <KeyActionButtons apiKey={key} shows="all" />
    </Menu>
  ),
};

function KeyCell({ id, name, secrets, access, labels }: Key) {
  return (
    <>
      <KeyLink id={id} name={name} />
      <span class="sub key-hints">
        <Copyable text={secrets[0]?.hint ?? `${id}`} />
        {access === "read" && <Badge meaning="muted" text="read only" />}
        <LabelLinks labels={labels} max={3} />
      </span>
    </>
  );
}

/** Somebody who pastes a secret into the search wants its key. */
function openKeyOfSecret(secret: string): void {
  call("findKey", { body: { secret } }).then(
    ({ id }) => navigate(`/keys/${id}`),
    () => announce("No key has this secret."),
  );
}
