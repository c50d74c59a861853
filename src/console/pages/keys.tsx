import { useRef, useState } from "preact/hooks";
import { formatTime } from "../../api/formatting.ts";
import { DAY_MS } from "../../domain/rate-limit.ts";
import { KEY_STATES } from "../../domain/key-list.ts";
import { PLANS } from "../../domain/plans.ts";
import { call, type Key } from "../admin-api.ts";
import { FormDialog } from "../components/dialogs.tsx";
import { Filters, hasFilters, SelectFilter, TextFilter } from "../components/filters.tsx";
import { TextField } from "../components/forms.tsx";
import { type ChosenAction, KeyActionButtons, KeyActionDialog } from "../components/key-actions.tsx";
import { BanRulesText, SHARED_COLUMNS, KeyLink, LabelLinks } from "../components/key-columns.tsx";
import { Empty, PageHead, type PageProps } from "../components/page.tsx";
import { type Column, List, Menu } from "../components/tables.tsx";
import { Badge, NO_VALUE } from "../components/values.tsx";
import { capitalized } from "../format.ts";
import { usePolled } from "../polling.ts";
import { navigate, urlWith, useLocation } from "../router.ts";
import { KeyCreation } from "./key-edit.tsx";

const DAYS = [
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
] as const;

function useKeys(query: URLSearchParams) {
  return usePolled(`keys ${query}`, () => {
    const { unused, deprecated, ...parameters } = Object.fromEntries(query);
    const unusedSince = daysAgo(unused);
    // To the start of a day, as the overview counts them.
    const deprecatedSince = daysAgo(deprecated)?.replace(/T.*/, "T00:00:00Z");
    return call("listKeys", { query: { ...parameters, unusedSince, deprecatedSince, limit: 50 } });
  });
}

function daysAgo(days: string | undefined): string | undefined {
  const number = Number(days ?? 0);
  return number > 0 ? formatTime(Date.now() - number * DAY_MS) : undefined;
}

export function KeyListPage({ server }: PageProps) {
  const { query } = useLocation();
  const keys = useKeys(query);
  const [isFinding, setFinding] = useState(false);
  const publicUrl = server?.publicUrl ?? "";
  // The form stays when the new key appears in the list: its secret is still on the screen.
  const isFirstKey = useRef(false);
  if (keys.data?.total === 0 && !hasFilters(query) && !keys.isStale) isFirstKey.current = true;
  return (
    <>
      <PageHead
        title="Keys"
        actions={
          <>
            <button type="button" onClick={() => setFinding(true)}>
              Find by secret
            </button>
            <a class="button primary" href="/keys/new">
              Create key
            </a>
          </>
        }
      />
      {isFirstKey.current ? (
        <section>
          <Empty title="There are no keys yet">
            A client needs a key for every request. Create the first one here.
          </Empty>
          <KeyCreation publicUrl={publicUrl} />
        </section>
      ) : (
        <KeyList keys={keys} publicUrl={publicUrl} />
      )}
      {isFinding && <FindKeyDialog onClose={() => setFinding(false)} />}
    </>
  );
}

interface KeyListProps {
  readonly keys: ReturnType<typeof useKeys>;
  readonly publicUrl: string;
}

function KeyList({ keys, publicUrl }: KeyListProps) {
  const { query } = useLocation();
  const [chosen, setChosen] = useState<ChosenAction>();
  const label = query.get("label");
  const columns: readonly Column<Key>[] = [
    ...COLUMNS,
    {
      heading: "Actions",
      isMenu: true,
      cell: (key) => (
        <Menu label={`Actions for ${key.name}`}>
          <a href={`/keys/${key.id}/edit`}>Edit</a>
          <KeyActionButtons apiKey={key} choose={setChosen} />
        </Menu>
      ),
    },
  ];
  return (
    <section>
      <Filters>
        <TextFilter
          label="Search"
          name="search"
          type="search"
          placeholder="Name, owner, label, hint or id"
          maxLength={200}
          intercept={openKeyOfSecret}
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
        columns={columns}
        defaultSort="id"
        empty={null}
        {...(query.get("state") === "banned" && { noMatch: <NoBan /> })}
      />
      {chosen && <KeyActionDialog {...chosen} publicUrl={publicUrl} onClose={() => setChosen(undefined)} />}
    </section>
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

/** Never in the URL: a secret belongs into no history. */
const WHOLE_SECRET = /^pet_(?:live|test)_[0-9A-Za-z]{36}$/;

/** Somebody who pastes a secret into the search wants its key. */
function openKeyOfSecret(text: string): boolean {
  if (!WHOLE_SECRET.test(text)) return false;
  call("findKey", { body: { secret: text } }).then(
    ({ id }) => navigate(`/keys/${id}`),
    () => navigate("/keys?search=no%20key%20has%20this%20secret"),
  );
  return true;
}

function FindKeyDialog({ onClose }: { readonly onClose: () => void }) {
  const [secret, setSecret] = useState("");
  async function find() {
    const { id } = await call("findKey", { body: { secret: secret.trim() } });
    onClose();
    navigate(`/keys/${id}`);
  }
  return (
    <FormDialog
      title="Find a key by its secret"
      onClose={onClose}
      onSubmit={find}
      submit="Find"
      isReady={secret.trim() !== ""}
    >
      <TextField
        label="Secret"
        hint="It is compared with the stored hashes. It is neither stored nor logged."
        type="password"
        value={secret}
        onInput={setSecret}
      />
    </FormDialog>
  );
}
