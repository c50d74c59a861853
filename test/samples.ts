import type { JsonSchema, ObjectSchema } from "../src/api/schema.ts";
import { PET_FIELDS } from "../src/domain/pets-and-orders.ts";

/** A number makes a sample differ from others. */
type Which = number | "least" | "greatest";

/** A value that the schema allows. */
export function sampleOf(json: JsonSchema, which: Which): unknown {
  const { type, enum: values, format } = json;
  const number = typeof which === "number" ? which : 1;
  if (Array.isArray(values)) return values[number % values.length];
  if (type === "array") return [`item ${number}`];
  if (type === "boolean") return number % 2 === 1;
  if (type === "integer" && which === "least") return json["minimum"];
  if (type === "integer" && which === "greatest") return json["maximum"];
  if (format === "int64") return 9_007_199_254_740_993n + BigInt(number);
  if (type === "integer") return Number(json["minimum"]) + number;
  if (format === "date-time") return new Date(1_794_735_000_000 + number).toISOString();
  if (type !== "string") throw new Error(`no sample of ${JSON.stringify(json)}`);
  if (which === "greatest") return "😀".repeat(Number(json["maxLength"]));
  return which === "least" ? "x" : `“${number}”, "é" \\ 😀`;
}

/** An object with all fields. */
export function objectWith(
  { required, optional }: Pick<ObjectSchema<unknown>, "required" | "optional">,
  which: Which,
): Record<string, unknown> {
  const fields = Object.entries({ ...required, ...optional });
  return Object.fromEntries(fields.map(([name, { json }]) => [name, sampleOf(json, which)]));
}

/** Objects with all fields, without optional ones, and with the least and the greatest values. */
export function samplesOf({ required, optional }: ObjectSchema<unknown>) {
  return {
    "every field": objectWith({ required, optional }, 1),
    "no optional field": objectWith({ required, optional: {} }, 2),
    "the least values": objectWith({ required, optional }, "least"),
    "the greatest values": objectWith({ required, optional }, "greatest"),
  };
}

/** The header of pets as CSV. */
export const PET_CSV_HEADER = Object.keys(PET_FIELDS).join(",");

/** A row of pets as CSV. The cells of the remaining fields are empty. */
export function petCsvRow(...cells: readonly string[]): string {
  return Object.keys(PET_FIELDS)
    .map((_, i) => cells[i] ?? "")
    .join(",");
}
