import { grouped } from "../text/formatting.ts";
import { INT64_MAX, INT64_MIN, INT64_RANGE, isInt64, parseIdentifier } from "./json.ts";

/** JSON Schema (2020-12) as OpenAPI 3.1 embeds it. */
export type JsonSchema = { readonly [keyword: string]: unknown };

interface SchemaOf<T> {
  readonly json: JsonSchema;
  /** The end of the sentence "`field` must be …". */
  readonly expected: string;
  read(value: unknown): T | Invalid;
}

type Kind =
  | { readonly kind: "boolean" }
  | { readonly kind: "int64" }
  | { readonly kind: "number" }
  | { readonly kind: "text"; readonly maxLength: number }
  | { readonly kind: "time" }
  | { readonly kind: "other" }
  | { readonly kind: "integer"; readonly min: number; readonly max: number }
  | { readonly kind: "choice"; readonly choices: readonly string[] }
  | { readonly kind: "nullable"; readonly inner: Schema<unknown> }
  | { readonly kind: "array"; readonly item: Schema<unknown> }
  | ObjectKind;

interface ObjectKind {
  readonly kind: "object";
  readonly required: Fields;
  readonly optional: Fields;
  readonly names: readonly string[];
  /** Whether no field is required. */
  readonly isEmptyValid: boolean;
  /** The fields of an update, of which a request must have at least one; empty for any other object. */
  readonly needsOneOf: readonly string[];
}

/**
 * One definition of a value: `read` validates a parsed value without coercing it, `json` is its JSON Schema in the
 * OpenAPI document, and its TypeScript type is inferred. What can be derived from a value depends on its kind.
 */
export type Schema<T, K extends Kind["kind"] = Kind["kind"]> = SchemaOf<T> & Extract<Kind, { kind: K }>;
export type ObjectSchema<T> = SchemaOf<T> & ObjectKind;

type Fields = Readonly<Record<string, Schema<unknown>>>;

/** A description, or keywords that a schema adds to its own. */
type Annotations = string | JsonSchema;

const keywords = (annotations: Annotations): JsonSchema =>
  typeof annotations === "string" ? { description: annotations } : annotations;

/** A problem of a value. */
export interface InputProblem {
  /** The path of the value, such as `labels` and 2; empty for the outermost value. */
  readonly path: readonly (string | number)[];
  /** The end of a sentence that begins with the value: `must be true or false`. */
  readonly message: string;
}

export class Invalid {
  readonly problems: readonly InputProblem[];

  /** Takes one problem, of the value itself or of the value at a path in it, or several. */
  constructor(problems: string | readonly InputProblem[], ...path: InputProblem["path"]) {
    this.problems = typeof problems === "string" ? [{ path, message: problems }] : problems;
  }

  /** Returns the problems of a value that has this name or index in another value. */
  in(key: string | number): readonly InputProblem[] {
    return this.problems.map(({ path, message }) => ({ path: [key, ...path], message }));
  }
}

export type Infer<S> = S extends SchemaOf<infer T> ? T : never;

const mustBe = (expected: string) => new Invalid(`must be ${expected}`);

/** A schema with one possible problem. `convert` returns undefined for a value that is not as expected. */
export function valueSchema<T, K extends Kind>(
  definition: K & Omit<SchemaOf<T>, "read">,
  convert: (value: unknown) => T | undefined,
): SchemaOf<T> & K {
  const invalid = mustBe(definition.expected);
  return { ...definition, read: (value) => convert(value) ?? invalid };
}

export function int64(annotations: Annotations = {}): Schema<bigint, "int64"> {
  const bounds = { type: "integer", format: "int64", minimum: INT64_MIN, maximum: INT64_MAX };
  const json = { ...bounds, ...keywords(annotations) };
  return valueSchema({ kind: "int64", expected: `an integer ${INT64_RANGE}`, json }, (value) => {
    if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : undefined;
    return typeof value === "bigint" && isInt64(value) ? value : undefined;
  });
}

export function oneOf<const V extends string>(
  choices: readonly V[],
  annotations: Annotations = {},
): Schema<V, "choice"> {
  const quoted = choices.map((value) => `"${value}"`);
  const expected = `one of ${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
  const json = { type: "string", enum: choices, ...keywords(annotations) };
  return valueSchema({ kind: "choice", choices, expected, json }, (value) =>
    choices.find((choice) => choice === value),
  );
}

/** JSON Schema cannot express lone surrogates. */
const NOT_BLANK = "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$";

/** Text of 1 to `maxLength` code points: not only white space, no NUL, no lone surrogate. */
export function text(maxLength: number, annotations: Annotations = {}): Schema<string, "text"> {
  const expected = `a string of 1 to ${grouped(maxLength)} characters that is not blank and has no NUL or lone surrogate`;
  const json = {
    type: "string",
    minLength: 1,
    maxLength,
    pattern: NOT_BLANK,
    ...keywords(annotations),
  };
  return valueSchema({ kind: "text", maxLength, expected, json }, (value) =>
    typeof value === "string" && isValidText(value) && hasAtMostCodePoints(value, maxLength)
      ? value
      : undefined,
  );
}

function isValidText(value: string): boolean {
  return /\S/.test(value) && !value.includes("\0") && value.isWellFormed();
}

function hasAtMostCodePoints(value: string, max: number): boolean {
  if (value.length <= max) return true;
  return value.length <= max * 2 && [...value].length <= max;
}

/** The characters of `NOT_ON_ONE_LINE` by their numbers, because some validators read patterns without the flag `u`. */
const ONE_LINE = "^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$";
const NOT_ON_ONE_LINE = /[\p{Cc}\p{Zl}\p{Zp}]/u;

/** Text as in `text`, on one line. */
export function line(maxLength: number, annotations: Annotations = {}): Schema<string, "text"> {
  const expected = `a string of 1 to ${grouped(maxLength)} characters on one line that is not blank`;
  const json = { type: "string", minLength: 1, maxLength, pattern: ONE_LINE, ...keywords(annotations) };
  return valueSchema({ kind: "text", maxLength, expected, json }, (value) => {
    if (typeof value !== "string" || NOT_ON_ONE_LINE.test(value)) return undefined;
    return isValidText(value) && hasAtMostCodePoints(value, maxLength) ? value : undefined;
  });
}

/** Text of a form that `expected` describes. */
export function matching(pattern: RegExp, expected: string, annotations: Annotations = {}): Schema<string> {
  const json = { type: "string", pattern: pattern.source, ...keywords(annotations) };
  return valueSchema({ kind: "other", expected, json }, (value) =>
    typeof value === "string" && pattern.test(value) ? value : undefined,
  );
}

/** RFC 3339 with an offset; the seconds may have a fraction. */
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** A time as RFC 3339 writes it. */
export function dateTime(annotations: Annotations = {}): Schema<string, "time"> {
  const expected = "a time such as 2026-11-15T09:30:00Z (RFC 3339)";
  const json = { type: "string", format: "date-time", ...keywords(annotations) };
  return valueSchema({ kind: "time", expected, json }, (value) =>
    typeof value === "string" && DATE_TIME.test(value) && isOnCalendar(value) ? value : undefined,
  );
}

/**
 * Whether a date, or a date with a time, exists: `Date` takes 30 February for 2 March. In UTC too it must be within the
 * years 0000 to 9999, which RFC 3339 can write.
 */
export function isOnCalendar(time: string): boolean {
  if (Number.isNaN(Date.parse(time))) return false;
  const day = time.slice(0, 10);
  const midnight = new Date(`${day}T00:00:00Z`);
  return midnight.toISOString().startsWith(day) && /^\d/.test(new Date(time).toISOString());
}

export function boolean(annotations: Annotations = {}): Schema<boolean> {
  const json = { type: "boolean", ...keywords(annotations) };
  return valueSchema({ kind: "boolean", expected: "true or false", json }, (value) =>
    typeof value === "boolean" ? value : undefined,
  );
}

/** An integer that a double represents exactly. */
export function integer(options: { min: number; max: number } & JsonSchema): Schema<number, "integer"> {
  const { min, max, ...others } = options;
  const expected = `an integer from ${grouped(min)} to ${grouped(max)}`;
  const json = { type: "integer", minimum: min, maximum: max, ...others };
  return valueSchema({ kind: "integer", min, max, expected, json }, (value) => {
    if (typeof value !== "number" || !Number.isSafeInteger(value)) return undefined;
    return value >= min && value <= max ? value : undefined;
  });
}

/** A number from 0 on, which may have a fraction. */
export function quantity(annotations: Annotations = {}): Schema<number> {
  const json = { type: "number", minimum: 0, ...keywords(annotations) };
  return valueSchema({ kind: "number", expected: "a number from 0 on", json }, (value) =>
    typeof value === "number" && value >= 0 && value < Infinity ? value : undefined,
  );
}

export type NullableSchema<S extends Schema<unknown>> = SchemaOf<Infer<S> | null> & {
  readonly kind: "nullable";
  readonly inner: S;
};

export function nullable<S extends Schema<unknown>>(
  inner: S,
  annotations: Annotations = {},
): NullableSchema<S> {
  const expected = `${inner.expected}, or null`;
  return {
    kind: "nullable",
    inner,
    json: { anyOf: [inner.json, { type: "null" }], ...keywords(annotations) },
    expected,
    read(value) {
      if (value === null) return null;
      // The schema reads such values.
      const result = inner.read(value) as Infer<S> | Invalid;
      // A problem of a value within it stays as it is.
      const isItself = result instanceof Invalid && result.problems.some(({ path }) => path.length === 0);
      return isItself ? mustBe(expected) : result;
    },
  };
}

interface ArrayOptions {
  readonly max?: number;
  readonly areUnique?: true;
  readonly json?: Annotations;
}

export function array<T>(item: Schema<T>, options: ArrayOptions = {}): Schema<readonly T[], "array"> {
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
    kind: "array",
    item,
    json: shape,
    expected,
    read(value) {
      if (!Array.isArray(value) || value.length > max) return mustBe(expected);
      if (areUnique && new Set(value).size < value.length) return mustBe(expected);
      const items: T[] = [];
      for (const [index, element] of value.entries()) {
        const result = item.read(element);
        if (result instanceof Invalid) return new Invalid(result.in(index));
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
  const expected = `an integer from ${min} to ${max}`;
  return valueSchema({ kind: "integer", min, max, expected, json }, (value) => {
    if (typeof value !== "string" || !/^[1-9]\d{0,8}$/.test(value)) return undefined;
    const number = Number(value);
    return number >= min && number <= max ? number : undefined;
  });
}

/** An identifier in a query string: decimal, within int64. */
export function queryIdentifier(annotations: Annotations = {}): Schema<bigint> {
  const { json } = int64(annotations);
  return valueSchema({ kind: "int64", expected: `a decimal integer ${INT64_RANGE}`, json }, (value) => {
    const identifier = typeof value === "string" ? parseIdentifier(value) : undefined;
    return identifier === undefined ? undefined : BigInt(identifier);
  });
}

/** Identifiers in a query string, separated by commas or repeated. They are read in ascending order, each once. */
export function queryIdentifiers(max: number, annotations: Annotations = {}): Schema<readonly bigint[]> {
  const expected = `1 to ${max} decimal integers ${INT64_RANGE}, separated by commas`;
  const item = int64();
  const json = { type: "array", items: item.json, minItems: 1, maxItems: max, ...keywords(annotations) };
  return valueSchema({ kind: "array", item, expected, json }, (value) => {
    const texts = typeof value === "string" ? value.split(",", max + 1) : [];
    const ids = new Set<bigint>();
    for (const text of texts) {
      const identifier = parseIdentifier(text);
      if (identifier === undefined) return undefined;
      ids.add(BigInt(identifier));
    }
    if (texts.length === 0 || texts.length > max) return undefined;
    return [...ids].toSorted((a, b) => (a < b ? -1 : 1));
  });
}

type Shape<R extends Fields, O extends Fields> = { -readonly [K in keyof R]: Infer<R[K]> } & {
  -readonly [K in keyof O]?: Infer<O[K]>;
};

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
  const expected = "a JSON object";
  const properties = Object.fromEntries(all.map(([name, schema]) => [name, schema.json]));
  return {
    kind: "object",
    required,
    optional,
    names: all.map(([name]) => name),
    isEmptyValid: Object.keys(required).length === 0,
    needsOneOf: [],
    expected,
    json: { type: "object", required: Object.keys(required), properties, ...keywords(annotations) },
    read(value) {
      if (typeof value !== "object" || value === null || Array.isArray(value)) return mustBe(expected);
      const source = value as Record<string, unknown>;
      const result: Record<string, unknown> = {};
      let problems: InputProblem[] | undefined;
      for (const [name, schema] of all) {
        const isGiven = Object.hasOwn(source, name);
        if (!isGiven && Object.hasOwn(optional, name)) continue;
        const field = isGiven
          ? schema.read(source[name])
          : new Invalid(`is required and must be ${schema.expected}`);
        if (field instanceof Invalid) (problems ??= []).push(...field.in(name));
        else result[name] = field;
      }
      return problems ? new Invalid(problems) : result;
    },
  };
}

/** An object of fields to change, of which a request must have at least one; `required` says what is changed. */
export function updateSchema<O extends Fields, R extends Fields = Record<never, never>>(
  description: string,
  fields: O,
  required?: R,
): ObjectSchema<Shape<R, O>>;
export function updateSchema(
  description: string,
  fields: Fields,
  required: Fields = {},
): ObjectSchema<unknown> {
  const minProperties = Object.keys(required).length + 1;
  return {
    ...object({ description, minProperties }, required, fields),
    needsOneOf: Object.keys(fields),
  };
}

interface ReadRows<T> {
  readonly value: T;
  /** How many rows were left out. */
  readonly unreadable: number;
}

/** Reads an object and leaves out the invalid rows of its lists, so that one invalid row hides no other. */
export function readRows<T>(schema: Schema<T>, value: unknown): ReadRows<T> | Invalid {
  const whole = schema.read(value);
  if (!(whole instanceof Invalid)) return { value: whole, unreadable: 0 };
  if (schema.kind !== "object" || typeof value !== "object" || value === null) return whole;
  let unreadable = 0;
  const fields = Object.entries(value).map(([name, field]: [string, unknown]) => {
    const list = schema.required[name] ?? schema.optional[name];
    if (list?.kind !== "array" || list.item.kind !== "object" || !Array.isArray(field)) return [name, field];
    const { item } = list;
    const rows = field.filter((row) => !(item.read(row) instanceof Invalid));
    unreadable += field.length - rows.length;
    return [name, rows];
  });
  const rest = schema.read(Object.fromEntries(fields));
  return rest instanceof Invalid ? rest : { value: rest, unreadable };
}
