import { countOf, formatTime } from "../../text/formatting.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import { KEY_STATES } from "../../domain/api-keys.ts";
import { PLANS } from "../../domain/key-fields.ts";
import { call, type Key, may } from "../admin-api.ts";
import { KeyActionButtons } from "../components/key-actions.tsx";
import { BanRulesText, KeyLink, LabelLinks, SHARED_COLUMNS } from "../components/key-columns.tsx";
import { Empty } from "../components/page.tsx";
import { type Column, ListPage, Menu, NoMatch, useList } from "../components/tables.tsx";
import { Badge, NO_VALUE } from "../components/values.tsx";
import { capitalized } from "../format.ts";
import { navigate, urlWith } from "../router.ts";
import { announce, current } from "../state.ts";

const DAYS = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
] as const;

/** The time so many days before now, or after it. */
function daysAway(days: string | undefined, sign: 1 | -1): string | undefined {
  const number = Number(days ?? 0);
  return number > 0 ? formatTime(Date.now() + sign * number * DAY_MS) : undefined;
}

function loadKeys({ unused, deprecated, expires, ...query }: Readonly<Record<string, string>>) {
  const unusedSince = daysAway(unused, -1);
  // The period begins at the start of a day, as that of the overview does.
  const deprecatedSince = daysAway(deprecated, -1)?.replace(/T.*/, "T00:00:00Z");
  return call("listKeys", {
    query: {
      revoked: "exclude",
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
    placeholder: "Name, owner, label, id, or a whole secret",
    onSecret: openKeyOfSecret,
  },
  plan: { options: PLANS.map((plan) => [plan, capitalized(plan)] as const) },
  state: { options: KEY_STATES },
  access: {
    options: [
      ["write", "read and write"],
      ["read", "read only"],
    ],
  },
  revoked: { all: "Hidden", options: [["include", "Shown, last"]] },
  expires: { label: "Expire within", all: "–", options: DAYS },
  unused: { label: "Not used for", all: "–", options: DAYS },
  deprecated: { label: "Deprecated calls in", all: "–", options: DAYS },
} as const;

export function KeyListPage() {
  const { query } = current;
  const label = query.get("label");
  const keys = useList(loadKeys);
  const { hidden = 0 } = keys.data ?? {};
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
      columns={may("disableKey") ? [...COLUMNS, ACTIONS] : COLUMNS}
      defaultSort="id"
      actions={
        may("createKey") && (
          <a class="button primary" href="/keys/new">
            Create key
          </a>
        )
      }
      hidden={
        hidden > 0 && (
          <a href={urlWith({ revoked: "include" })} title="Show them">
            {countOf(hidden, "revoked key")} hidden
          </a>
        )
      }
      empty={
        <Empty title={hidden > 0 ? "All keys are revoked" : "There are no keys yet"}>
          A client needs a key for every request.{" "}
          {may("createKey") ? (
            <a href="/keys/new">Create {hidden > 0 ? "a new one" : "the first one"}.</a>
          ) : (
            "An operator with the role admin creates them."
          )}
        </Empty>
      }
      noMatch={<NoKeyMatches query={query} />}
    />
  );
}

function NoKeyMatches({ query }: { readonly query: URLSearchParams }) {
  const search = query.get("search");
  if (query.get("state") === "banned") {
    return (
      <Empty title="No key is banned">
        <BanRulesText /> <a href="/plans">The ban rules</a> say how strict that is.
      </Empty>
    );
  }
  if (search === null) return <NoMatch noun="key" />;
  return (
    <Empty title="No key matches">
      <a href="/keys">Clear the filters</a> to see all keys, or look for{" "}
      <a href={`/requests?${new URLSearchParams({ requestId: search })}`}>the request with this id</a>.
    </Empty>
  );
}

const COLUMNS: readonly Column<Key>[] = [
  { heading: "Key", sort: "name", position: "lead", cell: KeyCell },
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
      <KeyActionButtons apiKey={key} />
    </Menu>
  ),
};

function KeyCell({ id, name, secrets, access, labels }: Key) {
  return (
    <>
      <KeyLink id={id} name={name} />
      <span class="sub key-hints">
        <span class="mono">{secrets[0]?.hint ?? `key ${id}`}</span>
        {access === "read" && <Badge meaning="muted" text="read only" />}
        <LabelLinks labels={labels} />
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
