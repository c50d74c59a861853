import { grouped } from "../text/formatting.ts";
import { toJson } from "../api/json.ts";
import type { Parameter } from "../api/openapi.ts";
import type { JsonSchema } from "../api/schema.ts";
import type { Petstore } from "../client/index.ts";
import { KEY_PREFIX } from "../domain/secrets.ts";
import type { OperationId } from "../domain/operation-ids.ts";
import type { OrderUpdate } from "../domain/pets-and-orders.ts";
import { EXECUTABLE } from "../executable.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { parametersOf, SCHEMAS } from "../petstore/openapi/document.ts";
import { componentHeaders, RETRY_AFTER } from "../petstore/openapi/headers.ts";
import { OPERATIONS, type PetstoreOperation } from "../petstore/operations.ts";
import { guidePath, relativeUrl, SCHEMAS_PATH } from "./links.ts";
import { codeBlock, inlineHtml } from "./markdown.ts";
import type { TryItData, TryItField, TryItOperation } from "./page-data.ts";

/** A parameter, a header field or a field of a body. */
export interface Field extends Omit<Parameter, "in"> {
  readonly in: TryItField["in"];
}

/** The headings of the lists, in their order. */
const GROUP_TITLES: Readonly<Record<TryItField["in"], string>> = {
  path: "Path parameters",
  query: "Query parameters",
  body: "Body",
  header: "Header fields",
};

/** The fields of an object. */
export function schemaFields({ properties = {}, required }: JsonSchema): readonly Field[] {
  const names: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(properties as Readonly<Record<string, JsonSchema>>).map(([name, schema]) => {
    const description = String(nonNullOf(schema)["description"] ?? "");
    return { name, in: "body", required: names.includes(name), description, schema };
  });
}

/** The schema of a value that may be null, without null. */
function nonNullOf(schema: JsonSchema): JsonSchema {
  const { anyOf } = schema;
  return Array.isArray(anyOf) ? anyOf[0] : schema;
}

/** A list of more values would say nothing. */
const MAX_VALUES = 5;

/** Markdown: `integer (int64)`. */
export function constraintOf(schema: JsonSchema): string {
  const inner = nonNullOf(schema);
  if (inner !== schema) return `${constraintOf(inner)} or null`;
  const { type, format, enum: values, minimum, maximum, minLength, maxLength } = schema;
  if (Array.isArray(values) && values.length <= MAX_VALUES)
    return `${values.length > 1 ? "one of " : ""}\`${values.join("`, `")}\``;
  if (type === "array") return listConstraint(schema);
  if (type === "object") return linkTo(schema);
  if (format !== undefined) return `${type} (${format})`;
  const assumed = schema["default"] === undefined ? "" : `, default ${schema["default"]}`;
  if (maximum !== undefined) return `${type}, ${minimum} to ${maximum}${assumed}`;
  if (maxLength !== undefined) return `${type}, ${minLength} to ${grouped(Number(maxLength))} characters`;
  return String(type);
}

/** Only a query has a list. */
function listConstraint({ items, minItems, maxItems }: JsonSchema): string {
  const { type, format } = items as JsonSchema;
  const note = format === undefined ? "" : ` (${format})`;
  return `${minItems} to ${maxItems} ${type}s${note}, separated by commas`;
}

/** The name of a schema of the OpenAPI document. */
export function schemaName(schema: JsonSchema): string {
  const found = Object.entries(SCHEMAS).find(([, named]) => named === schema);
  if (found === undefined) throw new Error(`the OpenAPI document has no name for ${toJson(schema)}`);
  return found[0];
}

export function linkTo(schema: JsonSchema): string {
  const name = schemaName(schema);
  return `[${name}](${SCHEMAS_PATH}#${name.toLowerCase()})`;
}

function sentence(text: string): string {
  return text === "" || /[.!?]$/.test(text) ? text : `${text}.`;
}

interface FieldListOptions {
  /** The beginning of the id of each row, which its name follows. */
  readonly anchors: string;
  /** The path of the page. */
  readonly path: string;
  /** What is said of a field: that a request must have it, or that a response may lack it. */
  readonly mark: "required" | "optional";
}

/** Each field can be linked to. */
export function fieldList(fields: readonly Field[], { anchors, path, mark }: FieldListOptions): string {
  const rows = fields.map(({ name, required, description, schema }) => {
    const anchor = `${anchors}-${name}`;
    const isMarked = required === (mark === "required");
    const note = isMarked ? ` <span class="${mark}">${mark}</span>` : "";
    // The schema of Idempotency-Key counts the optional quotes too.
    const constraint = name === "Idempotency-Key" ? "string" : constraintOf(schema);
    const text = inlineHtml(sentence(description), path);
    const head = `<a class="heading-link" href="#${anchor}"><code>${name}</code></a>${note}<span class="type">${inlineHtml(constraint, path)}</span>`;
    return `<div id="${anchor}"><dt>${head}</dt><dd><span id="${anchor}-description">${text}</span></dd></div>`;
  });
  return `<dl class="fields">${rows.join("")}</dl>`;
}

/** Everything that a request of the operation can have, in the order of the lists. */
export function requestFields(id: OperationId): readonly Field[] {
  const operation: PetstoreOperation = OPERATIONS[id];
  const order = Object.keys(GROUP_TITLES);
  const fields = [...parametersOf(operation), ...schemaFields(operation.body?.json ?? {})];
  return fields.toSorted((a, b) => order.indexOf(a.in) - order.indexOf(b.in));
}

/** The lists that the script of the page turns into a form; see `TryItData`. */
export function tryItSection(id: OperationId, path: string, { environment }: DocumentedSettings): string {
  const groups = Map.groupBy(requestFields(id), (field) => field.in);
  const lists = [...groups].map(([location, fields]) => {
    const list = fieldList(fields, { anchors: id, path, mark: "required" });
    return `<h3>${GROUP_TITLES[location]}</h3>${list}`;
  });
  return `<section data-try-it="${id}" id="try-it-${id}"><div class="try-key"></div>${keyHelp(environment, path)}${lists.join("")}</section>`;
}

function keyHelp(environment: DocumentedSettings["environment"], path: string): string {
  const program = EXECUTABLE === undefined ? "npx petstore" : "petstore";
  const flag = environment === "production" ? "" : ` --env ${environment}`;
  const command = codeBlock(`${program} keys create --name "my key" --plan free${flag}`, "sh");
  const guide = relativeUrl(path, guidePath("authentication"));
  return `<details class="key-help"><summary>Get a key</summary>
<p>Ask whoever runs this server. A key of ${environment} begins with <code>${KEY_PREFIX[environment]}</code>; see <a href="${guide}">Authentication</a>.</p>
<p>If you run it yourself: on its first start it printed a key, or wrote one to <code>${environment}-first-key</code> in its data directory. This command creates another, even while the server is running:</p>${command}</details>`;
}

type Methods<Part extends "pets" | "orders" | "key"> = `${Part}.${keyof Petstore[Part] & string}`;
type ClientMethod = Methods<"pets"> | Methods<"orders"> | Methods<"key">;
type ByStatus = Readonly<Record<OrderUpdate["status"], ClientMethod>>;

export function tryItOperation(id: OperationId): TryItOperation {
  const { method, path }: PetstoreOperation = OPERATIONS[id];
  const call: ClientMethod | ByStatus = OPERATIONS[id].clientMethod;
  const fields = requestFields(id).map((field) => tryItField(field, `${id}-${field.name}`));
  return { method, path, call, fields };
}

function tryItField(field: Field, anchor: string): TryItField {
  const { name, in: location, required, schema } = field;
  const { enum: values, items, maxLength, default: assumed, examples } = schema;
  const { minimum, maximum } = (items ?? schema) as JsonSchema;
  const example = field.example ?? (Array.isArray(examples) ? examples[0] : undefined);
  return {
    name,
    in: location,
    anchor,
    isRequired: required,
    type: inputType(schema),
    ...(Array.isArray(values) && { values: values.map(String) }),
    ...(minimum !== undefined && { minimum: String(minimum) }),
    ...(maximum !== undefined && { maximum: String(maximum) }),
    ...(typeof maxLength === "number" && { maxLength }),
    ...(assumed !== undefined && { default: String(assumed) }),
    ...(example !== undefined && { example: String(example) }),
  };
}

function inputType({ type, items }: JsonSchema): TryItField["type"] {
  if (type !== "array") return type === "integer" ? "integer" : "string";
  const { type: itemType } = items as JsonSchema;
  if (itemType !== "integer") throw new Error(`a form has no input for a list of ${itemType}s`);
  return "integer-list";
}

/** What the script of a page needs to send requests of the operation. */
export function tryItData(id: OperationId, settings: DocumentedSettings): TryItData {
  const { environment, baseUrl } = settings;
  return { environment, baseUrl, operation: tryItOperation(id), headers: headerDescriptions(settings) };
}

/** Headers that HTTP defines, besides those of the OpenAPI document. */
const STANDARD_HEADERS: Readonly<Record<string, string>> = {
  "Content-Type": "The format of the body.",
  "Content-Length": "The length of the body in bytes.",
  Date: "The time of the response.",
  "X-Content-Type-Options": "Browsers use the declared `Content-Type`.",
  Vary: "The request headers that the response depends on.",
};

function headerDescriptions(settings: DocumentedSettings): Readonly<Record<string, string>> {
  const { NextLink, NextOrdersLink: _same, SuccessorLink, ...headers } = componentHeaders(settings);
  const described = Object.entries(headers).map(([name, { description }]) => [name, description]);
  const Link = `${NextLink.description} ${SuccessorLink.description}`;
  return {
    ...STANDARD_HEADERS,
    ...Object.fromEntries(described),
    Link,
    "Retry-After": RETRY_AFTER.description,
  };
}
