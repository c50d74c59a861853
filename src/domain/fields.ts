import { type Infer, nullable, type Schema } from "../api/schema.ts";

/**
 * What a resource consists of is described once, by its fields. Schemas, rows and statements of both databases, JSON,
 * audit entries, imports and exports derive from the description.
 */
export type Fields = Readonly<Record<string, ResourceField>>;

export interface ResourceField {
  readonly schema: Schema<unknown>;
  readonly storedAs: StoredAs;
  /** Whether NULL in the database is null or no field in an object. By default the column is NOT NULL. */
  readonly ifMissing?: "null" | "absent";
}

/**
 * An int64 is a bigint, an integer a number, and a choice one of a few words without special characters. A time is text
 * (RFC 3339), and is stored as milliseconds since the epoch.
 */
export type StoredAs = "int64" | "integer" | "text" | "choice" | "time";

type Absent<F extends Fields> = { [K in keyof F]: F[K] extends { ifMissing: "absent" } ? K : never }[keyof F];
type Schemas<F extends Fields, K extends keyof F> = { -readonly [Name in K]: F[Name]["schema"] };

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
  return withoutNulls({ ...object, ...change });
}

export function withoutNulls<T>(object: object): T {
  // The type describes the remaining properties.
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null)) as T;
}

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

/** The name of a field for people: `ageMonths` is "Age months", and `categoryId` is "Category". */
export function labelOf(name: string): string {
  const words = name.replace(/(?<=.)Id$/, "").replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The column of a field. */
export function columnOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
