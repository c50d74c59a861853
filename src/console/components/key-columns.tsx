import type { Key } from "../admin-api.ts";
import { capitalized } from "../format.ts";
import { urlWith } from "../router.ts";
import { Badge, StateBadge } from "./badge.tsx";
import type { Column } from "./table.tsx";
import { TimeAgo } from "./time.tsx";
import { UsageBar } from "./usage-bar.tsx";

/** What both the list of keys and the list of the most used keys have. */
export type ListedKey = Pick<Key, "id" | "name" | "plan" | "state" | "usage" | "lastUsedAt">;

export function KeyLink({ id, name }: Pick<Key, "id" | "name">) {
  return (
    <a class="row-link" href={`/keys/${id}`}>
      <bdi class="name" title={name}>
        {name}
      </bdi>
    </a>
  );
}

export const PLAN_COLUMN: Column<ListedKey> = {
  heading: "Plan",
  sort: "plan",
  cell: ({ plan }) => capitalized(plan),
};
export const MINUTE_COLUMN: Column<ListedKey> = {
  heading: "This minute",
  cell: ({ usage }) => <UsageBar window={usage?.minute} />,
};
export const DAY_COLUMN: Column<ListedKey> = {
  heading: "Today",
  sort: "usedToday",
  cell: ({ usage }) => <UsageBar window={usage?.day} />,
};
export const STATE_COLUMN: Column<ListedKey> = {
  heading: "State",
  cell: ({ state }) => <StateBadge state={state} />,
};
export const LAST_USED_COLUMN: Column<ListedKey> = {
  heading: "Last used",
  sort: "lastUsedAt",
  cell: ({ lastUsedAt }) => <TimeAgo at={lastUsedAt} none="never" />,
};

export const withoutSort = <Row,>({ heading, cell }: Column<Row>): Column<Row> => ({ heading, cell });

/** Each label leads to the keys that have it. */
export function Labels({ labels }: Pick<Key, "labels">) {
  if (labels.length === 0) return null;
  return (
    <span class="labels above">
      {labels.map((label) => (
        <a
          key={label}
          class="label"
          href={urlWith({ label }, { path: "/keys", query: new URLSearchParams() })}
          title={`Keys with the label ${label}`}
        >
          <bdi>{label}</bdi>
        </a>
      ))}
    </span>
  );
}

export function AccessBadge({ access }: Pick<Key, "access">) {
  return access === "read" ? <Badge meaning="none" text="read only" /> : null;
}
