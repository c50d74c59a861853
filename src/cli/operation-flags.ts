import { formatTime } from "../api/formatting.ts";
import { INT64_RANGE, parseIdentifier } from "../api/json.ts";
import { Invalid, type JsonSchema, type Schema } from "../api/schema.ts";
import type { Option, Options } from "../config/parse-options.ts";
import { UsageError } from "../config/usage-error.ts";
import {
  trueOrFalse,
  choice,
  integerWithin,
  list,
  type PointInTime,
  pointInTime,
  timeOf,
  type ValueType,
} from "../config/value-types.ts";
import { OPERATOR_NAME } from "../domain/operators.ts";
import type { DataOperationId } from "../operator/handlers/data-handlers.ts";
import { ADMIN_API, type AdminOperation } from "../operator/operations.ts";

interface Field {
  /** Where the value goes: `plan`, or `limits` and `perMinute`. */
  readonly path: readonly string[];
  readonly flag: string;
  readonly option: Option;
  /** The value of the field; undefined if it is not set. */
  readonly toField?: (value: never, now: number) => unknown;
  /** The value that removes the field, if it can be removed. */
  readonly cleared?: null | readonly [];
}

/** How the flag of a field differs from the one that follows from the table. */
type FieldFlag = Partial<Pick<Field, "flag" | "toField">> & { readonly option?: Partial<Option> };

/** The flags by field; null for a field that has none. */
export type FieldFlags = Readonly<Record<string, FieldFlag | null>>;

/** A schema, or a part of one of which only its JSON Schema is known. */
type SchemaPart = Pick<Schema<unknown>, "json"> & Partial<Schema<unknown>>;

/** The flags of a command: one for each field of its operation's query and body. */
export class OperationFlags {
  readonly options: Options;
  readonly #operation: AdminOperation;
  readonly #query: readonly Field[];
  readonly #body: readonly Field[];

  constructor(id: DataOperationId, changes: FieldFlags = {}) {
    this.#operation = ADMIN_API.operations[id];
    const { query = {}, body } = this.#operation;
    const fieldsIn = (schemas: Readonly<Record<string, Schema<unknown>>>) =>
      Object.entries(schemas).flatMap(([name, schema]) => fieldsOf([name], schema, changes));
    this.#query = fieldsIn(query);
    this.#body = fieldsIn({ ...body?.required, ...body?.optional });
    const optionOf = ({ path: [name = ""], option }: Field): Option =>
      name in (body?.required ?? {}) ? { ...option, isRequired: true } : option;
    const fields = [...this.#query, ...this.#body];
    const clearable = this.#operation.method === "PATCH" ? this.#body.filter(isClearable) : [];
    this.options = {
      ...Object.fromEntries(fields.map((field) => [field.flag, optionOf(field)])),
      ...(clearable.length > 0 && { clear: clearOption(clearable.map(({ flag }) => flag)) }),
    };
  }

  /** A message about fields, as one about flags: `limits.perDay is required` is about --per-day. */
  inFlags(message: string): string {
    const fields = [...this.#query, ...this.#body];
    const names = new Map(fields.map(({ path, flag }) => [path.join("."), `--${flag}`]));
    for (const [name, group] of Map.groupBy(fields, ({ path: [outer = ""] }) => outer))
      if (!names.has(name)) names.set(name, group.map(({ flag }) => `--${flag}`).join(" and "));
    return message.replace(/(^|; )([\w.]+)(?:\[\d+\])?/g, (all, start: string, name: string) =>
      names.has(name) ? start + names.get(name) : all,
    );
  }

  /** The query and the body that the values of the flags say. */
  inputOf(values: Readonly<Record<string, unknown>>, now: number) {
    const { query, body } = this.#operation;
    return {
      query: query && collect(this.#query, values, now),
      body: body && { ...collect(this.#body, values, now), ...this.#cleared(values) },
    };
  }

  /** The fields that --clear removes. */
  #cleared(values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { clear = [] } = values as { readonly clear?: readonly string[] };
    const both = clear.find((flag) => values[flag] !== undefined);
    if (both !== undefined)
      throw new UsageError(`--${both} and --clear ${both} exclude each other; use one of them`);
    const fields = this.#body.filter(({ flag }) => clear.includes(flag));
    return Object.fromEntries(fields.map(({ path: [name = ""], cleared }) => [name, cleared]));
  }
}

function isClearable({ cleared }: Field): boolean {
  return cleared !== undefined;
}

function clearOption(flags: readonly string[]): Option {
  return { type: list(choice("FIELD", flags)), repeatable: true, help: "Values to remove" };
}

function collect(fields: readonly Field[], values: Readonly<Record<string, unknown>>, now: number) {
  const result: Record<string, unknown> = {};
  for (const { path, flag, toField } of fields) {
    const value = values[flag];
    const field = value === undefined ? undefined : toField ? toField(value as never, now) : value;
    if (field === undefined) continue;
    const [name = "", inner] = path;
    if (inner === undefined) result[name] = field;
    else result[name] = { ...(result[name] as object | undefined), [inner]: field };
  }
  return result;
}

const toTime = (value: PointInTime, now: number) => formatTime(timeOf(value, now));

/** An object has a flag for each of its fields. */
function fieldsOf(path: readonly string[], field: SchemaPart, changes: FieldFlags): Field[] {
  const name = path.at(-1) ?? "";
  const change = changes[name];
  if (change === null) return [];
  const { json } = field;
  const schema = withoutNull(json);
  const { properties } = schema as { properties?: Readonly<Record<string, JsonSchema>> };
  if (properties && path.length === 1)
    return Object.entries(properties).flatMap(([inner, each]) =>
      fieldsOf([...path, inner], { json: each }, changes),
    );
  const flag = change?.flag ?? name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const type = typeOf({ ...field, json: schema }, flag);
  const { description = `Only those with this ${name}`, default: byDefault } = { ...schema, ...json } as {
    description?: string;
    default?: unknown;
  };
  const option: Option = {
    type,
    help: description.replaceAll("`", ""),
    ...(byDefault !== undefined && { defaultText: String(byDefault) }),
    ...(schema["type"] === "array" && { repeatable: true }),
    ...change?.option,
  };
  const isTime = schema["format"] === "date-time";
  const cleared =
    schema !== json ? { cleared: null } : schema["type"] === "array" && { cleared: [] as const };
  return [{ path, flag, ...cleared, ...(isTime && { toField: toTime }), ...change, option }];
}

function withoutNull(json: JsonSchema): JsonSchema {
  const { anyOf } = json as { anyOf?: readonly JsonSchema[] };
  return anyOf?.find(({ type }) => type !== "null") ?? json;
}

/** How the value of a schema is typed. The operation itself validates it again. */
function typeOf({ json, expected = "text", read }: SchemaPart, flag: string): ValueType<unknown> {
  const { type, format, minimum, maximum, items } = json as {
    type?: string;
    format?: string;
    minimum?: number;
    maximum?: number;
    items?: JsonSchema;
  };
  const placeholder = flag.split("-").at(-1)?.toUpperCase() ?? "VALUE";
  const values = json["enum"] as readonly string[] | undefined;
  if (values) return choice(placeholder, values);
  if (format === "date-time") return pointInTime;
  if (format === "int64") return int64("N", `an integer ${INT64_RANGE}`);
  if (type === "integer")
    return integerWithin({ min: minimum ?? 0, max: maximum ?? Number.MAX_SAFE_INTEGER });
  if (type === "boolean") return trueOrFalse;
  if (type === "array") return list(typeOf({ json: items ?? {} }, flag));
  return {
    placeholder,
    expected: expected.replace(/, or null$/, ""),
    parse: (text) => (text === "" || read?.(text) instanceof Invalid ? undefined : text),
  };
}

/** An int64 in plain decimal, as in the paths of the API. */
function int64(placeholder: string, expected: string): ValueType<bigint> {
  return {
    placeholder,
    expected,
    parse: (text) => {
      const value = parseIdentifier(text);
      return value === undefined ? undefined : BigInt(value);
    },
  };
}

/** An ID, and never a secret: other users of the machine can read the arguments of a process. */
export const ID_TYPES = {
  key: int64("ID", "the ID of a key, as petstore keys list shows it"),
  pet: int64("ID", "the ID of a pet, as petstore pets list shows it"),
  order: int64("ID", "the ID of an order, as petstore orders list shows it"),
  operator: {
    placeholder: "ID",
    expected: "the ID or the name of an operator, as petstore operators list shows it",
    parse: (text: string) =>
      parseIdentifier(text) !== undefined || OPERATOR_NAME.test(text) ? text : undefined,
  } satisfies ValueType<string>,
} as const;
