import { shortDuration } from "../../api/formatting.ts";
import type { Key } from "../admin-api.ts";
import { useNow } from "../clock.ts";
import { count } from "../format.ts";

type Window = NonNullable<Key["usage"]>["minute"];

interface UsageBarProps {
  readonly window: Window | undefined;
  readonly isWide?: boolean;
}

/** How much of a window is used: a bar and the two numbers. */
export function UsageBar({ window, isWide = false }: UsageBarProps) {
  const now = useNow();
  if (window === undefined) return <span class="muted">unknown</span>;
  const { limit, resetsAt } = window;
  // A window that has closed since the last response is empty.
  const used = resetsAt !== null && Date.parse(resetsAt) <= now ? 0 : window.used;
  const isFull = used >= limit;
  const hint =
    resetsAt === null || used === 0
      ? "The window opens with the next request"
      : `Resets in ${shortDuration(Date.parse(resetsAt) - now)}`;
  return (
    <span class={isWide ? "usage wide" : "usage"} data-full={isFull ? "" : undefined} title={hint}>
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${Math.min(100, (used / limit) * 100)}%` }} />
      </span>
      <span class="number">
        {count(used)}/{count(limit)}
        {isFull ? " full" : ""}
      </span>
    </span>
  );
}
