import { parseNumber } from "../api/json.ts";

/** The third argument of a reviver is newer than the type library. Older browsers do not pass it. */
type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown;

const exactNumber: Reviver = (_key, value, context) => {
  if (typeof value !== "number" || Number.isSafeInteger(value) || !Number.isInteger(value)) return value;
  return context?.source === undefined ? value : parseNumber(context.source);
};

/** As `JSON.parse`, but integers that a double cannot represent are bigints: 9007199254740993 stays itself. */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, exactNumber);
}
