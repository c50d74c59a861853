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
export interface FilteredKey extends Pick<
  KeyView,
  "id" | "name" | "owner" | "labels" | "plan" | "access" | "state"
> {
  /** Of its secrets. Only some searches need them. */
  readonly hints: () => readonly string[];
  /** When it was last used or, without any use, created; in milliseconds since the epoch. */
  readonly usedAt: number;
}

export function matchesFilter(view: KeyView, filter: KeyFilter): boolean {
  const hints = () => view.secrets.flatMap(({ hint }) => hint ?? []);
  return keyMatcher(filter)({ ...view, hints, usedAt: Date.parse(view.lastUsedAt ?? view.createdAt) });
}

/** For many keys: what depends on the filter alone is computed once. */
export function keyMatcher(filter: KeyFilter): (key: FilteredKey) => boolean {
  const { plan, state, access, unusedSince } = filter;
  const owner = filter.owner?.toLowerCase();
  const labels = (filter.labels ?? []).map((label) => label.toLowerCase());
  const search = filter.search === undefined ? undefined : searchFor(filter.search.trim());
  return (key) =>
    (plan === undefined || key.plan === plan) &&
    (state === undefined || key.state === state) &&
    (access === undefined || key.access === access) &&
    (owner === undefined || key.owner?.toLowerCase() === owner) &&
    labels.every((label) => key.labels.some((other) => other.toLowerCase() === label)) &&
    (unusedSince === undefined || key.usedAt < unusedSince) &&
    (search === undefined || search(key));
}

function searchFor(text: string): (key: FilteredKey) => boolean {
  const part = text.toLowerCase();
  const hasPart = (field: string) => field.toLowerCase().includes(part);
  return ({ id, name, owner, labels, hints }) =>
    hasPart(name) ||
    (owner !== null && hasPart(owner)) ||
    labels.some(hasPart) ||
    String(id) === text ||
    (part.length >= MIN_HINT_PART && hints().some(hasPart));
}
