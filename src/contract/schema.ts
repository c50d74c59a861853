import { grouped } from "./formatting.ts";
import { INT64_MAX, INT64_MIN, INT64_RANGE, isInt64 } from "./json.ts";

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
}

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

export function int64(json: JsonSchema = {}): Schema<bigint> {
  const bounds = { type: "integer", format: "int64", minimum: INT64_MIN, maximum: INT64_MAX };
  return simple(`an integer ${INT64_RANGE}`, { ...bounds, ...json }, (value) => {
    if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : undefined;
    return typeof value === "bigint" && isInt64(value) ? value : undefined;
  });
}

export function oneOf<const V extends string>(values: readonly V[], json: JsonSchema = {}): Schema<V> {
  const quoted = values.map((value) => `"${value}"`);
  const expected = `one of ${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
  return simple(expected, { type: "string", enum: values, ...json }, (value) =>
    values.find((candidate) => candidate === value),
  );
}

/** JSON Schema cannot express lone surrogates. */
const NOT_BLANK = "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$";

/** Text of 1 to `max` code points: not only white space, no NUL, no lone surrogate. */
export function text(max: number, json: JsonSchema = {}): Schema<string> {
  const expected = `a string of 1 to ${grouped(max)} characters that is not blank and has no NUL or lone surrogate`;
  const shape = { type: "string", minLength: 1, maxLength: max, pattern: NOT_BLANK, ...json };
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

/** A positive decimal integer in a query string: no sign, no leading zero. */
export function queryInteger(options: { min: number; max: number; default: number }): Schema<number> {
  const { min, max } = options;
  const json = { type: "integer", minimum: min, maximum: max, default: options.default };
  return simple(`an integer from ${min} to ${max}`, json, (value) => {
    if (typeof value !== "string" || !/^[1-9]\d{0,8}$/.test(value)) return undefined;
    const number = Number(value);
    return number >= min && number <= max ? number : undefined;
  });
}

type Fields = Record<string, Schema<unknown>>;
type Shape<R extends Fields, O extends Fields> = { [K in keyof R]: Infer<R[K]> } & {
  [K in keyof O]?: Infer<O[K]>;
};

export interface ObjectSchema<T> extends Schema<T> {
  readonly required: Fields;
  readonly optional: Fields;
  readonly names: readonly string[];
}

/** An object. Unknown fields are ignored, and every invalid field is reported. */
export function object<R extends Fields, O extends Fields = Record<never, never>>(options: {
  required: R;
  optional?: O;
  json?: JsonSchema;
}): ObjectSchema<Shape<R, O>> {
  const { required, json = {} } = options;
  const optional: Fields = options.optional ?? {};
  const all = Object.entries({ ...required, ...optional });
  const notAnObject = new Invalid(["The request body must be a JSON object"]);

  function read(value: unknown): Shape<R, O> | Invalid {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return notAnObject;
    const source = value as Record<string, unknown>;
    const result: Record<string, unknown> = {};
    let problems: string[] | undefined;
    for (const [name, schema] of all) {
      const given = Object.hasOwn(source, name);
      if (!given && Object.hasOwn(optional, name)) continue;
      const field = given
        ? schema.read(source[name])
        : new Invalid([`is required and must be ${schema.expected}`]);
      if (field instanceof Invalid) (problems ??= []).push(...problemsOf(name, field));
      else result[name] = field;
    }
    return problems ? new Invalid(problems) : (result as Shape<R, O>);
  }

  const properties = Object.fromEntries(all.map(([name, schema]) => [name, schema.json]));
  return {
    required,
    optional,
    names: all.map(([name]) => name),
    read,
    expected: "a JSON object",
    json: { type: "object", required: Object.keys(required), properties, ...json },
  };
}

/** The problems of a field or parameter, each with its name in front. */
export function problemsOf(name: string, { problems }: Invalid): string[] {
  return problems.map((problem) => `${name} ${problem}`);
}
