import { type Infer, nullable, type NullableSchema, type Schema } from "../api/schema.ts";
import { formatTime } from "../text/formatting.ts";

/** The time in examples of documentation. */
export const EXAMPLE_TIME = "2026-11-15T09:30:00.000Z";

/**
 * What a resource consists of is described once, by its fields. Schemas, rows and statements of both databases, JSON,
 * audit entries, imports and exports derive from the description.
 */
export type Fields<K extends StoredAs = StoredAs> = Readonly<Record<string, ResourceField<K>>>;

/** NULL in the database is null or no field in an object, as `ifMissing` says. By default the column is NOT NULL. */
export type ResourceField<K extends StoredAs = StoredAs> = {
  /** Who sets the value. By default whoever adds the object does, and can change it. */
  readonly setBy?: "service";
} & {
  [Kind in K]:
    | { readonly schema: StoredSchemas[Kind]; readonly storedAs: Kind; readonly ifMissing?: "absent" }
    | {
        readonly schema: NullableSchema<StoredSchemas[Kind]>;
        readonly storedAs: Kind;
        readonly ifMissing: "null";
      };
}[K];

/** What is known of fields that no schema describes. */
export type StoredFields = Readonly<Record<string, Pick<ResourceField, "storedAs" | "ifMissing">>>;

/** The schemas of what is stored. */
interface StoredSchemas {
  readonly int64: Schema<bigint, "int64">;
  readonly integer: Schema<number, "integer">;
  readonly text: Schema<string, "text">;
  /** One of a few words without special characters. */
  readonly choice: Schema<string, "choice">;
  /** Text (RFC 3339), which is stored as milliseconds since the epoch. */
  readonly time: Schema<string, "time">;
  /** Other values, which are stored as JSON. */
  readonly json: Schema<unknown, "array" | "object" | "other">;
}
export type StoredAs = keyof StoredSchemas;
/** What both databases can write as JSON. */
export type StoredInJson = Exclude<StoredAs, "json">;

/**
 * The fields of what clients add. Clients cannot send a time: a response has its text as it was sent, and later reads
 * have what the database makes of it.
 */
export type ClientFields = Readonly<
  Record<
    string,
    ResourceField<Exclude<StoredInJson, "time">> | (ResourceField<"time"> & { readonly setBy: "service" })
  >
>;

type Absent<F extends Fields> = { [K in keyof F]: F[K] extends { ifMissing: "absent" } ? K : never }[keyof F];
type Schemas<F extends Fields, K extends keyof F> = { -readonly [Name in K]: F[Name]["schema"] };

type Given<F extends Fields> = {
  [K in keyof F as F[K] extends { setBy: "service" } ? never : K]: F[K];
};

/** Returns the fields that the service does not set. */
export function givenFieldsOf<F extends Fields>(fields: F): Given<F> {
  const given = Object.entries(fields).filter(([, { setBy }]) => setBy === undefined);
  // `Object.fromEntries` loses the names of the fields.
  return Object.fromEntries(given) as Given<F>;
}

/** Returns the schemas of the fields of an object. */
export function schemasOf<F extends Fields>(fields: F) {
  const entries = Object.entries(fields);
  const schemas = (isOptional: boolean) =>
    Object.fromEntries(
      entries.flatMap(([name, { schema, ifMissing }]) =>
        isOptional === (ifMissing === "absent") ? [[name, schema]] : [],
      ),
    );
  // TypeScript cannot infer which fields the filter selects.
  return { required: schemas(false), optional: schemas(true) } as {
    readonly required: Schemas<F, Exclude<keyof F, Absent<F>>>;
    readonly optional: Schemas<F, Absent<F>>;
  };
}

type ChangeSchemas<F extends Fields> = {
  -readonly [K in keyof F]: F[K] extends { ifMissing: "absent" }
    ? Schema<Infer<F[K]["schema"]> | null>
    : F[K]["schema"];
};

/** Returns the schemas of a change of some fields. Null removes a value that may be absent. */
export function changeSchemasOf<F extends Fields>(fields: F): ChangeSchemas<F> {
  const schemas = Object.entries(fields).map(([name, { schema, ifMissing }]) => [
    name,
    ifMissing === "absent" ? nullable(schema, `Null removes the ${name}`) : schema,
  ]);
  // `Object.fromEntries` loses the names of the fields.
  return Object.fromEntries(schemas) as ChangeSchemas<F>;
}

/** A change has fields of the object, and removes only what may be absent. */
export function withChange<T extends object>(object: T, change: object): T {
  // The change has values of the same fields.
  return withoutNulls({ ...object, ...change }) as object as T;
}

export function withoutNulls<T extends object>(object: T): WithoutNulls<T> {
  // `Object.fromEntries` loses the names of the properties.
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null)) as WithoutNulls<T>;
}

type WithoutNulls<T> = { [K in keyof T as null extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as null extends T[K] ? K : never]?: Exclude<T[K], null>;
};

/** Maps each field to a value, by its name. */
export function mapValues<F extends Fields, T>(
  fields: F,
  of: (field: ResourceField, name: keyof F & string) => T,
): Record<keyof F & string, T> {
  const values = Object.entries(fields).map(([name, field]) => [name, of(field, name)]);
  // `Object.fromEntries` loses the names of the fields.
  return Object.fromEntries(values) as Record<keyof F & string, T>;
}

/** Writes objects as JSON, with their fields in this order. `JSON.stringify` cannot write bigints. */
export function encoderOf(fields: Fields): (object: object) => string {
  const members = Object.entries(fields).map(([name, { storedAs }]) => ({
    name,
    label: `"${name}":`,
    isInteger: storedAs === "int64" || storedAs === "integer",
  }));
  return (object) => {
    let json = "";
    for (const { name, label, isInteger } of members) {
      const value: unknown = Reflect.get(object, name);
      if (value === undefined) continue;
      json += (json === "" ? "{" : ",") + label + (isInteger ? String(value) : JSON.stringify(value));
    }
    return `${json}}`;
  };
}

/** The fields that may be null. */
export type NullableField<F extends Fields> = {
  [K in keyof F]: F[K] extends { ifMissing: "null" } ? K : never;
}[keyof F];

type WorkingValue<Field extends ResourceField> = Field["storedAs"] extends "time"
  ? number
  : Exclude<Infer<Field["schema"]>, null>;

/** An object as the service works with it: times are milliseconds since the epoch, and nulls are left out. */
export type WorkingObject<F extends Fields> = {
  readonly [K in Exclude<keyof F, NullableField<F>>]: WorkingValue<F[K]>;
} & { readonly [K in NullableField<F>]?: WorkingValue<F[K]> };

/** Returns these fields of such an object as operators see them. */
export function shownValuesOf<F extends Fields>(
  fields: F,
  object: object,
): { -readonly [K in keyof F]: Infer<F[K]["schema"]> } {
  const values = mapValues(fields, ({ storedAs }, name) => {
    const value: unknown = Reflect.get(object, name) ?? null;
    return storedAs === "time" && typeof value === "number" ? formatTime(value) : value;
  });
  // The object has the fields, with such values.
  return values as { -readonly [K in keyof F]: Infer<F[K]["schema"]> };
}

/** The values that operators send, with their times in milliseconds since the epoch. */
type Parsed<T, F extends Fields> = {
  [K in keyof T]: K extends keyof F
    ? F[K]["storedAs"] extends "time"
      ? Exclude<T[K], string> | (string extends T[K] ? number : never)
      : T[K]
    : T[K];
};

/** Parses the times among the values that operators send. */
export function parseTimes<F extends Fields, T extends object>(fields: F, given: T): Parsed<T, F> {
  const parsed = Object.entries(given).map(([name, value]) => {
    const isTime = typeof value === "string" && fields[name]?.storedAs === "time";
    return [name, isTime ? Date.parse(value) : value];
  });
  // `Object.fromEntries` loses the names of the fields.
  return Object.fromEntries(parsed) as Parsed<T, F>;
}

/** What an identifier identifies: `petId` identifies a `pet`. Other names stay as they are. */
export function withoutId(name: string): string {
  return name.replace(/(?<=.)Id$/, "");
}

/** The name of a field for people: `ageMonths` is "Age months", and `petId` is "Pet". */
export function labelOf(name: string): string {
  const words = withoutId(name).replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The column of a field: `ageMonths` is stored in `age_months`. */
export type ColumnOf<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${ColumnOf<Rest>}`
  : "";

export function columnOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
