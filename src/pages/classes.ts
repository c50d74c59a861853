/** The value of a `class` attribute: the names that are true. */
export function classesOf(classes: Readonly<Record<string, boolean | undefined>>): string {
  const names = Object.keys(classes).filter((name) => classes[name]);
  return names.join(" ").trim();
}
