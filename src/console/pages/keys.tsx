import { useRef, useState } from "preact/hooks";
import { KEY_STATES } from "../../domain/key-view.ts";
import { PLANS } from "../../domain/plans.ts";
import { call, type Key } from "../admin-api.ts";
import { BanRules } from "../components/ban-rules.tsx";
import { Filters, SelectFilter, TextFilter } from "../components/filters.tsx";
import { FindKeyDialog, openKeyOfSecret } from "../components/find-key.tsx";
import { canDo, type KeyAction, KeyActionDialog } from "../components/key-actions.tsx";
import {
  AccessBadge,
  DAY_COLUMN,
  KeyLink,
  Labels,
  LAST_USED_COLUMN,
  MINUTE_COLUMN,
  PLAN_COLUMN,
  STATE_COLUMN,
} from "../components/key-columns.tsx";
import { KeyCreation } from "../components/key-creation.tsx";
import { Empty, Loaded } from "../components/loading.tsx";
import { Menu } from "../components/menu.tsx";
import { type Column, Pager, Table } from "../components/table.tsx";
import { capitalized, plural } from "../format.ts";
import { type Polled, usePolled } from "../polling.ts";
import { urlWith, usePlace } from "../router.ts";
import type { Session } from "../session.ts";
import type { PageProps } from "./page.ts";

const DAY_MS = 86_400_000;
const DAYS = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
] as const;
const FILTERS = ["search", "plan", "state", "access", "label", "owner", "unused", "deprecated"] as const;

type KeyList = Awaited<ReturnType<typeof call<"listKeys">>>;

function useKeys(): Polled<KeyList> & { readonly isFiltered: boolean } {
  const { query } = usePlace();
  const text = (name: string) => query.get(name) ?? undefined;
  const keys = usePolled(`keys ${query}`, () => {
    const unusedSince = daysAgo(text("unused"));
    // To the start of a day, as the overview counts them.
    const deprecatedSince = daysAgo(text("deprecated"))?.replace(/T.*/, "T00:00:00Z");
    const { search, plan, state, access, label, owner, sort, order, cursor } = Object.fromEntries(query);
    return call("listKeys", {
      query: {
        search,
        plan,
        state,
        access,
        label,
        owner,
        unusedSince,
        deprecatedSince,
        sort,
        order,
        cursor,
        limit: 50,
      },
    });
  });
  return { ...keys, isFiltered: FILTERS.some((name) => query.has(name)) };
}

function daysAgo(days: string | undefined): string | undefined {
  const count = Number(days ?? 0);
  return count > 0 ? new Date(Date.now() - count * DAY_MS).toISOString() : undefined;
}

export function Keys({ session }: PageProps) {
  const keys = useKeys();
  const [isFinding, setFinding] = useState(false);
  // The form stays when the new key appears in the list: its secret is still on the screen.
  const isFirstKey = useRef(false);
  if (keys.data?.total === 0 && !keys.isFiltered && !keys.isStale) isFirstKey.current = true;
  return (
    <>
      <div class="page-head">
        <h1 tabIndex={-1}>Keys</h1>
        <div class="actions">
          <button type="button" onClick={() => setFinding(true)}>
            Find by secret
          </button>
          <a class="button primary" href="/keys/new">
            Create key
          </a>
        </div>
      </div>
      <Loaded of={keys}>
        {(list) =>
          isFirstKey.current ? (
            <section>
              <Empty title="There are no keys yet">
                <p>A client needs a key for every request. Create the first one here.</p>
              </Empty>
              <KeyCreation session={session} />
            </section>
          ) : (
            <KeyListSection list={list} session={session} />
          )
        }
      </Loaded>
      {isFinding && <FindKeyDialog onClose={() => setFinding(false)} />}
    </>
  );
}

interface KeyListProps {
  readonly list: KeyList;
  readonly session: Session;
}

function KeyListSection({ list, session }: KeyListProps) {
  const { query } = usePlace();
  const [chosen, setChosen] = useState<{ readonly action: KeyAction; readonly apiKey: Key }>();
  const columns = [...COLUMNS, menuColumn((action, apiKey) => setChosen({ action, apiKey }))];
  const label = query.get("label");
  return (
    <section>
      <Filters>
        <TextFilter
          label="Search"
          name="search"
          type="search"
          placeholder="Name, owner, label, hint or id"
          maxLength={200}
          hasShortcut
          intercept={openKeyOfSecret}
        />
        <SelectFilter
          label="Plan"
          name="plan"
          options={PLANS.map((plan) => [plan, capitalized(plan)] as const)}
        />
        <SelectFilter
          label="State"
          name="state"
          options={KEY_STATES.map((state) => [state, state] as const)}
        />
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
      {list.items.length === 0 ? (
        <NoMatch query={query} />
      ) : (
        <Table
          caption="API keys"
          columns={columns}
          rows={list.items}
          keyOf={({ id }) => `${id}`}
          hasLinks
          defaultSort="id"
        />
      )}
      <Pager nextCursor={list.nextCursor} total={plural(list.total, "key")} />
      {chosen && <KeyActionDialog {...chosen} session={session} onClose={() => setChosen(undefined)} />}
    </section>
  );
}

function NoMatch({ query }: { readonly query: URLSearchParams }) {
  if (query.get("state") === "banned") {
    return (
      <Empty title="No key is banned">
        <p>
          <BanRules /> <a href="/settings?search=ban">The settings</a> say how strict that is.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No key matches">
      <p>
        <a href="/keys">Clear the filters</a> to see all keys.
      </p>
    </Empty>
  );
}

const COLUMNS: readonly Column<Key>[] = [
  { heading: "Key", sort: "name", isLead: true, cell: (key) => <KeyCell apiKey={key} /> },
  {
    heading: "Owner",
    cell: ({ owner }) =>
      owner === null ? (
        <span class="muted none">–</span>
      ) : (
        <bdi class="one-line" title={owner}>
          {owner}
        </bdi>
      ),
  },
  PLAN_COLUMN,
  MINUTE_COLUMN,
  DAY_COLUMN,
  STATE_COLUMN,
  LAST_USED_COLUMN,
];

function KeyCell({ apiKey }: { readonly apiKey: Key }) {
  const hint = apiKey.secrets[0]?.hint;
  return (
    <>
      <KeyLink {...apiKey} />
      <span class="sub key-hints">
        <span class="mono">{hint ?? `key ${apiKey.id}`}</span>
        <AccessBadge {...apiKey} />
        <Labels {...apiKey} />
      </span>
    </>
  );
}

function menuColumn(choose: (action: KeyAction, key: Key) => void): Column<Key> {
  return {
    heading: "Actions",
    isMenu: true,
    cell: (key) => (
      <Menu label={`Actions for ${key.name}`}>
        <a href={`/keys/${key.id}/edit`}>Edit</a>
        {canDo("unban", key) && (
          <button type="button" onClick={() => choose("unban", key)}>
            Unban
          </button>
        )}
        {canDo("roll", key) && (
          <button type="button" onClick={() => choose("roll", key)}>
            Roll secret
          </button>
        )}
        {canDo("revoke", key) && (
          <button type="button" class="danger" onClick={() => choose("revoke", key)}>
            Revoke
          </button>
        )}
      </Menu>
    ),
  };
}
