import { toJson } from "../api/json.ts";

/** The fields that differ, as they are in `after`. */
export function changesOf<Body extends object>(before: Body, after: Body): Partial<Body> {
  const old = new Map(Object.entries(before));
  const isChanged = ([name, value]: [string, unknown]) => toJson(value) !== toJson(old.get(name));
  // Fields of `after`, as they are there.
  return Object.fromEntries(Object.entries(after).filter(isChanged)) as Partial<Body>;
}
