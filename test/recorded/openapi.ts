/** What is said to people, and may be said otherwise. */
const PROSE = new Set(["description", "summary", "title", "example", "examples", "tags", "bearerFormat"]);

/** What programs read of an OpenAPI document: its keys sorted, its integers exact. */
export function structureOf(text: string): string {
  const exact = text.replace(/: (-?\d{16,})/g, ': "$1"');
  const indented = JSON.stringify(strip(JSON.parse(exact)), null, 1);
  // What holds nothing but plain values stands on one line.
  return indented.replace(/[{[][^{}[\]]*[}\]]/g, (flat) => flat.replace(/\s*\n\s*/g, " "));
}

/** `isNamed` where the keys are names of their own, and no keywords. */
function strip(value: unknown, isNamed = false): unknown {
  if (Array.isArray(value)) return value.map((item) => strip(item));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => isNamed || !PROSE.has(key));
  return Object.fromEntries(
    entries
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, strip(item, key === "properties")]),
  );
}
