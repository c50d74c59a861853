import { parseNumber } from "../src/api/json.ts";

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;
/** `context` is ES2026 and newer than the type library. */
const parseWithSource: (text: string, reviver: Reviver) => unknown = JSON.parse;

/** `JSON.parse`, but integers that a double cannot represent are bigints. */
export function parseJson(text: string): unknown {
  return parseWithSource(text, (_key, value, context) =>
    typeof value === "number" && context?.source !== undefined ? parseNumber(context.source) : value,
  );
}
