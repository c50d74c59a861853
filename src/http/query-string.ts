import { Invalid, type Schema } from "../contract/schema.ts";

type Parameters = Readonly<Record<string, Schema<unknown>>>;

const NO_PARAMETERS = {};

/** Known parameters, checked; unknown ones are ignored. Every parameter at fault is named. */
export function readQuery(query: string, parameters: Parameters): Record<string, unknown> | Invalid {
  if (query === "") return NO_PARAMETERS;
  const values: Record<string, unknown> = {};
  const faults: string[] = [];
  for (const [name, value] of pairsOf(query)) {
    const schema = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (schema === undefined) continue;
    const result = Object.hasOwn(values, name) ? new Invalid(["must be given once"]) : schema.read(value);
    if (result instanceof Invalid) faults.push(...result.faults.map((fault) => `${name} ${fault}`));
    values[name] = result;
  }
  return faults.length > 0 ? new Invalid(faults) : values;
}

const ENCODED = /[%+]/;

/** `URLSearchParams` takes as long as all the rest of reading a query; most have nothing in them to decode. */
function pairsOf(query: string): Iterable<readonly [string, string]> {
  if (ENCODED.test(query)) return new URLSearchParams(query);
  return query.includes("&") ? query.split("&").map(pairOf) : [pairOf(query)];
}

function pairOf(text: string): readonly [string, string] {
  const equals = text.indexOf("=");
  return equals === -1 ? [text, ""] : [text.slice(0, equals), text.slice(equals + 1)];
}
