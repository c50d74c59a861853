import { grouped } from "../../text/formatting.ts";
import { KEY_PREFIX } from "../../domain/secrets.ts";
import type { TryItData, TryItField, TryItOperation } from "../page-data.ts";

/** A request as it is sent. */
export interface TryItRequest {
  readonly method: TryItOperation["method"];
  readonly url: URL;
  readonly headers: Members;
  /** The JSON of the members. */
  readonly body?: string;
  /** The members of the body, each with its value as JSON. */
  readonly members: Members;
}

export type Members = readonly (readonly [name: string, value: string])[];

/** What was typed, by the names of the fields. */
export type Values = Readonly<Record<string, string>>;

/** Defaults, and for a body and what is required values that work: a new form sends what the page's example sends. */
export function initialValues(fields: readonly TryItField[]): Values {
  return Object.fromEntries(fields.map((field) => [field.name, field.default ?? workingValue(field)]));
}

function workingValue({ isRequired, in: location, example, values }: TryItField): string {
  return isRequired || location === "body" ? (example ?? values?.[0] ?? "") : "";
}

export interface RequestInput {
  readonly operation: Pick<TryItOperation, "method" | "path" | "call" | "fields">;
  readonly values: Values;
  /** The base URL of the API, without a trailing slash. */
  readonly baseUrl: string;
  /** Empty for none. */
  readonly key: string;
}

/** An empty field is left out. Any other text is sent as it was typed, so that people see what the API responds. */
export function requestOf({ operation, values, baseUrl, key }: RequestInput): TryItRequest {
  const { method, path, fields } = operation;
  const textOf = ({ name }: TryItField) => values[name] ?? "";
  const given = (location: TryItField["in"]) =>
    fields.filter((field) => field.in === location && textOf(field) !== "");
  const filledPath = path.replace(/\{(\w+)\}/, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const query = given("query").map((field) => `${field.name}=${queryValue(field, textOf(field))}`);
  const members = given("body").map((field) => [field.name, jsonValue(field, textOf(field))] as const);
  const body = members.map(([name, json]) => `${JSON.stringify(name)}: ${json}`);
  const hasBody = fields.some((field) => field.in === "body");
  return {
    method,
    url: new URL(`${baseUrl}${filledPath}${query.length > 0 ? `?${query.join("&")}` : ""}`),
    headers: [
      ...(key === "" ? [] : [["Authorization", `Bearer ${key}`] as const]),
      ...(hasBody ? [["Content-Type", "application/json"] as const] : []),
      ...given("header").map((field) => [field.name, textOf(field)] as const),
    ],
    members,
    ...(hasBody && { body: `{${body.join(", ")}}` }),
  };
}

/** The commas between identifiers stay readable. */
function queryValue({ type }: TryItField, text: string): string {
  return (type === "integer-list" ? listOf(text) : [text]).map(encodeURIComponent).join(",");
}

/** The identifiers of a list. People write a space after a comma. */
export function listOf(text: string): readonly string[] {
  return text.split(",").map((each) => each.trim());
}

export const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** A number is sent digit for digit: as a JavaScript number, 9007199254740993 would become 9007199254740992. */
function jsonValue({ type }: TryItField, text: string): string {
  return type !== "string" && JSON_NUMBER.test(text) ? text : JSON.stringify(text);
}

const DECIMAL = /^(?:0|-?[1-9]\d*)$/;
/** A browser sends no other characters in a header. */
const HEADER_VALUE = /^[ -~]*$/;

/** What the API will reject about a text, as the end of a sentence that begins with the field's name. */
export function fieldProblem(field: TryItField, text: string): string | undefined {
  if (text === "") return field.isRequired ? "is required" : undefined;
  if (field.in === "header" && !HEADER_VALUE.test(text)) return "can have visible ASCII characters only";
  if (field.values !== undefined && !field.values.includes(text))
    return `must be one of ${field.values.join(", ")}`;
  if (field.type === "string") {
    const { maxLength = Infinity } = field;
    const { length } = [...text];
    if (length <= maxLength) return undefined;
    return `must have at most ${grouped(maxLength)} characters; it has ${grouped(length)}`;
  }
  const numbers = field.type === "integer-list" ? listOf(text) : [text];
  return numbers.map((number) => numberProblem(field, number)).find((problem) => problem !== undefined);
}

/** Why no request can be made of the input. */
export interface Obstacle {
  /** The field to fill in or to correct; undefined for the key. */
  readonly field?: TryItField;
  readonly reason: string;
}

export function obstacleOf({ operation, values, key }: Omit<RequestInput, "baseUrl">): Obstacle | undefined {
  if (!HEADER_VALUE.test(key)) return { reason: "The API key has a character that no header can have." };
  for (const field of operation.fields) {
    const { name, in: location } = field;
    const text = values[name] ?? "";
    if (location === "path" && text === "") return { field, reason: `Enter ${name} first.` };
    if (location === "header" && !HEADER_VALUE.test(text))
      return { field, reason: `${name} has a character that no header can have.` };
  }
  return undefined;
}

function numberProblem({ in: location, minimum, maximum }: TryItField, text: string): string | undefined {
  if (!DECIMAL.test(text)) {
    // JSON has more ways to write an integer than a path: 1e3 and 1.0.
    const isLeftToServer = location === "body" && JSON_NUMBER.test(text);
    return isLeftToServer ? undefined : "must be an integer in decimal digits";
  }
  const value = BigInt(text);
  if (minimum !== undefined && value < BigInt(minimum)) return `must be at least ${minimum}`;
  if (maximum !== undefined && value > BigInt(maximum)) return `must be at most ${maximum}`;
  return undefined;
}

/** People paste a key with spaces around it, or all of the header. */
export function cleanKey(text: string): string {
  return text.trim().replace(/^(?:Authorization:\s*)?Bearer\s+/i, "");
}

/** Why the key cannot work here, as a sentence; undefined if it may. */
export function keyProblem(key: string, environment: TryItData["environment"]): string | undefined {
  const prefix = KEY_PREFIX[environment];
  if (!/^\w*$/.test(key)) return "A key has letters, digits and underscores only.";
  if (key === "" || key.startsWith(prefix)) return undefined;
  return `Keys of ${environment} begin with ${prefix}.`;
}
