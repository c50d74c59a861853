/** This needs Node 22 or newer, Bun, Deno, or a browser of 2025 or later. */
const modernJson = JSON as JSON & { rawJSON(text: string): unknown };

/** What JSON.stringify writes as an integer, digit for digit. */
export function rawInteger(value: bigint): unknown {
  return modernJson.rawJSON(String(value));
}

/** Writes bigints as integers. */
export function writeJson(value: unknown): string {
  return JSON.stringify(value, (_name, item: unknown) =>
    typeof item === "bigint" ? rawInteger(item) : item,
  );
}

const INT64_FIELDS = new Set(["id", "petId", "categoryId"]);

/** A reviver for `JSON.parse` that makes fields of type int64 bigints. */
export function reviveInt64(name: string, value: unknown, context?: { source?: string }): unknown {
  return INT64_FIELDS.has(name) && context?.source !== undefined ? BigInt(context.source) : value;
}

/** A `fetch` whose responses have bigints in `json()`. */
export async function exactFetch(request: Request): Promise<Response> {
  const response = await fetch(request);
  const json = async (): Promise<unknown> => JSON.parse(await response.text(), reviveInt64);
  return Object.assign(response, { json });
}

/** Makes strings of the fields of type int64 in a JSON text. `BigInt` reads all digits from them. */
export function quoteInt64(text: string): string {
  return text.replace(/(?<=[{,]"(?:id|petId|categoryId)":)-?\d+/g, '"$&"');
}
