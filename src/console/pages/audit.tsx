import { MINUTE_MS } from "../../text/time-units.ts";
import { longDuration } from "../../text/durations.ts";
import { grouped } from "../../text/formatting.ts";
import { ACTOR_KINDS, AUDIT_ACTIONS, changedFields, shownAction } from "../../domain/audit.ts";
import { labelOf } from "../../domain/fields.ts";
import { type AuditItem, call } from "../admin-api.ts";
import { Empty } from "../components/page.tsx";
import type { Column } from "../components/tables.tsx";
import { Latest, ListPage, useList } from "../components/lists.tsx";
import { LocalTime, NO_VALUE, OtherLink, TimeAgo } from "../components/values.tsx";
import { capitalized } from "../../pages/format.ts";
import { useCall } from "../polling.ts";
import { requestsUrl } from "./requests.tsx";

/** Midnight of the given day in the time zone of the browser, some days later. */
function dayOf(text: string | undefined, daysLater: number): string | undefined {
  const [year, month, day] = (text ?? "").split("-").map(Number);
  if (year === undefined || month === undefined || day === undefined) return undefined;
  return new Date(year, month - 1, day + daysLater).toISOString();
}

const FILTERS = {
  target: { type: "search", placeholder: "key:7, pet:12, operator:2", maxLength: 30 },
  action: { options: AUDIT_ACTIONS.map((action) => [action, shownAction(action)] as const) },
  operator: { label: "Who", placeholder: "ann", maxLength: 64 },
  actor: { label: "Where", options: ACTOR_KINDS },
  since: { label: "From", type: "date" },
  until: { label: "To", type: "date" },
} as const;

export function AuditTrailPage() {
  const audit = useList(({ since, until, ...query }) =>
    call("listAudit", { query: { ...query, since: dayOf(since, 0), until: dayOf(until, 1) } }),
  );
  return (
    <ListPage
      title="Audit"
      noun="change"
      of={audit}
      filters={FILTERS}
      columns={COLUMNS}
      empty={
        <Empty title="Nothing was changed yet">
          Every change of a key, pet or order, every ban, every operator and every sign-in appears here: who,
          when, and what.
        </Empty>
      }
    />
  );
}

/** The latest changes of one key, pet or order. */
export function AuditSection({ target }: { readonly target: string }) {
  const audit = useCall("listAudit", { query: { target, limit: 10 } });
  return (
    <Latest
      of={audit}
      title="Audit trail"
      columns={COLUMNS.filter(({ heading }) => heading !== "Target")}
      none="No operator has changed it."
      allUrl={`/audit?target=${encodeURIComponent(target)}`}
    />
  );
}

const COLUMNS: readonly Column<AuditItem>[] = [
  { heading: "When", position: "at-end", cell: Moment },
  {
    heading: "Action",
    position: "lead",
    isShort: true,
    cell: ({ action }) => <code>{shownAction(action)}</code>,
  },
  { heading: "Target", position: "after-lead", cell: Target },
  { heading: "Changes", position: "changes-cell", cell: Changes },
  { heading: "Who", position: "actor-cell", cell: Actor },
];

/** When, and where there is no room for a column of it, who. */
function Moment({ at, target, actor }: Pick<AuditItem, "at" | "target" | "actor">) {
  const ms = Date.parse(at);
  const keyId = target?.kind === "key" ? target.id : null;
  // A ban is recorded when it begins: what led to it was before.
  return (
    <>
      <a
        class="when"
        href={requestsUrl(ms - MINUTE_MS, ms + 10_000, keyId)}
        title="The requests of that moment"
      >
        <TimeAgo at={at} />
      </a>
      <span class="sub below">
        <Actor actor={actor} />
      </span>
    </>
  );
}

function Target({ target }: Pick<AuditItem, "target">) {
  if (target === null) return NO_VALUE;
  const { kind, id, name = `${kind} ${id}` } = target;
  return <OtherLink url={kind === "operator" ? "/operators" : `/${kind}s/${id}`} name={name} />;
}

/** The person first, then where they did it. */
function Actor({ actor: { operator, kind, name } }: Pick<AuditItem, "actor">) {
  const where = name === null ? kind : `${kind} ${name}`;
  return (
    <span class="actor one-line" title={where}>
      <bdi>{operator ?? capitalized(where)}</bdi> {operator !== null && <bdi class="muted">{where}</bdi>}
    </span>
  );
}

/** One line, which opens to one for each value. The old value is struck out before the new one. */
function Changes({ before, after }: Pick<AuditItem, "before" | "after">) {
  const fields = changedFields(before, after);
  if (fields.length === 0) return NO_VALUE;
  return (
    <details class={fields.length === 1 ? "changes single" : "changes"}>
      <summary>
        {fields.map(({ name, before: earlier, after: later }) => (
          <span key={name}>
            <span class="muted">{labelOf(name.replace(/Ms$/, ""))}</span>{" "}
            {earlier !== undefined && (
              <del class="muted">
                <Value name={name} value={earlier} />
              </del>
            )}{" "}
            {later !== undefined && <Value name={name} value={later} />}{" "}
          </span>
        ))}
      </summary>
    </details>
  );
}

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

type AuditedValue = NonNullable<AuditItem["before"]>[string];

function Value({ name, value }: { readonly name: string; readonly value: AuditedValue }) {
  if (typeof value === "string" && TIME.test(value)) return <LocalTime at={value} />;
  return <bdi>{textOf(name, value)}</bdi>;
}

function textOf(name: string, value: AuditedValue): string {
  if (value === null) return "none";
  if (typeof value === "object") return value.length === 0 ? "none" : value.join(", ");
  if (typeof value === "number") return name.endsWith("Ms") ? longDuration(value) : grouped(value);
  return String(value);
}
