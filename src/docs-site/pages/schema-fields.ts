import { SCHEMAS } from "../../petstore/openapi/document.ts";
import { grouped } from "../../api/formatting.ts";
import type { JsonSchema } from "../../api/schema.ts";
import { inlineHtml, type LinkTarget } from "../markdown/blocks.ts";
import type { TryItField } from "../try-it-data.ts";

/** A parameter of a request, or a field of a body. */
export type SchemaField = Omit<TryItField, "in" | "anchor">;

interface FieldOptions {
  readonly name: string;
  readonly schema: unknown;
  readonly isRequired: boolean;
  /** Otherwise the schema has it. */
  readonly description?: string;
}

/** What a JSON Schema says about a field, as texts. */
export function fieldOf({ name, schema, isRequired, description }: FieldOptions): SchemaField {
  const json = resolved(schema);
  const examples = json["examples"];
  const example = Array.isArray(examples) ? String(examples[0]) : undefined;
  return {
    name,
    isRequired,
    description: sentence(description ?? String(json["description"] ?? "")),
    type: typeOf(json),
    constraint: constraintOf(json),
    ...(Array.isArray(json["enum"]) && { values: json["enum"].map(String) }),
    ...(json["minimum"] !== undefined && { minimum: String(json["minimum"]) }),
    ...(json["maximum"] !== undefined && { maximum: String(json["maximum"]) }),
    ...(typeof json["minLength"] === "number" && { minLength: json["minLength"] }),
    ...(typeof json["maxLength"] === "number" && { maxLength: json["maxLength"] }),
    ...(json["default"] !== undefined && { default: String(json["default"]) }),
    ...(example !== undefined && { example }),
  };
}

/** The fields of an object. */
export function fieldsOf(schema: JsonSchema): readonly SchemaField[] {
  const { properties, required } = schema;
  if (typeof properties !== "object" || properties === null) return [];
  const names: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(properties).map(([name, each]) =>
    fieldOf({ name, schema: each, isRequired: names.includes(name) }),
  );
}

/** A reference becomes the schema that it names. */
function resolved(schema: unknown): JsonSchema {
  if (!isSchema(schema)) return {};
  const { $ref } = schema;
  if (typeof $ref !== "string") return schema;
  const found = SCHEMAS[$ref.slice($ref.lastIndexOf("/") + 1)];
  return isSchema(found) ? found : {};
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null;
}

function typeOf({ type, format }: JsonSchema): SchemaField["type"] {
  if (type === "array") return "int64-list";
  if (type === "integer") return format === "int64" ? "int64" : "integer";
  return "string";
}

function constraintOf(schema: JsonSchema): string {
  const { type, format, minimum, maximum, minLength, maxLength, maxItems } = schema;
  if (Array.isArray(schema["enum"])) return String(type);
  if (type === "array") return `1 to ${String(maxItems)} integers (int64), separated by commas`;
  if (typeof format === "string") return `${String(type)} (${format})`;
  if (type === "integer" && minimum !== undefined) return `integer, ${String(minimum)} to ${String(maximum)}`;
  if (typeof minLength === "number" && typeof maxLength === "number") {
    return `string, ${minLength} to ${grouped(maxLength)} characters`;
  }
  return String(type);
}

function sentence(text: string): string {
  return text === "" || /[.!?]$/.test(text) ? text : `${text}.`;
}

export interface FieldRow {
  readonly field: SchemaField;
  readonly anchor: string;
}

interface FieldTableOptions {
  readonly links: LinkTarget;
  /** What is said of a field: that a request must have it, or that a response may lack it. */
  readonly mark: "required" | "optional";
}

/** A table with one row per field. Each row can be linked to. */
export function fieldTable(rows: readonly FieldRow[], options: FieldTableOptions): string {
  return `<table class="fields"><tbody>${rows.map((row) => fieldRow(row, options)).join("")}</tbody></table>`;
}

function fieldRow({ field, anchor }: FieldRow, { links, mark }: FieldTableOptions): string {
  const { name, constraint, isRequired, description } = field;
  const isMarked = mark === "required" ? isRequired : !isRequired;
  const note = isMarked ? ` <span class="${mark}">${mark}</span>` : "";
  const head = `<a class="heading-link" href="#${anchor}"><code>${name}</code></a>${note}<span class="type">${constraint}</span>`;
  return `<tr id="${anchor}"><th scope="row">${head}</th><td>${inlineHtml(description, links)}${bounds(field)}</td></tr>`;
}

function bounds({ values, default: defaultValue }: SchemaField): string {
  const lines: string[] = [];
  if (values !== undefined && values.length <= 5) lines.push(`One of ${values.map(code).join(", ")}`);
  if (defaultValue !== undefined) lines.push(`Default: ${code(defaultValue)}`);
  return lines.map((line) => `<span class="bound">${line}</span>`).join("");
}

function code(text: string): string {
  return `<code>${Bun.escapeHTML(text)}</code>`;
}
