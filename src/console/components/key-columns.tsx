import type { Key } from "../admin-api.ts";
import { longDuration, shortDuration } from "../../text/durations.ts";
import { grouped, plural } from "../../text/formatting.ts";
import { EXPIRES_SOON_MS } from "../../domain/api-keys.ts";
import { isCloseToLimit } from "../../domain/rate-limit.ts";
import { capitalized, compact, percent } from "../../pages/format.ts";
import type { Meaning } from "../../pages/meanings.ts";
import { useCall } from "../polling.ts";
import { clockSignal } from "../state.ts";
import type { Column } from "./tables.tsx";
import { Badge, NameLink, TimeAgo } from "./values.tsx";

const STATE_MEANINGS: Readonly<Record<Key["state"], Meaning>> = {
  active: "ok",
  disabled: "limited",
  expired: "muted",
  revoked: "muted",
  banned: "error",
};

type StateProps = Pick<Key, "state"> & Partial<Pick<Key, "expiresAt">>;

/** The state of a key or of an operator, or that it expires soon. */
export function StateBadge({ state, expiresAt }: StateProps) {
  const leftMs = Date.parse(expiresAt ?? "") - clockSignal.use();
  if (state === "active" && leftMs < EXPIRES_SOON_MS)
    return <Badge meaning="limited" text={`expires in ${shortDuration(leftMs)}`} />;
  return <Badge meaning={STATE_MEANINGS[state]} text={state} />;
}

type Window = NonNullable<Key["usage"]>["minute"];

/** How much of a window is used now. One that has closed since the last response is empty. */
export function usedOf({ used: last, limit, resetsAt }: Window, nowMs: number) {
  const leftMs = resetsAt === null ? 0 : Math.max(0, Date.parse(resetsAt) - nowMs);
  const used = leftMs > 0 ? last : 0;
  const isFull = used >= limit;
  const isClose = !isFull && isCloseToLimit(used, limit);
  return { leftMs, used, isFull, isClose };
}

/** Warns that a key is close to its limit of the day, where the day has no column of its own. */
function DayWarning({ window }: { readonly window: Window }) {
  const { used, isFull, isClose } = usedOf(window, clockSignal.use());
  if (!isFull && !isClose) return null;
  return <span class="below small tone-limited">▲ {percent(used, window.limit)} of 24 h</span>;
}

interface QuotaBarProps {
  readonly window: Window | undefined;
  /** Whether a line below says when the window ends. */
  readonly isWide?: boolean;
}

/** How much of a window is used: a bar and the two numbers. */
export function QuotaBar({ window, isWide = false }: QuotaBarProps) {
  const nowMs = clockSignal.use();
  if (window === undefined) return <span class="muted">unknown</span>;
  const { limit } = window;
  const { leftMs, used, isFull, isClose } = usedOf(window, nowMs);
  const text = (count: number) => (isWide || count < 1_000_000 ? grouped(count) : compact(count));
  const hint =
    leftMs === 0 ? "The window opens with the next admitted request." : `Resets in ${shortDuration(leftMs)}.`;
  return (
    <>
      <span
        class={isWide ? "quota-bar wide" : "quota-bar"}
        data-full={isFull ? "" : undefined}
        data-close={isClose ? "" : undefined}
        title={`${grouped(used)} of ${grouped(limit)}. ${hint}`}
      >
        <span class="bar" aria-hidden="true">
          <span style={{ width: `${Math.min(100, (used / limit) * 100)}%` }} />
        </span>
        <span class="number">
          <strong>{text(used)}</strong>
          <span class="of">{` / ${text(limit)}`}</span>
          {isFull && " full"}
          {isClose && (
            <span class="symbol" aria-hidden="true">
              {" ▲"}
            </span>
          )}
        </span>
      </span>
      {isWide && <span class="muted small">{hint}</span>}
    </>
  );
}

/** What both the list of keys and the list of the most used keys have. */
type ListedKey = Pick<Key, "id" | "name" | "plan" | "usage" | "lastUsedAt"> & StateProps;

export function KeyLink({ id, name }: Pick<Key, "id" | "name">) {
  return <NameLink url={`/keys/${id}`} name={name} />;
}

export const SHARED_COLUMNS = {
  plan: { heading: "Plan", sort: "plan", position: "if-room", cell: ({ plan }) => capitalized(plan) },
  minute: {
    heading: "This minute",
    position: "first-below",
    cell: ({ usage }) => (
      <>
        <QuotaBar window={usage?.minute} />
        {usage && <DayWarning window={usage.day} />}
      </>
    ),
  },
  day: {
    heading: "24 hours",
    sort: "usedToday",
    isGreatestFirst: true,
    position: "wide-only",
    cell: ({ usage }) => <QuotaBar window={usage?.day} />,
  },
  state: {
    heading: "State",
    position: "at-end",
    cell: ({ state, expiresAt = null }) => <StateBadge state={state} expiresAt={expiresAt} />,
  },
  lastUsed: {
    heading: "Last used",
    sort: "lastUsedAt",
    isGreatestFirst: true,
    position: "below-end",
    cell: ({ lastUsedAt }) => <TimeAgo at={lastUsedAt} none="never used" />,
  },
} as const satisfies Readonly<Record<string, Column<ListedKey>>>;

interface LabelLinksProps extends Pick<Key, "labels"> {
  /** How many of them are shown; the number of the others is. */
  readonly max?: number;
}

/** Each label leads to the keys that have it. */
export function LabelLinks({ labels: all, max = all.length }: LabelLinksProps) {
  if (all.length === 0) return null;
  const labels = all.slice(0, max);
  const others = all.slice(max);
  return (
    <span class="labels above">
      {labels.map((label) => (
        <a
          key={label}
          class="label"
          href={`/keys?${new URLSearchParams({ label })}`}
          title={`Keys with the label ${label}`}
        >
          <bdi>{label}</bdi>
        </a>
      ))}
      {others.length > 0 && <span title={others.join(", ")}>+{others.length}</span>}
    </span>
  );
}

/** What bans a key. */
export function BanRulesText() {
  const { data } = useCall("getBanRules");
  if (data === undefined) return null;
  const { strikes, graceMs, lengthMs, maxLengthMs } = data;
  return (
    <>
      A request that is rejected {graceMs > 0 && `more than ${longDuration(graceMs)} `}after the first 429, or
      after the last strike, is a strike. After {plural(strikes, "strike")} in a window the key is banned for{" "}
      {longDuration(lengthMs)}
      {maxLengthMs > lengthMs &&
        `, and for twice as long each time that it happens again within a day, up to ${longDuration(maxLengthMs)}`}
      .
    </>
  );
}
