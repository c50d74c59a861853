/**
 * The next JSON value, in which every part that equals that of the last one is the same object as before. So a
 * component can compare what was loaded by identity.
 */
export function keepUnchanged<T>(last: T | undefined, next: T): T {
  if (!isContainer(last) || !isContainer(next)) return next;
  const names = Object.keys(next);
  for (const name of names) {
    const value: unknown = Reflect.get(next, name);
    Reflect.set(next, name, keepUnchanged<unknown>(Reflect.get(last, name), value));
  }
  const isEqual =
    Array.isArray(last) === Array.isArray(next) &&
    names.length === Object.keys(last).length &&
    names.every((name) => Reflect.get(last, name) === Reflect.get(next, name));
  return isEqual ? last : next;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
