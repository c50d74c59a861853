import { grouped } from "../api/formatting.ts";
import type { JsonSchema } from "../api/schema.ts";
import { BASE_PATH, KEY_PREFIX } from "../domain/constants.ts";
import type { OperationId } from "../domain/usage-history.ts";
import { EXECUTABLE } from "../executable.ts";
import type { DocumentedSettings } from "../petstore/documented-settings.ts";
import { PARAMETERS, parametersOf, SCHEMAS } from "../petstore/openapi/document.ts";
import { componentHeaders } from "../petstore/openapi/headers.ts";
import { OPERATIONS, type PetstoreOperation } from "../petstore/operations.ts";
import { ERROR_CODES_PATH, GUIDES, linksOn, relativeUrl } from "./links.ts";
import { codeBlock, inlineHtml, type LinkTarget } from "./markdown.ts";
import type { TryItData, TryItField, TryItOperation } from "./page-data.ts";

/** A field of an object, as its table describes it. */
interface SchemaField extends Omit<TryItField, "in" | "anchor"> {
  /** Plain text with `code` in backticks. */
  readonly description: string;
  /** `integer (int64)`, `1 to 100`. */
  readonly constraint: string;
  /** Below the description, in plain text with `code` in backticks. */
  readonly bounds: readonly string[];
}

/** A parameter of a request, or a field of its body. */
type RequestField = SchemaField & TryItField;

/** The headings of the tables. */
const GROUP_TITLES: Readonly<Record<TryItField["in"], string>> = {
  path: "Path parameters",
  query: "Query parameters",
  body: "Body",
  header: "Header fields",
};

interface FieldOptions {
  readonly name: string;
  readonly schema: unknown;
  readonly isRequired: boolean;
  /** Otherwise the schema has it. */
  readonly description?: string;
}

/** What a JSON Schema says about a field, as texts. */
function fieldOf({ name, schema, isRequired, description }: FieldOptions): SchemaField {
  const json = resolved(schema);
  const { minimum, maximum } = json["items"] === undefined ? json : resolved(json["items"]);
  const examples = json["examples"];
  const example = Array.isArray(examples) ? String(examples[0]) : undefined;
  return {
    name,
    isRequired,
    description: sentence(description ?? String(json["description"] ?? "")),
    type: typeOf(json),
    constraint: constraintOf(json),
    bounds: boundsOf(json),
    ...(Array.isArray(json["enum"]) && { values: json["enum"].map(String) }),
    ...(minimum !== undefined && { minimum: String(minimum) }),
    ...(maximum !== undefined && { maximum: String(maximum) }),
    ...(typeof json["minLength"] === "number" && { minLength: json["minLength"] }),
    ...(typeof json["maxLength"] === "number" && { maxLength: json["maxLength"] }),
    ...(json["default"] !== undefined && { default: String(json["default"]) }),
    ...(example !== undefined && { example }),
  };
}

/** The fields of an object. */
export function schemaFields(schema: JsonSchema): readonly SchemaField[] {
  const { properties, required } = schema;
  if (typeof properties !== "object" || properties === null) return [];
  const names: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(properties).map(([name, each]) =>
    fieldOf({ name, schema: each, isRequired: names.includes(name) }),
  );
}

/** A reference becomes the component that it names: a schema, or a parameter that several operations share. */
function resolved(value: unknown): JsonSchema {
  if (!isSchema(value)) return {};
  const { $ref } = value;
  if (typeof $ref !== "string") return value;
  const components: Readonly<Record<string, unknown>> = { ...SCHEMAS, ...PARAMETERS };
  const found = components[$ref.slice($ref.lastIndexOf("/") + 1)];
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

interface FieldTableOptions {
  /** The beginning of the id of each row, which its name follows. */
  readonly anchors: string;
  readonly links: LinkTarget;
  /** What is said of a field: that a request must have it, or that a response may lack it. */
  readonly mark: "required" | "optional";
}

/** A table with one row per field. Each row can be linked to. */
export function fieldTable(fields: readonly SchemaField[], options: FieldTableOptions): string {
  return `<table class="fields"><tbody>${fields.map((field) => fieldRow(field, options)).join("")}</tbody></table>`;
}

function fieldRow(field: SchemaField, { anchors, links, mark }: FieldTableOptions): string {
  const anchor = `${anchors}-${field.name}`;
  const { name, constraint, isRequired, description, bounds } = field;
  const isMarked = mark === "required" ? isRequired : !isRequired;
  const note = isMarked ? ` <span class="${mark}">${mark}</span>` : "";
  const notes = bounds.map((bound) => `<span class="bound">${inlineHtml(bound, links)}</span>`);
  const head = `<a class="heading-link" href="#${anchor}"><code>${name}</code></a>${note}<span class="type">${constraint}</span>`;
  return `<tr id="${anchor}"><th scope="row">${head}</th><td><span id="${anchor}-description">${inlineHtml(description, links)}${notes.join("")}</span></td></tr>`;
}

/** Of more values the table says nothing. */
const MAX_VALUES = 5;

/** Texts with `code` in backticks. */
function boundsOf({ enum: values, default: assumed }: JsonSchema): readonly string[] {
  const bounds: string[] = [];
  if (Array.isArray(values) && values.length <= MAX_VALUES)
    bounds.push(`One of ${values.map(backticked).join(", ")}`);
  if (assumed !== undefined) bounds.push(`Default: ${backticked(assumed)}`);
  return bounds;
}

function backticked(value: unknown): string {
  return `\`${String(value)}\``;
}

export function codeSpan(text: string): string {
  return `<code>${Bun.escapeHTML(text)}</code>`;
}

/** Everything that a request of the operation can have, in the order of the tables. */
export function requestFields(id: OperationId): readonly RequestField[] {
  const operation: PetstoreOperation = OPERATIONS[id];
  const parameters = parametersOf(operation).map((parameter) => parameterField(id, resolved(parameter)));
  const body = operation.body === undefined ? [] : schemaFields(operation.body.json);
  return [
    ...parameters.filter((parameter) => parameter.in !== "header"),
    ...body.map((field) => located(field, id, "body")),
    ...parameters.filter((parameter) => parameter.in === "header"),
  ];
}

function located(field: SchemaField, id: OperationId, location: TryItField["in"]): RequestField {
  return { ...field, in: location, anchor: `${id}-${field.name}` };
}

function parameterField(id: OperationId, parameter: JsonSchema): RequestField {
  const { description, required, schema, example } = parameter;
  const name = String(parameter["name"]);
  const field = fieldOf({ name, schema, isRequired: required === true, description: String(description) });
  const location = locationOf(parameter["in"]);
  return {
    ...located(field, id, location),
    // The schema of Idempotency-Key counts the optional quotes too.
    ...(location === "header" && { constraint: "string" }),
    ...(example !== undefined && { example: String(example) }),
  };
}

function locationOf(value: unknown): "path" | "query" | "header" {
  return value === "path" || value === "query" ? value : "header";
}

/** The tables that the script of the page turns into a form; see `TryItData`. */
export function tryItSection(id: OperationId, path: string, { environment }: DocumentedSettings): string {
  const groups = Map.groupBy(requestFields(id), (field) => field.in);
  const tables = [...groups].map(([location, fields]) => {
    const table = fieldTable(fields, { anchors: id, links: linksOn(path), mark: "required" });
    return `<h3>${GROUP_TITLES[location]}</h3>${table}`;
  });
  return `<section data-try-it="${id}" id="try-it-${id}"><div class="try-key"></div>${keyHelp(environment, path)}${tables.join("")}</section>`;
}

function keyHelp(environment: DocumentedSettings["environment"], path: string): string {
  const program = EXECUTABLE === undefined ? "npx petstore" : "petstore";
  const flag = environment === "production" ? "" : ` --env ${environment}`;
  const command = codeBlock(`${program} keys create --name "my key" --plan free${flag}`, "sh");
  const guide = relativeUrl(path, GUIDES.authentication);
  return `<details class="key-help"><summary>Get a key</summary>
<p>Ask whoever runs this server. A key of ${environment} begins with <code>${KEY_PREFIX[environment]}</code>; see <a href="${guide}">Authentication</a>.</p>
<p>If you run it yourself: on its first start it printed a key, or wrote one to <code>${environment}-first-key</code> in its data directory. This command creates another, even while the server is running:</p>${command}</details>`;
}

/** The methods of the client library that send one request. */
const CALLS: Readonly<Record<OperationId, string>> = {
  listPets: "pets.listPage",
  createPet: "pets.create",
  getPet: "pets.get",
  listOrders: "orders.listPage",
  placeOrder: "orders.place",
  getOrder: "orders.get",
  updateOrder: "orders.update",
};

/** The table has the texts. */
function withoutTexts(field: RequestField): TryItField {
  const { description: _text, constraint: _constraint, bounds: _bounds, ...rest } = field;
  return rest;
}

export function tryItOperation(id: OperationId): TryItOperation {
  const { method, path }: PetstoreOperation = OPERATIONS[id];
  return { method, path, call: CALLS[id], fields: requestFields(id).map(withoutTexts) };
}

/** What the script of the page at `path` needs to send requests of the operation. */
export function tryItData(id: OperationId, path: string, settings: DocumentedSettings): TryItData {
  return {
    apiPath: relativeUrl(path, BASE_PATH),
    environment: settings.environment,
    keyPrefix: KEY_PREFIX[settings.environment],
    operation: tryItOperation(id),
    baseUrl: settings.baseUrl,
    headers: headerDescriptions(settings),
    errorCodesPath: relativeUrl(path, ERROR_CODES_PATH),
  };
}

/** Headers that HTTP defines, beside those of the OpenAPI document. */
const STANDARD_HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "The format of the body.",
  "Content-Length": "The length of the body in bytes.",
  Date: "The time of the response.",
  "Cache-Control": "How long the response may be kept.",
  Vary: "The request headers that the response depends on.",
};

function headerDescriptions(settings: DocumentedSettings): Readonly<Record<string, string>> {
  const { NextLink, NextOrdersLink: _same, SuccessorLink, ...headers } = componentHeaders(settings);
  const described = Object.entries(headers).map(([name, { description }]) => [name, description]);
  const Link = `${NextLink.description} ${SuccessorLink.description}`;
  return { ...STANDARD_HEADERS, ...Object.fromEntries(described), Link };
}
