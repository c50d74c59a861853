import { grouped } from "../../text/formatting.ts";
import { DAY_MS } from "../../text/time-units.ts";
import type { Key } from "../admin-api.ts";
import { useBans } from "../bans.ts";
import { Copyable } from "../components/copying.tsx";
import { KeyActionButtons } from "../components/key-actions.tsx";
import { BanRulesText, LabelLinks, QuotaBar, StateBadge, usedOf } from "../components/key-columns.tsx";
import { Details, NameTitle, PageHead, type PageProps, PageSection } from "../components/page.tsx";
import { Facts, LocalTime, LocalTimeAndAgo, NO_VALUE, TimeAgo } from "../components/values.tsx";
import { capitalized, ordinal } from "../../pages/format.ts";
import { useCall } from "../polling.ts";
import { clockSignal } from "../state.ts";
import { may } from "../session.ts";
import { AuditSection } from "./audit.tsx";
import { KeyHistory } from "./key-history.tsx";

export function KeyDetailsPage({ id }: PageProps) {
  const key = useCall("getKey", { id });
  return (
    <Details of={key} kind="key" id={id}>
      {(data) => (
        <div class="sections">
          <PageHead title={<NameTitle name={data.name} />} badge={<StateBadge {...data} />}>
            <KeyActionButtons apiKey={data} shows="reversible" />
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
              <KeyHistory {...data} />
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
                    <KeyActionButtons apiKey={data} shows="permanent" />
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
  const nowMs = clockSignal.use();
  const windows = usage === null ? [] : [usage.minute, usage.day];
  // Requests are rejected until both windows have closed.
  const [full] = windows
    .filter((window) => usedOf(window, nowMs).isFull)
    .toSorted((a, b) => endOf(b) - endOf(a));
  const close = windows.find((window) => usedOf(window, nowMs).isClose);
  if (state === "banned") {
    return (
      <p class="sentence problem">
        Banned until <LocalTimeAndAgo at={bannedUntil ?? ""} />
        <TimesBanned id={id} />: requests get 429.{" "}
        {full && endOf(full) > Date.parse(bannedUntil ?? "") && (
          <>Its limit is used up for longer, and resets {<TimeAgo at={full.resetsAt} />}. </>
        )}
        {sent}
      </p>
    );
  }
  if (state === "disabled")
    return <p class="sentence notice">Requests get 401 until it is enabled again. {sent}</p>;
  if (state === "active") {
    return (
      <p class={full || close ? "sentence notice" : "sentence"}>
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

function endOf({ resetsAt }: NonNullable<Key["usage"]>["minute"]): number {
  return Date.parse(resetsAt ?? "");
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
