import type { TryItField } from "../../try-it-data.ts";

const DECIMAL = /^(?:0|-?[1-9]\d*)$/;
/** JSON has more ways to write an integer than a path: 1e3 and 1.0 are left to the server. */
const JSON_INTEGER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
/** A browser sends no other characters in a header. */
const HEADER_VALUE = /^[ -~]*$/;

/** What the API will reject about a text, as the end of a sentence that begins with the field's name. */
export function problemOf(field: TryItField, text: string): string | undefined {
  if (text === "") return field.isRequired ? "is required" : undefined;
  if (!isSendable(field, text)) return "can have visible ASCII characters only";
  if (field.values !== undefined && !field.values.includes(text))
    return `must be one of ${field.values.join(", ")}`;
  if (field.type === "string") return lengthProblem(field, text);
  const numbers = field.type === "int64-list" ? text.split(",") : [text];
  return numbers.map((number) => numberProblem(field, number)).find((problem) => problem !== undefined);
}

/** Whether a browser can send the text at all. */
export function isSendable(field: Pick<TryItField, "in">, text: string): boolean {
  return field.in !== "header" || HEADER_VALUE.test(text);
}

function lengthProblem(
  { minLength = 0, maxLength = Infinity }: TryItField,
  text: string,
): string | undefined {
  const { length } = [...text];
  if (length < minLength) return `must have at least ${minLength} characters`;
  if (length > maxLength)
    return `must have at most ${maxLength.toLocaleString("en")} characters; it has ${length.toLocaleString("en")}`;
  return undefined;
}

function numberProblem({ in: location, minimum, maximum }: TryItField, text: string): string | undefined {
  if (!DECIMAL.test(text)) {
    const isLeftToServer = location === "body" && JSON_INTEGER.test(text);
    return isLeftToServer ? undefined : "must be an integer in decimal digits";
  }
  const value = BigInt(text);
  if (minimum !== undefined && value < BigInt(minimum)) return `must be at least ${minimum}`;
  if (maximum !== undefined && value > BigInt(maximum)) return `must be at most ${maximum}`;
  return undefined;
}
