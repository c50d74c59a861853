import { pathText } from "../api/errors.ts";
import { formatTime } from "../text/formatting.ts";
import { INT64_RANGE, parseIdentifier } from "../api/json.ts";
import { Invalid, type InputProblem, type Schema } from "../api/schema.ts";
import type { Option, Options } from "../config/parse-options.ts";
import { UsageError } from "../config/usage-error.ts";
import {
  trueOrFalse,
  choice,
  duration,
  expiry,
  integerWithin,
  list,
  pointInTime,
  timeOf,
  type ValueType,
} from "../config/value-types.ts";
import { withoutId } from "../domain/fields.ts";
import { MAX_OVERLAP_MS } from "../domain/key-fields.ts";
import { OPERATOR_NAME } from "../domain/operators.ts";
import type { CommandOperationId } from "../operator/handlers/data-handlers.ts";
import { ADMIN_OPERATIONS, type AdminOperation } from "../operator/operations.ts";

interface Field {
  /** Where the value goes: `plan`, or `limits` and `perMinute`. */
  readonly path: readonly [outer: string, inner?: string];
  readonly flag: string;
  readonly option: Option;
  /** The value that removes the field, if it can be removed. */
  readonly cleared?: null | readonly [];
}

/** How the flag of a field differs from the one that follows from the table. */
type FieldFlag = Partial<Pick<Field, "flag">> & { readonly option?: Partial<Option> };

/** The flags by field; null for a field that has none. */
export type FieldFlags = Readonly<Record<string, FieldFlag | null>>;

/** The value of a flag that becomes another one in its field. */
class Converted {
  constructor(readonly toField: (now: number) => unknown) {}
}

/** A flag whose value becomes another one in its field; `now` is when the command began. */
export function convertedFlag<T>(
  type: ValueType<T>,
  toField: (value: T, now: number) => unknown,
): ValueType<Converted> {
  const { format: _format, ...rest } = type;
  return {
    ...rest,
    parse(text) {
      const value = type.parse(text);
      return value === undefined ? undefined : new Converted((now) => toField(value, now));
    },
  };
}

const time = convertedFlag(pointInTime, (value, now) => formatTime(timeOf(value, now)));

/** The flag of the field `expiresAt`. */
export function expiryFlag(help: string) {
  const type = convertedFlag(expiry, (value, now) => formatTime(timeOf(value, now)));
  return { flag: "expires", option: { type, help } };
}

/** The flag of the field `overlapSeconds`. It has any unit of time. */
export function overlapFlag(help: string, defaultText: string) {
  const type = convertedFlag(duration({ min: 0, max: MAX_OVERLAP_MS }), (ms) => Math.ceil(ms / 1_000));
  return { flag: "overlap", option: { type, defaultText, help } };
}

/** The flags of a command: one for each field of its operation's query and body. */
export class OperationFlags {
  readonly options: Options;
  readonly #operation: AdminOperation;
  readonly #query: readonly Field[];
  readonly #body: readonly Field[];

  constructor(id: CommandOperationId, changes: FieldFlags = {}) {
    this.#operation = ADMIN_OPERATIONS[id];
    const { query = {}, body } = this.#operation;
    const fieldsIn = (schemas: Readonly<Record<string, Schema<unknown>>>) =>
      Object.entries(schemas).flatMap(([name, schema]) => fieldsOf([name], schema, changes));
    this.#query = fieldsIn(query);
    this.#body = fieldsIn({ ...body?.required, ...body?.optional });
    const optionOf = ({ path: [name], option }: Field): Option =>
      name in (body?.required ?? {}) ? { ...option, isRequired: true } : option;
    const fields = [...this.#query, ...this.#body];
    const clearable = this.#operation.method === "PATCH" ? this.#body.filter(isClearable) : [];
    this.options = {
      ...Object.fromEntries(fields.map((field) => [field.flag, optionOf(field)])),
      ...(clearable.length > 0 && { clear: clearOption(clearable.map(({ flag }) => flag)) }),
    };
  }

  /** The flags of the value at a path: `limits` has --per-minute and --per-day. */
  nameOf(path: InputProblem["path"]): string {
    const isWithin = (field: Field) =>
      field.path.every((name, index) => index >= path.length || name === path[index]);
    const flags = [...this.#query, ...this.#body].filter(isWithin).map(({ flag }) => `--${flag}`);
    return flags.join(" and ") || pathText(path);
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
    return Object.fromEntries(fields.map(({ path: [name], cleared }) => [name, cleared]));
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
  for (const { path, flag } of fields) {
    const value = values[flag];
    if (value === undefined) continue;
    const field = value instanceof Converted ? value.toField(now) : value;
    const [name, inner] = path;
    result[name] = inner === undefined ? field : { ...Object(result[name]), [inner]: field };
  }
  return result;
}

/** An object has a flag for each of its fields. */
function fieldsOf(path: Field["path"], schema: Schema<unknown>, changes: FieldFlags): Field[] {
  const [outer, name = outer] = path;
  const change = changes[name];
  if (change === null) return [];
  const inner = schema.kind === "nullable" ? schema.inner : schema;
  if (inner.kind === "object" && path.length === 1)
    return Object.entries({ ...inner.required, ...inner.optional }).flatMap(([field, each]) =>
      fieldsOf([outer, field], each, changes),
    );
  // An identifier is named after what it identifies: `petId` is --pet.
  const word = inner.kind === "int64" ? withoutId(name) : name;
  const flag = change?.flag ?? word.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  // That null removes a value is no part of the help, because --clear does it.
  const { description = `Only those with this ${name}`, default: byDefault } = {
    ...schema.json,
    ...inner.json,
  };
  const option: Option = {
    type: typeOf(inner, flag),
    help: String(description).replaceAll("`", ""),
    ...(byDefault !== undefined && { defaultText: String(byDefault) }),
    ...(inner.kind === "array" && { repeatable: true }),
    ...change?.option,
  };
  const cleared = schema === inner ? inner.kind === "array" && { cleared: [] as const } : { cleared: null };
  return [{ path, flag, option, ...cleared }];
}

/** How the value of a schema is typed. The operation itself validates it again. */
function typeOf(schema: Schema<unknown>, flag: string): ValueType<unknown> {
  const placeholder = flag.split("-").at(-1)?.toUpperCase() ?? "VALUE";
  switch (schema.kind) {
    case "choice":
      return choice(placeholder, schema.choices);
    case "time":
      return time;
    case "int64":
      return int64("N", `an integer ${INT64_RANGE}`);
    case "integer":
      return integerWithin(schema);
    case "boolean":
      return trueOrFalse;
    case "array":
      return list(typeOf(schema.item, flag));
    default: {
      const parse = (text: string) =>
        text === "" || schema.read(text) instanceof Invalid ? undefined : text;
      return { placeholder, expected: schema.expected, parse };
    }
  }
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
  keyId: int64("ID", "the ID of a key, as petstore keys list shows it"),
  petId: int64("ID", "the ID of a pet, as petstore pets list shows it"),
  orderId: int64("ID", "the ID of an order, as petstore orders list shows it"),
  operatorId: {
    placeholder: "NAME",
    expected: "the name or the ID of an operator, as petstore operators list shows it",
    parse: (text: string) =>
      parseIdentifier(text) !== undefined || OPERATOR_NAME.test(text) ? text : undefined,
  } satisfies ValueType<string>,
} as const;
