import { grouped } from "./formatting.ts";
import { INT64_MAX, INT64_MIN, INT64_RANGE, isInt64, parseIdentifier } from "./json.ts";

/** JSON Schema (2020-12) as OpenAPI 3.1 embeds it. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/**
 * One definition of a value: `read` validates a parsed value without coercing it, `json` is its JSON Schema in the
 * OpenAPI document, and its TypeScript type is inferred.
 */
export interface Schema<T> {
  readonly json: JsonSchema;
  /** The end of the sentence "`field` must be …". */
  readonly expected: string;
  read(value: unknown): T | Invalid;
  /** Of a query parameter: it may be given several times, which is the same as its values separated by commas. */
  readonly isRepeatable?: true;
  /** Of an array. */
  readonly item?: Schema<unknown>;
}

/** A description, or keywords that a schema adds to its own. */
type Annotations = string | JsonSchema;

const keywords = (annotations: Annotations): JsonSchema =>
  typeof annotations === "string" ? { description: annotations } : annotations;

export class Invalid {
  /** One for each invalid field, without a full stop. */
  constructor(readonly problems: readonly string[]) {}
}

export type Infer<S> = S extends Schema<infer T> ? T : never;

const invalid = (expected: string) => new Invalid([`must be ${expected}`]);

/** A schema with one problem: the value is not as expected. */
function simple<T>(
  expected: string,
  json: JsonSchema,
  convert: (value: unknown) => T | undefined,
): Schema<T> {
  const problem = invalid(expected);
  return { json, expected, read: (value) => convert(value) ?? problem };
}

export function int64(annotations: Annotations = {}): Schema<bigint> {
  const bounds = { type: "integer", format: "int64", minimum: INT64_MIN, maximum: INT64_MAX };
  return simple(`an integer ${INT64_RANGE}`, { ...bounds, ...keywords(annotations) }, (value) => {
    if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : undefined;
    return typeof value === "bigint" && isInt64(value) ? value : undefined;
  });
}

export function oneOf<const V extends string>(
  values: readonly V[],
  annotations: Annotations = {},
): Schema<V> {
  const quoted = values.map((value) => `"${value}"`);
  const expected = `one of ${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
  return simple(expected, { type: "string", enum: values, ...keywords(annotations) }, (value) =>
    values.find((candidate) => candidate === value),
  );
}

/** JSON Schema cannot express lone surrogates. */
const NOT_BLANK = "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$";

/** Text of 1 to `max` code points: not only white space, no NUL, no lone surrogate. */
export function text(max: number, annotations: Annotations = {}): Schema<string> {
  const expected = `a string of 1 to ${grouped(max)} characters that is not blank and has no NUL or lone surrogate`;
  const shape = {
    type: "string",
    minLength: 1,
    maxLength: max,
    pattern: NOT_BLANK,
    ...keywords(annotations),
  };
  return simple(expected, shape, (value) =>
    typeof value === "string" && isValidText(value) && hasAtMostCodePoints(value, max) ? value : undefined,
  );
}

function isValidText(value: string): boolean {
  return /\S/.test(value) && !value.includes("\0") && value.isWellFormed();
}

function hasAtMostCodePoints(value: string, max: number): boolean {
  if (value.length <= max) return true;
  return value.length <= max * 2 && [...value].length <= max;
}

const ONE_LINE = "^(?=.*\\S)[^\\p{Cc}\\p{Zl}\\p{Zp}]*$";
const NOT_ON_ONE_LINE = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** As `text`, on one line. */
export function line(max: number, annotations: Annotations = {}): Schema<string> {
  const expected = `a string of 1 to ${grouped(max)} characters on one line that is not blank`;
  const shape = { type: "string", minLength: 1, maxLength: max, pattern: ONE_LINE, ...keywords(annotations) };
  return simple(expected, shape, (value) => {
    if (typeof value !== "string" || NOT_ON_ONE_LINE.test(value)) return undefined;
    return isValidText(value) && hasAtMostCodePoints(value, max) ? value : undefined;
  });
}

/** Text of a form that `expected` describes. */
export function matching(pattern: RegExp, expected: string, annotations: Annotations = {}): Schema<string> {
  const shape = { type: "string", pattern: pattern.source, ...keywords(annotations) };
  return simple(expected, shape, (value) =>
    typeof value === "string" && pattern.test(value) ? value : undefined,
  );
}

/** RFC 3339 with an offset; the seconds may have a fraction. */
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** A time as RFC 3339 writes it. */
export function dateTime(annotations: Annotations = {}): Schema<string> {
  const expected = "a time such as 2026-11-15T09:30:00Z (RFC 3339)";
  return simple(expected, { type: "string", format: "date-time", ...keywords(annotations) }, (value) =>
    typeof value === "string" && DATE_TIME.test(value) && isOnCalendar(value) ? value : undefined,
  );
}

/**
 * Of a date, or of a date and a time: `Date` takes 30 February for 2 March. It is within the years 0000 to 9999 in UTC
 * too: RFC 3339 could not write it otherwise.
 */
export function isOnCalendar(time: string): boolean {
  if (Number.isNaN(Date.parse(time))) return false;
  const day = time.slice(0, 10);
  const midnight = new Date(`${day}T00:00:00Z`);
  return midnight.toISOString().startsWith(day) && /^\d/.test(new Date(time).toISOString());
}

export function boolean(annotations: Annotations = {}): Schema<boolean> {
  return simple("true or false", { type: "boolean", ...keywords(annotations) }, (value) =>
    typeof value === "boolean" ? value : undefined,
  );
}

/** An integer that a double represents exactly. */
export function integer({ min, max, ...json }: { min: number; max: number } & JsonSchema): Schema<number> {
  const shape = { type: "integer", minimum: min, maximum: max, ...json };
  return simple(`an integer from ${grouped(min)} to ${grouped(max)}`, shape, (value) => {
    if (typeof value !== "number" || !Number.isSafeInteger(value)) return undefined;
    return value >= min && value <= max ? value : undefined;
  });
}

/** Zero or more, also a fraction. */
export function quantity(annotations: Annotations = {}): Schema<number> {
  return simple("a number from 0 on", { type: "number", minimum: 0, ...keywords(annotations) }, (value) =>
    typeof value === "number" && value >= 0 && value < Infinity ? value : undefined,
  );
}

export function nullable<T>(schema: Schema<T>, annotations: Annotations = {}): Schema<T | null> {
  const expected = `${schema.expected}, or null`;
  return {
    json: { anyOf: [schema.json, { type: "null" }], ...keywords(annotations) },
    expected,
    read(value) {
      if (value === null) return null;
      const result = schema.read(value);
      // A problem of an inner value stays as it is.
      const isOther = result instanceof Invalid && result.problems[0] === `must be ${schema.expected}`;
      return isOther ? invalid(expected) : result;
    },
  };
}

interface ArrayOptions {
  readonly max?: number;
  readonly areUnique?: true;
  readonly json?: Annotations;
}

export function array<T>(item: Schema<T>, options: ArrayOptions = {}): Schema<readonly T[]> {
  const { max = Infinity, areUnique = false, json = {} } = options;
  const bound = max === Infinity ? "" : ` of at most ${grouped(max)}`;
  const expected = `an array${bound}${areUnique ? " different items" : " items"}`;
  const shape = {
    type: "array",
    items: item.json,
    ...(max < Infinity && { maxItems: max }),
    ...(areUnique && { uniqueItems: true }),
    ...keywords(json),
  };
  return {
    json: shape,
    expected,
    item,
    read(value) {
      if (!Array.isArray(value) || value.length > max) return invalid(expected);
      if (areUnique && new Set(value).size < value.length) return invalid(expected);
      const items: T[] = [];
      for (const [index, element] of value.entries()) {
        const result = item.read(element);
        if (result instanceof Invalid) return new Invalid(problemsOf(`[${index}]`, result));
        items.push(result);
      }
      return items;
    },
  };
}

/** A positive decimal integer in a query string: no sign, no leading zero. */
export function queryInteger(options: {
  readonly min: number;
  readonly max: number;
  readonly default?: number;
  readonly description?: string;
}): Schema<number> {
  const { min, max, ...others } = options;
  const json = { type: "integer", minimum: min, maximum: max, ...others };
  return simple(`an integer from ${min} to ${max}`, json, (value) => {
    if (typeof value !== "string" || !/^[1-9]\d{0,8}$/.test(value)) return undefined;
    const number = Number(value);
    return number >= min && number <= max ? number : undefined;
  });
}

/** An identifier in a query string: decimal, within int64. */
export function queryIdentifier(annotations: Annotations = {}): Schema<bigint> {
  return simple(`a decimal integer ${INT64_RANGE}`, int64(annotations).json, (value) => {
    const identifier = typeof value === "string" ? parseIdentifier(value) : undefined;
    return identifier === undefined ? undefined : BigInt(identifier);
  });
}

/** Identifiers in a query string, separated by commas or repeated. They are read in ascending order, each once. */
export function queryIdentifiers(max: number, annotations: Annotations = {}): Schema<readonly bigint[]> {
  const expected = `1 to ${max} decimal integers ${INT64_RANGE}, separated by commas`;
  const shape = { type: "array", items: int64().json, minItems: 1, maxItems: max, ...keywords(annotations) };
  const convert = (value: unknown) => {
    const texts = typeof value === "string" ? value.split(",", max + 1) : [];
    const ids = new Set<bigint>();
    for (const text of texts) {
      const identifier = parseIdentifier(text);
      if (identifier === undefined) return undefined;
      ids.add(BigInt(identifier));
    }
    if (texts.length === 0 || texts.length > max) return undefined;
    return [...ids].toSorted((a, b) => (a < b ? -1 : 1));
  };
  return { ...simple(expected, shape, convert), isRepeatable: true };
}

type Fields = Record<string, Schema<unknown>>;
type Shape<R extends Fields, O extends Fields> = { [K in keyof R]: Infer<R[K]> } & {
  [K in keyof O]?: Infer<O[K]>;
};

export interface ObjectSchema<T> extends Schema<T> {
  readonly required: Fields;
  readonly optional: Fields;
  readonly names: readonly string[];
  /** Whether no field is required. */
  readonly isEmptyValid: boolean;
  /** As `read`, of a value that is no field of another: a problem begins with the name of its field. */
  readBody(value: unknown): T | Invalid;
}

const NOT_AN_OBJECT = new Invalid(["The request body must be a JSON object"]);

/** An object. Unknown fields are ignored, and every invalid field is reported. */
export function object<R extends Fields>(required: R): ObjectSchema<Shape<R, Record<never, never>>>;
export function object<R extends Fields, O extends Fields = Record<never, never>>(
  annotations: Annotations,
  required: R,
  optional?: O,
): ObjectSchema<Shape<R, O>>;
export function object(
  first: Fields | Annotations,
  second?: Fields,
  optional: Fields = {},
): ObjectSchema<unknown> {
  const [annotations, required] = second ? [first, second] : [{}, first as Fields];
  const all = Object.entries({ ...required, ...optional });
  const names = all.map(([name]) => name);
  const annotated = keywords(annotations);
  const expected = "a JSON object";

  function readBody(value: unknown): unknown {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return NOT_AN_OBJECT;
    const source = value as Record<string, unknown>;
    const result: Record<string, unknown> = {};
    let problems: string[] | undefined;
    for (const [name, schema] of all) {
      const isGiven = Object.hasOwn(source, name);
      if (!isGiven && Object.hasOwn(optional, name)) continue;
      const field = isGiven
        ? schema.read(source[name])
        : new Invalid([`is required and must be ${schema.expected}`]);
      if (field instanceof Invalid) (problems ??= []).push(...problemsOf(name, field));
      else result[name] = field;
    }
    if (annotated["minProperties"] === 1 && !problems && Object.keys(result).length === 0)
      return new Invalid([`At least one of ${names.join(", ")} is required`]);
    return problems ? new Invalid(problems) : result;
  }

  const properties = Object.fromEntries(all.map(([name, schema]) => [name, schema.json]));
  return {
    required,
    optional,
    names,
    isEmptyValid: Object.keys(required).length === 0,
    readBody,
    read(value) {
      const result = readBody(value);
      if (result === NOT_AN_OBJECT) return invalid(expected);
      if (!(result instanceof Invalid)) return result;
      return new Invalid(result.problems.map((problem) => `.${problem}`));
    },
    expected,
    json: { type: "object", required: Object.keys(required), properties, ...annotated },
  };
}

interface ReadRows<T> {
  readonly value: T;
  /** How many rows were left out. */
  readonly unreadable: number;
}

/** As `read`, without those rows of the lists in an object that are invalid: one of them hides no other. */
export function readRows<T>(schema: Schema<T>, value: unknown): ReadRows<T> | Invalid {
  const whole = schema.read(value);
  if (!(whole instanceof Invalid)) return { value: whole, unreadable: 0 };
  if (!isObjectSchema(schema) || typeof value !== "object" || value === null) return whole;
  let unreadable = 0;
  const fields = Object.entries(value).map(([name, field]: [string, unknown]) => {
    const { item } = schema.required[name] ?? schema.optional[name] ?? {};
    if (item === undefined || !isObjectSchema(item) || !Array.isArray(field)) return [name, field];
    const rows = field.filter((row) => !(item.read(row) instanceof Invalid));
    unreadable += field.length - rows.length;
    return [name, rows];
  });
  const rest = schema.read(Object.fromEntries(fields));
  return rest instanceof Invalid ? rest : { value: rest, unreadable };
}

function isObjectSchema<T>(schema: Schema<T>): schema is ObjectSchema<T> {
  return "required" in schema;
}

/** A problem of an inner value begins with its path: `.perMinute must be …`, `[2] must be …`. */
const INNER = /^[.[]/;

/** The problems of a field or parameter, each with its name in front. */
export function problemsOf(name: string, { problems }: Invalid): string[] {
  return problems.map((problem) => (INNER.test(problem) ? name + problem : `${name} ${problem}`));
}
