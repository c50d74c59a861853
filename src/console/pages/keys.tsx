import { useRef, useState } from "preact/hooks";
import { formatTime } from "../../api/formatting.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import { KEY_STATES, PLANS } from "../../domain/api-keys.ts";
import { call, type Key, may } from "../admin-api.ts";
import { Filters, hasFilters, SelectFilter, TextFilter } from "../components/filters.tsx";
import { type ChosenAction, KeyActionButtons, KeyActionDialog } from "../components/key-actions.tsx";
import { BanRulesText, KeyLink, LabelLinks, SHARED_COLUMNS } from "../components/key-columns.tsx";
import { Empty, PageHead, type PageProps } from "../components/page.tsx";
import { type Column, List, Menu } from "../components/tables.tsx";
import { Badge, NO_VALUE } from "../components/values.tsx";
import { capitalized } from "../format.ts";
import { announce } from "../observable.ts";
import { usePolled } from "../polling.ts";
import { navigate, urlWith, useLocation } from "../router.ts";
import { KeyCreation } from "./key-edit.tsx";

const DAYS = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
] as const;

function daysAgo(days: string | undefined): string | undefined {
  const number = Number(days ?? 0);
  return number > 0 ? formatTime(Date.now() - number * DAY_MS) : undefined;
}

function loadKeys(query: URLSearchParams) {
  const { unused, deprecated, ...parameters } = Object.fromEntries(query);
  const unusedSince = daysAgo(unused);
  // To the start of a day, as the overview counts them.
  const deprecatedSince = daysAgo(deprecated)?.replace(/T.*/, "T00:00:00Z");
  return call("listKeys", { query: { ...parameters, unusedSince, deprecatedSince, limit: 50 } });
}

export function KeyListPage({ server }: PageProps) {
  const { query } = useLocation();
  const keys = usePolled(`keys ${query}`, () => loadKeys(query));
  const publicUrl = server?.publicUrl ?? "";
  const [chosen, setChosen] = useState<ChosenAction>();
  // The form stays when the new key appears in the list: its secret is still on the screen.
  const isFirstKey = useRef(false);
  if (keys.data?.total === 0 && !hasFilters(query) && !keys.isStale) isFirstKey.current = true;
  const label = query.get("label");
  const search = query.get("search");
  const head = (
    <PageHead
      title="Keys"
      actions={
        may("createKey") && (
          <a class="button primary" href="/keys/new">
            Create key
          </a>
        )
      }
    />
  );
  if (isFirstKey.current && may("createKey")) {
    return (
      <section>
        {head}
        <Empty title="There are no keys yet">
          A client needs a key for every request. Create the first one here.
        </Empty>
        <KeyCreation publicUrl={publicUrl} />
      </section>
    );
  }
  const actions: Column<Key> = {
    heading: "Actions",
    isMenu: true,
    cell: (key) => (
      <Menu label={`Actions for ${key.name}`}>
        {may("updateKey") && <a href={`/keys/${key.id}/edit`}>Edit</a>}
        <KeyActionButtons apiKey={key} choose={setChosen} />
      </Menu>
    ),
  };
  return (
    <section>
      {head}
      <Filters>
        <TextFilter
          label="Search"
          name="search"
          type="search"
          placeholder="Name, owner, label, id, or a whole secret"
          maxLength={200}
          onSecret={openKeyOfSecret}
        />
        <SelectFilter
          label="Plan"
          name="plan"
          options={PLANS.map((plan) => [plan, capitalized(plan)] as const)}
        />
        <SelectFilter label="State" name="state" options={KEY_STATES} />
        <SelectFilter
          label="Access"
          name="access"
          options={[
            ["write", "read and write"],
            ["read", "read only"],
          ]}
        />
        <SelectFilter label="Not used for" name="unused" all="–" options={DAYS} />
        <SelectFilter label="Deprecated calls in" name="deprecated" all="–" options={DAYS} />
        {label !== null && (
          <a href={urlWith({ label: "" })} title="Remove this filter">
            Label: <bdi>{label}</bdi> ✕
          </a>
        )}
      </Filters>
      <List
        of={keys}
        noun="key"
        caption="API keys"
        columns={may("disableKey") ? [...COLUMNS, actions] : COLUMNS}
        defaultSort="id"
        empty={<Empty title="There are no keys yet">An operator with the role admin creates them.</Empty>}
        {...(search !== null && { noMatch: <NoKey search={search} /> })}
        {...(query.get("state") === "banned" && { noMatch: <NoBan /> })}
      />
      {chosen && <KeyActionDialog {...chosen} publicUrl={publicUrl} onClose={() => setChosen(undefined)} />}
    </section>
  );
}

function NoKey({ search }: { readonly search: string }) {
  return (
    <Empty title="No key matches">
      <a href="/keys">Clear the filters</a> to see all keys, or look for{" "}
      <a href={`/requests?${new URLSearchParams({ requestId: search })}`}>the request with this id</a>.
    </Empty>
  );
}

function NoBan() {
  return (
    <Empty title="No key is banned">
      <BanRulesText /> <a href="/settings?search=ban">The settings</a> say how strict that is.
    </Empty>
  );
}

const COLUMNS: readonly Column<Key>[] = [
  { heading: "Key", sort: "name", isLead: true, cell: (key) => <KeyCell apiKey={key} /> },
  {
    heading: "Owner",
    isWide: true,
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

function KeyCell({ apiKey }: { readonly apiKey: Key }) {
  const hint = apiKey.secrets[0]?.hint;
  return (
    <>
      <KeyLink {...apiKey} />
      <span class="sub key-hints">
        <span class="mono">{hint ?? `key ${apiKey.id}`}</span>
        {apiKey.access === "read" && <Badge meaning="muted" text="read only" />}
        <LabelLinks {...apiKey} />
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
