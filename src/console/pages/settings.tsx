import { useState } from "preact/hooks";
import { SETTING_SOURCES } from "../../operator/contract/resources.ts";
import { call, type Server, type Setting } from "../admin-api.ts";
import { Filters, SelectFilter, TextFilter } from "../components/filters.tsx";
import { Choices, Problem, useAction } from "../components/form.tsx";
import { Facts } from "../components/facts.tsx";
import { Empty, Loaded } from "../components/loading.tsx";
import { type Column, Table } from "../components/table.tsx";
import { LocalTime, TimeAgo } from "../components/time.tsx";
import { capitalized, latency } from "../format.ts";
import { usePolled } from "../polling.ts";
import { usePlace } from "../router.ts";
import { signOut } from "../session.ts";
import { chooseTheme, chosenTheme, THEMES } from "../theme.ts";
import type { PageProps } from "./page.ts";

export function Settings({ session: { server } }: PageProps) {
  const { query } = usePlace();
  const settings = usePolled("settings", () => call("getSettings"));
  const search = (query.get("search") ?? "").toLowerCase();
  const source = query.get("source");
  const isShown = (setting: Setting) =>
    `${setting.name} ${setting.help} ${setting.value ?? ""}`.toLowerCase().includes(search) &&
    (source === null || setting.source === source);
  return (
    <>
      <h1 tabIndex={-1}>Settings</h1>
      <div class="columns">
        {server && <ServerSection server={server} />}
        <BrowserSection />
      </div>
      <section aria-labelledby="values">
        <h2 id="values">Effective settings</h2>
        <p class="muted">
          They are read when the server starts. Change a flag, its variable or the env file, and restart the
          server.
        </p>
        <Filters>
          <TextFilter label="Search" name="search" type="search" hasShortcut />
          <SelectFilter
            label="Source"
            name="source"
            options={SETTING_SOURCES.map((each) => [each, each] as const)}
          />
        </Filters>
        <Loaded of={settings}>{({ items }) => <SettingTable settings={items.filter(isShown)} />}</Loaded>
      </section>
    </>
  );
}

function SettingTable({ settings }: { readonly settings: readonly Setting[] }) {
  if (settings.length === 0) {
    return (
      <Empty title="No setting matches">
        <p>
          <a href="/settings">Clear the filters</a> to see all settings.
        </p>
      </Empty>
    );
  }
  return <Table caption="Settings" columns={COLUMNS} rows={settings} keyOf={({ name }) => name} />;
}

const COLUMNS: readonly Column<Setting>[] = [
  {
    heading: "Setting",
    isLead: true,
    cell: ({ name, variable, help }) => (
      <>
        <code title={variable}>--{name}</code>
        <p class="sub">{help}</p>
      </>
    ),
  },
  {
    heading: "Value",
    cell: ({ value, source }) =>
      source === "default" ? (
        <Value text={value} />
      ) : (
        <strong>
          <Value text={value} />
        </strong>
      ),
  },
  {
    heading: "Source",
    cell: ({ source, variable }) => (source === "variable" ? <code>{variable}</code> : capitalized(source)),
  },
  { heading: "Default", cell: (setting) => <Value text={setting.default} /> },
];

function Value({ text }: { readonly text: string | null }) {
  return text === null ? <span class="muted">not set</span> : <code class="wrap">{text}</code>;
}

function engineText({ kind, state, latencyMs }: Server["database"] | Server["rateLimiter"]): string {
  return `${kind}, ${state}${latencyMs === null ? "" : `, ${latency(latencyMs)}`}`;
}

function ServerSection({ server }: { readonly server: Server }) {
  return (
    <section aria-labelledby="server">
      <h2 id="server">This server</h2>
      <Facts
        facts={{
          Environment: server.environment,
          Version: `${server.version} on ${server.runtime}`,
          "Public URL": <code class="wrap">{server.publicUrl}</code>,
          Address: `${server.instance.address}, process ${server.instance.pid}`,
          Started: (
            <>
              <LocalTime at={server.startedAt} />{" "}
              <span class="muted small">
                (<TimeAgo at={server.startedAt} />)
              </span>
            </>
          ),
          Database: engineText(server.database),
          "Rate limits": engineText(server.rateLimiter),
          State: server.draining ? "About to stop" : "Serving",
        }}
      />
    </section>
  );
}

function BrowserSection() {
  const [theme, setTheme] = useState(chosenTheme);
  const { isRunning, problem, run } = useAction();
  return (
    <section aria-labelledby="browser">
      <h2 id="browser">This browser</h2>
      <div class="form">
        <Choices
          label="Theme"
          value={theme}
          options={THEMES.map((value) => ({ value, text: capitalized(value) }))}
          onChange={(value) => {
            chooseTheme(value);
            setTheme(value);
          }}
        />
        <Problem text={problem} />
        <div class="actions">
          <button type="button" disabled={isRunning} onClick={() => void run(signOut)}>
            Sign out
          </button>
        </div>
      </div>
    </section>
  );
}
