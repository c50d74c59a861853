import { latency } from "../../text/durations.ts";
import { useState } from "preact/hooks";
import { SETTING_SOURCES, settingText } from "../../operator/operations/settings.ts";
import { call, type Server, type Setting } from "../admin-api.ts";
import { signOut, signOutEverywhere } from "../session.ts";
import { ActionButton } from "../components/action-dialog.tsx";
import { Filters } from "../components/filters.tsx";
import { Problem, useAction } from "../components/forms.tsx";
import { Choices } from "../components/fields.tsx";
import { Loaded, PageHead, PageSection } from "../components/page.tsx";
import { type Column, DataTable } from "../components/tables.tsx";
import { NoMatch } from "../components/lists.tsx";
import { Facts, LocalTimeAndAgo } from "../components/values.tsx";
import { WebhookSection } from "../components/webhook.tsx";
import { capitalized } from "../../pages/format.ts";
import { useCall } from "../polling.ts";
import { roleText } from "./operators.tsx";
import { chooseTheme, chosenTheme } from "../../pages/theme.ts";
import { THEMES } from "../../pages/themes.ts";
import { consoleState, serverSignal } from "../state.ts";

const FILTERS = { search: { type: "search" }, source: { options: SETTING_SOURCES } } as const;

export function SettingsPage() {
  const { query } = consoleState;
  const loaded = serverSignal.use();
  const settings = useCall("getSettings");
  const search = (query.get("search") ?? "").toLowerCase();
  const source = query.get("source");
  const isShown = (setting: Setting) =>
    `${setting.name} ${setting.help} ${setting.value ?? ""}`.toLowerCase().includes(search) &&
    (source === null || setting.source === source);
  const hasNoMatch = settings.data !== undefined && !settings.data.items.some(isShown);
  return (
    <>
      <PageHead title="Settings" />
      <div class="columns">
        {loaded && <ServerSection server={loaded} />}
        <BrowserSection />
      </div>
      <WebhookSection />
      <PageSection title="Effective settings">
        <p class="muted">
          They are read when the server starts. Change a flag, its variable or the env file, and restart the
          server. The limits of <a href="/plans">plans</a>, the ban rules and the retention of the audit trail
          are in the database, for all servers; a server that is started with one of them changes it there.
        </p>
        <Filters filters={FILTERS} hasNoMatch={hasNoMatch} />
        <Loaded of={settings}>{({ items }) => <SettingTable settings={items.filter(isShown)} />}</Loaded>
      </PageSection>
    </>
  );
}

function SettingTable({ settings }: { readonly settings: readonly Setting[] }) {
  if (settings.length === 0) return <NoMatch noun="setting" />;
  return <DataTable caption="Settings" columns={COLUMNS} rows={settings} />;
}

const COLUMNS: readonly Column<Setting>[] = [
  {
    heading: "Setting",
    position: "lead",
    cell: (setting) => (
      <>
        <code title={setting.variable}>{settingText(setting)}</code>
        <p class="sub">{setting.help}</p>
      </>
    ),
  },
  {
    heading: "Value",
    cell({ value, given, source, default: initial }) {
      const text = <Value text={value ?? initial} />;
      return (
        <>
          {source === "default" ? text : <strong>{text}</strong>}
          {given !== undefined && (
            <span class="sub">
              set to <code class="wrap">{given}</code>
            </span>
          )}
        </>
      );
    },
  },
  {
    heading: "Source",
    position: "at-end",
    cell: ({ source, variable }) => (source === "variable" ? <code>{variable}</code> : capitalized(source)),
  },
  { heading: "Default", position: "wide-only", cell: (setting) => <Value text={setting.default} /> },
];

function Value({ text }: { readonly text: string | null }) {
  return text === null ? <span class="muted">not set</span> : <code class="wrap">{text}</code>;
}

function engineText({ kind, state, latencyMs }: Server["database"] | Server["rateLimiter"]): string {
  return `${kind}, ${state}${latencyMs === null ? "" : `, ${latency(latencyMs)}`}`;
}

function ServerSection({ server }: { readonly server: Server }) {
  return (
    <PageSection title="This server">
      <Facts
        facts={{
          Environment: server.environment,
          Version: `${server.version} on ${server.runtime}`,
          "Public URL": <code class="wrap">{server.publicUrl}</code>,
          Address: `${server.instance.address}, process ${server.instance.pid}`,
          Started: <LocalTimeAndAgo at={server.startedAt} />,
          Database: engineText(server.database),
          "Rate limits": engineText(server.rateLimiter),
          State: server.draining ? "About to stop" : "Serving",
        }}
      />
    </PageSection>
  );
}

function BrowserSection() {
  const [theme, setTheme] = useState(chosenTheme);
  const { isRunning, problem, run } = useAction();
  const { operator } = consoleState;
  return (
    <PageSection title="This browser">
      <Facts
        facts={{ "Signed in as": <bdi>{operator?.name}</bdi>, Role: operator && roleText(operator.role) }}
      />
      <div class="form">
        <Choices
          label="Theme"
          value={theme}
          options={THEMES.map((value) => ({ value }))}
          onInput={(value) => {
            chooseTheme(value);
            setTheme(value);
          }}
        />
        <Problem text={problem?.message} />
        <div class="actions">
          <button type="button" disabled={isRunning} onClick={() => void run(signOut)}>
            Sign out
          </button>
          {operator?.subject !== undefined && (
            <ActionButton
              title="Log in on the command line"
              submitText="Make a code"
              text="You get a code for petstore login. Commands then work as you until you sign out here, at most 12 hours after you signed in."
              run={async () => ({
                name: operator.name,
                secret: (await call("createSignInCode")).code,
                noun: "code",
              })}
            />
          )}
          <ActionButton
            title="Sign out everywhere"
            submitText="Sign out everywhere"
            run={signOutEverywhere}
            text={`All your sessions end within one second, on every server, in this browser too. ${operator?.subject === undefined ? "Your token stays valid." : "So do your logins on the command line."}`}
          />
        </div>
      </div>
    </PageSection>
  );
}
