import { useState } from "preact/hooks";
import { call, type Key } from "../admin-api.ts";
import { AuditSection } from "../components/audit-section.tsx";
import { BanRules } from "../components/ban-rules.tsx";
import { StateBadge } from "../components/badge.tsx";
import { Facts } from "../components/facts.tsx";
import { canDo, type KeyAction, KeyActionDialog } from "../components/key-actions.tsx";
import { Labels } from "../components/key-columns.tsx";
import { KeyUsageSection } from "../components/key-usage-section.tsx";
import { Loaded } from "../components/loading.tsx";
import { Table } from "../components/table.tsx";
import { LocalTime, TimeAgo } from "../components/time.tsx";
import { UsageBar } from "../components/usage-bar.tsx";
import { capitalized, count } from "../format.ts";
import { usePolled } from "../polling.ts";
import type { PageProps } from "./page.ts";

export function KeyPage({ id, session }: PageProps) {
  const key = usePolled(`key ${id}`, () => call("getKey", { id }));
  const [action, setAction] = useState<KeyAction>();
  return (
    <Loaded of={key}>
      {(data) => (
        <div class="sections">
          <Head apiKey={data} choose={setAction} />
          <div class="columns">
            <Windows apiKey={data} />
            <About apiKey={data} />
          </div>
          <KeyUsageSection apiKey={data} />
          <Secrets apiKey={data} />
          <AuditSection target={`key:${data.id}`} />
          {action && (
            <KeyActionDialog
              action={action}
              apiKey={data}
              session={session}
              onClose={() => setAction(undefined)}
            />
          )}
        </div>
      )}
    </Loaded>
  );
}

interface KeyProps {
  readonly apiKey: Key;
}

const ACTION_NAMES = { unban: "Unban", roll: "Roll secret", revoke: "Revoke" } as const;
const ACTIONS = ["unban", "roll", "revoke"] as const;

function Head({ apiKey, choose }: KeyProps & { readonly choose: (action: KeyAction) => void }) {
  return (
    <div class="page-head">
      <span class="crumb">
        <a href="/keys">Keys</a> / key {apiKey.id}
      </span>
      <h1 tabIndex={-1}>
        <bdi class="clamp" title={apiKey.name}>
          {apiKey.name}
        </bdi>
      </h1>
      <StateBadge state={apiKey.state} />
      <div class="actions">
        <a class="button" href={`/keys/${apiKey.id}/edit`}>
          Edit
        </a>
        {ACTIONS.filter((action) => canDo(action, apiKey)).map((action) => (
          <button
            key={action}
            type="button"
            class={action === "revoke" ? "danger" : undefined}
            onClick={() => choose(action)}
          >
            {ACTION_NAMES[action]}
          </button>
        ))}
      </div>
    </div>
  );
}

function Windows({ apiKey: { usage, strikes, bannedUntil, state } }: KeyProps) {
  return (
    <section aria-labelledby="windows">
      <h2 id="windows">Windows now</h2>
      <Facts
        facts={{
          "This minute": <Window window={usage?.minute} />,
          Today: <Window window={usage?.day} />,
          Strikes: strikes === null ? "unknown" : count(strikes),
          Ban:
            state === "banned" ? (
              <span class="tone-error">
                ■ ends <TimeAgo at={bannedUntil} />
              </span>
            ) : (
              <span class="muted">
                Not banned. <BanRules />
              </span>
            ),
        }}
      />
    </section>
  );
}

function Window({ window }: { readonly window: NonNullable<Key["usage"]>["minute"] | undefined }) {
  const resetsAt = window?.resetsAt ?? null;
  return (
    <>
      <UsageBar window={window} isWide />
      <span class="muted small">
        {resetsAt === null ? (
          "The window opens with the next request."
        ) : (
          <>
            Resets <TimeAgo at={resetsAt} />.
          </>
        )}
      </span>
    </>
  );
}

function About({ apiKey }: KeyProps) {
  const { plan, limits, access, owner, labels, notes, createdAt, expiresAt, revokedAt, lastUsedAt } = apiKey;
  const none = <span class="muted none">–</span>;
  return (
    <section aria-labelledby="about">
      <h2 id="about">About</h2>
      <Facts
        facts={{
          Plan: `${capitalized(plan)}: ${count(limits.perMinute)} a minute, ${count(limits.perDay)} a day`,
          Access: access === "read" ? "Read only" : "Read and write",
          Owner: owner === null ? none : <bdi>{owner}</bdi>,
          Labels: labels.length === 0 ? none : <Labels labels={labels} />,
          "Last used": <TimeAgo at={lastUsedAt} none="never" />,
          Created: <LocalTime at={createdAt} />,
          Expires: <LocalTime at={expiresAt} none="never" />,
          ...(revokedAt !== null && { Revoked: <LocalTime at={revokedAt} /> }),
          Notes: notes === null ? none : <bdi class="preserve">{notes}</bdi>,
        }}
      />
    </section>
  );
}

function Secrets({ apiKey: { secrets, revokedAt } }: KeyProps) {
  return (
    <section aria-labelledby="secrets">
      <h2 id="secrets">Secrets</h2>
      <Table
        caption="Secrets"
        rows={secrets}
        keyOf={({ hint, createdAt, validUntil }) => `${hint} ${createdAt} ${validUntil}`}
        columns={[
          {
            heading: "Secret",
            isLead: true,
            cell: ({ hint }) => <code>{hint ?? "of an earlier release"}</code>,
          },
          { heading: "Created", cell: ({ createdAt }) => <LocalTime at={createdAt} none="unknown" /> },
          {
            heading: "Works until",
            cell({ validUntil }) {
              if (revokedAt !== null) return "revoked";
              return validUntil === null ? "no end" : <Until at={validUntil} />;
            },
          },
        ]}
      />
    </section>
  );
}

function Until({ at }: { readonly at: string }) {
  return (
    <>
      <LocalTime at={at} />{" "}
      <span class="muted small">
        (<TimeAgo at={at} />)
      </span>
    </>
  );
}
