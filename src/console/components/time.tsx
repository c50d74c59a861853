import { useNow } from "../clock.ts";
import { localTime, relative, utcTime } from "../format.ts";

interface TimeProps {
  /** RFC 3339. */
  readonly at: string | null;
  /** What to write if there is no time. */
  readonly none?: string;
}

/** "2 s ago", and counting. The local time and the instant in UTC are on hover. */
export function TimeAgo({ at, none = "–" }: TimeProps) {
  const now = useNow();
  if (at === null) return <span class="muted">{none}</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={`${localTime(ms)} local\n${utcTime(ms)}`}>
      {relative(ms, now)}
    </time>
  );
}

/** The local time, with the instant in UTC on hover. */
export function LocalTime({ at, none = "–" }: TimeProps) {
  if (at === null) return <span class="muted">{none}</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={utcTime(ms)}>
      {localTime(ms)}
    </time>
  );
}
