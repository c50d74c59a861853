/**
 * The timeline of a PostgreSQL server. A promotion begins one whose number is one higher. Two standbys that are
 * promoted independently begin two timelines with the same number, so the first process that finds a new timeline
 * stores a random mark in its database.
 */
export interface Timeline {
  readonly number: number;
  /** Empty if no mark is known. */
  readonly mark: string;
}

export const UNKNOWN_TIMELINE: Timeline = { number: 0, mark: "" };

/** Returns the later of two timelines. Of two with the same number, the first that has a mark was used first. */
export function laterOf(stored: Timeline, other: Timeline): Timeline {
  if (other.number !== stored.number) return other.number > stored.number ? other : stored;
  return stored.mark === "" ? other : stored;
}

export function isSameTimeline(one: Timeline, other: Timeline): boolean {
  return one.number === other.number && one.mark === other.mark;
}

/** One server accepts writes, but another one that does not respond may have replaced it. */
export class UnknownPrimary extends Error {}

/** The timeline as text, such as `2 c5a1…`. */
export function timelineText({ number, mark }: Timeline): string {
  return `${number} ${mark}`;
}

export function parseTimeline(text: string): Timeline {
  const [number = "", mark = ""] = text.trim().split(" ");
  return { number: Number.parseInt(number, 10) || 0, mark };
}
