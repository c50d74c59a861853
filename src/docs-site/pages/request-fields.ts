import { PARAMETERS, parametersOf } from "../../petstore/openapi/document.ts";
import { OPERATIONS, type PetstoreOperation } from "../../petstore/operations.ts";
import type { OperationId } from "../../domain/usage-history.ts";
import type { JsonSchema } from "../../api/schema.ts";
import { linksOn } from "../links.ts";
import { fieldOf, fieldsOf, fieldTable, type SchemaField } from "./schema-fields.ts";
import { FIELD_GROUP_TITLES, type TryItField } from "../try-it-data.ts";

/** Everything that a request of the operation can have, in the order of the tables. */
export function requestFields(id: OperationId): readonly TryItField[] {
  const operation: PetstoreOperation = OPERATIONS[id];
  const parameters = parametersOf(operation).map((parameter) => parameterField(id, resolved(parameter)));
  const body = operation.body === undefined ? [] : fieldsOf(operation.body.json);
  return [
    ...parameters.filter((parameter) => parameter.in !== "header"),
    ...body.map((field) => placed(field, id, "body")),
    ...parameters.filter((parameter) => parameter.in === "header"),
  ];
}

function placed(field: SchemaField, id: OperationId, place: TryItField["in"]): TryItField {
  return { ...field, in: place, anchor: `${id}-${field.name}` };
}

function parameterField(id: OperationId, parameter: JsonSchema): TryItField {
  const { description, required, schema, example } = parameter;
  const name = String(parameter["name"]);
  const field = fieldOf({ name, schema, isRequired: required === true, description: String(description) });
  const place = placeOf(parameter["in"]);
  return {
    ...placed(field, id, place),
    // The schema of Idempotency-Key counts the optional quotes too.
    ...(place === "header" && { constraint: "string" }),
    ...(example !== undefined && { example: String(example) }),
  };
}

function placeOf(value: unknown): "path" | "query" | "header" {
  return value === "path" || value === "query" ? value : "header";
}

/** Parameters that several operations share are references. */
function resolved(parameter: JsonSchema): JsonSchema {
  const { $ref } = parameter;
  if (typeof $ref !== "string") return parameter;
  const shared: Readonly<Record<string, JsonSchema>> = PARAMETERS;
  return shared[$ref.slice($ref.lastIndexOf("/") + 1)] ?? {};
}

/** The section that the script of the page turns into a form; see `TryItData`. */
export function tryItSection(id: OperationId, path: string): string {
  const groups = Map.groupBy(requestFields(id), (field) => field.in);
  const tables = [...groups].map(([place, fields]) => {
    const rows = fields.map((field) => ({ field, anchor: field.anchor }));
    return `<h3>${FIELD_GROUP_TITLES[place]}</h3>${fieldTable(rows, { links: linksOn(path), mark: "required" })}`;
  });
  return `<section data-try-it="${id}" id="try-it-${id}">${tables.join("")}</section>`;
}
