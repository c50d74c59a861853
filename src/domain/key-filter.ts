import type { Access } from "./api-keys.ts";
import type { KeyState, KeyView } from "./key-view.ts";
import type { PlanName } from "./plans.ts";

/** Less of a hint is in many hints by chance. */
const MIN_HINT_PART = 4;

/** Every condition that is given has to hold. */
export interface KeyFilter {
  readonly plan?: PlanName | undefined;
  readonly state?: KeyState | undefined;
  readonly access?: Access | undefined;
  /** The whole owner, in upper or lower case. */
  readonly owner?: string | undefined;
  /** Each of them a whole label, in upper or lower case. */
  readonly labels?: readonly string[] | undefined;
  /** Last used before this time, in milliseconds since the epoch. A key without any use counts from its creation. */
  readonly unusedSince?: number | undefined;
  /** A part of the name, the owner, a label or the hint of a secret, in upper or lower case; or the identifier. */
  readonly search?: string | undefined;
}

/** What a filter looks at. Views of thousands of keys would take most of the time. */
export interface FilteredKey extends Pick<KeyView, "id" | "name" | "owner" | "labels" | "plan" | "access"> {
  readonly state: KeyState;
  /** Of its secrets. */
  readonly hints: readonly string[];
  /** When it was last used or, without any use, created; in milliseconds since the epoch. */
  readonly usedAt: number;
}

export function matchesFilter(view: KeyView, filter: KeyFilter): boolean {
  const hints = view.secrets.flatMap(({ hint }) => hint ?? []);
  return matcherOf(filter)({ ...view, hints, usedAt: Date.parse(view.lastUsedAt ?? view.createdAt) });
}

/** Reads a property of a key only if a condition needs it. */
export function matcherOf(filter: KeyFilter): (key: FilteredKey) => boolean {
  const { plan, state, access, unusedSince } = filter;
  const owner = filter.owner?.toLowerCase();
  const labels = (filter.labels ?? []).map((label) => label.toLowerCase());
  const search = filter.search?.trim();
  const part = search?.toLowerCase() ?? "";
  return (key) =>
    (plan === undefined || key.plan === plan) &&
    (access === undefined || key.access === access) &&
    (owner === undefined || key.owner?.toLowerCase() === owner) &&
    labels.every((label) => key.labels.some((other) => other.toLowerCase() === label)) &&
    (search === undefined || String(key.id) === search || isFound(key, part)) &&
    (state === undefined || key.state === state) &&
    (unusedSince === undefined || key.usedAt < unusedSince);
}

/** `part` is in lower case. */
function isFound(key: FilteredKey, part: string): boolean {
  const hasPart = (text: string) => text.toLowerCase().includes(part);
  return (
    hasPart(key.name) ||
    (key.owner !== null && hasPart(key.owner)) ||
    key.labels.some(hasPart) ||
    (part.length >= MIN_HINT_PART && key.hints.some(hasPart))
  );
}
