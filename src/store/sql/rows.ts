import { AUDIT_FIELDS, type AuditRow } from "../../domain/audit.ts";
import {
  type ColumnOf,
  columnOf,
  type Fields,
  type StoredFields,
  type StoredAs,
  type StoredInJson,
} from "../../domain/fields.ts";
import { KEY_FIELDS, type StoredKey } from "../../domain/key-fields.ts";
import {
  OPERATOR_ORDER_FIELDS,
  type OperatorOrder,
  type Order,
  ORDER_FIELDS,
  type Pet,
  PET_FIELDS,
} from "../../domain/pets-and-orders.ts";
import { requireRow, rowsOf, type Statement, type Steps } from "./steps.ts";
import type { SqlValue } from "./values.ts";
import type { ColumnType, Dialect } from "./dialect.ts";

type StoredField = StoredFields[string];

/** How the objects of a resource are stored in the rows of a table. */
class RowMapping<T extends object> {
  readonly columns: Readonly<Record<ColumnOf<keyof T & string>, ColumnType>>;
  /** The columns of a SELECT that reads all fields. */
  readonly selected: string;
  /** The columns that a statement writes: all except the identifier, which the database assigns. */
  readonly writtenColumns: Readonly<Record<string, ColumnType>>;
  readonly #fields: readonly [name: string, field: StoredField][];
  /** The fields of `writtenColumns`. */
  readonly #writtenFields: readonly [name: string, field: StoredField][];

  constructor(
    readonly table: string,
    fields: StoredFields,
  ) {
    this.#fields = Object.entries(fields);
    const columns = Object.fromEntries(
      this.#fields.map(([name, { storedAs }]) => [columnOf(name), COLUMN_TYPES[storedAs]]),
    );
    // `Object.fromEntries` loses the names of the columns.
    this.columns = columns as typeof this.columns;
    const { id: _, ...writtenColumns } = columns;
    this.writtenColumns = writtenColumns;
    this.#writtenFields = this.#fields.filter(([name]) => name !== "id");
    this.selected = this.select(Object.keys(fields));
  }

  /** The columns of a SELECT that reads these fields. PostgreSQL folds unquoted names to lower case. */
  select(names: readonly string[]): string {
    return names
      .map((name) => (columnOf(name) === name ? name : `${columnOf(name)} AS "${name}"`))
      .join(", ");
  }

  /** Makes the object of a row that `selected` has read. */
  readonly objectOf = (row: Readonly<Record<string, unknown>>): T => {
    const object: Record<string, unknown> = {};
    for (const [name, field] of this.#fields) {
      const value = row[name] ?? null;
      if (value !== null) object[name] = readValue(value, field);
      else if (field.ifMissing === "null") object[name] = null;
    }
    // The object has the fields from which T is derived.
    return object as T;
  };

  /** Makes the `WorkingObject` of a row, for a resource whose objects are such ones. */
  readonly workingObjectOf = (row: Readonly<Record<string, unknown>>): T => {
    const object: Record<string, unknown> = {};
    for (const [name, { storedAs }] of this.#fields) {
      const value = row[name] ?? null;
      if (value === null) continue;
      if (storedAs === "json") object[name] = JSON.parse(`${value}`);
      else object[name] = storedAs === "time" || storedAs === "integer" ? Number(value) : value;
    }
    // The object has the fields from which T is derived.
    return object as T;
  };

  /** The values of all columns except the identifier. */
  valuesOf(object: Omit<T, "id">): (SqlValue | null)[] {
    return this.#writtenFields.map(([name, { storedAs }]) => {
      const value: unknown = Reflect.get(object, name) ?? null;
      if (storedAs === "json" && value !== null) return JSON.stringify(value);
      // The schemas of the fields allow only such values. The time of a working object is a number.
      return storedAs === "time" && typeof value === "string"
        ? Date.parse(value)
        : (value as SqlValue | null);
    });
  }

  /** Adds an object and returns the identifier that the database assigned. */
  *insert(object: Omit<T, "id">, dialect: Dialect): Steps<bigint> {
    const sql = dialect.insert(this.table, Object.keys(this.writtenColumns));
    const [row] = yield* rowsOf<{ id: bigint }>(sql, ...this.valuesOf(object));
    return requireRow(row).id;
  }

  /** Replaces all values of an object. */
  update(id: bigint, object: Omit<T, "id">): Statement {
    const set = Object.keys(this.writtenColumns).map((column) => `${column} = ?`);
    return {
      sql: `UPDATE ${this.table} SET ${set.join(", ")} WHERE id = ?`,
      values: [...this.valuesOf(object), id],
    };
  }
}

/** An expression for the JSON of an object, in the form that `encoderOf` writes. */
export function jsonIn({ jsonObject }: Pick<Dialect, "jsonObject">, fields: Fields<StoredInJson>): string {
  return jsonObject(
    Object.entries(fields).map(([name, { storedAs, ifMissing }]) => ({
      name,
      column: columnOf(name),
      kind: storedAs === "int64" ? "integer" : storedAs,
      isOptional: ifMissing === "absent",
    })),
  );
}

const COLUMN_TYPES: Readonly<Record<StoredAs, ColumnType>> = {
  int64: "integer",
  integer: "integer",
  time: "integer",
  text: "text",
  choice: "text",
  // The text stays as it was written.
  json: "text",
};

function readValue(value: unknown, { storedAs }: StoredField): unknown {
  if (storedAs === "time") return new Date(Number(value)).toISOString();
  if (storedAs === "json") return JSON.parse(`${value}`);
  return storedAs === "integer" ? Number(value) : value;
}

export const PET_ROWS = new RowMapping<Pet>("pets", PET_FIELDS);
export const ORDER_ROWS = new RowMapping<Order>("orders", ORDER_FIELDS);
export const OPERATOR_ORDER_ROWS = new RowMapping<OperatorOrder>("orders", OPERATOR_ORDER_FIELDS);
export const KEY_ROWS = new RowMapping<StoredKey>("api_keys", KEY_FIELDS);
export const AUDIT_ROWS = new RowMapping<AuditRow>("audit", AUDIT_FIELDS);
