import { toJson } from "../api/json.ts";
import { PROTOCOL_ERRORS } from "../api/protocol-errors.ts";
import type { JsonSchema } from "../api/schema.ts";
import { BASE_PATH } from "../domain/paths.ts";
import { KEY_PREFIX } from "../domain/secrets.ts";
import type { OperationId } from "../domain/operation-ids.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { deprecatedIntroduction } from "../petstore/deprecation.ts";
import { type ErrorCode, ERRORS } from "../petstore/errors.ts";
import { NOT_MODIFIED, SCHEMAS } from "../petstore/openapi/document.ts";
import { errorExample, EXAMPLES } from "../petstore/openapi/examples.ts";
import { COMMON_HEADERS, componentHeaders, headersOf } from "../petstore/openapi/headers.ts";
import {
  COMMON_ERRORS,
  operationErrors,
  OPERATIONS,
  type PetstoreOperation,
  isConditionalGet,
} from "../petstore/operations.ts";
import { exampleContext, examplesOf } from "./examples.ts";
import {
  type Field,
  fieldList,
  linkTo,
  requestFields,
  schemaFields,
  schemaName,
  tryItData,
  tryItSection,
} from "./fields.ts";
import { methodBadge } from "./layout.ts";
import { operationPath, SCHEMAS_PATH } from "./links.ts";
import { codeBlock, htmlOf, markdownTable } from "./markdown.ts";
import { type DocsPage, PageContent } from "./page-content.ts";
import { ERROR_CODES_PATH } from "./page-data.ts";

/** The page of one operation. */
export function operationPage(id: OperationId, settings: DocumentedSettings): DocsPage {
  const operation: PetstoreOperation = OPERATIONS[id];
  const { method, path: template, summary, success } = operation;
  const path = operationPath(id);
  const content = new PageContent(path);
  content.markdown(`# ${summary}`);
  content.prose(
    `<p class="endpoint">${methodBadge(method)} <code>${BASE_PATH}${template}</code> <span class="operation-id">${id}</span></p>`,
    "",
  );
  content.markdown(introduction(operation, settings));
  content.markdown("## Request");
  addTryIt(content, id, settings);
  content.markdown("## Responses");
  content.prose(responseTable(operation, path), "");
  const items = itemsOf(success.body.json);
  const schema = items ?? success.body.json;
  content.markdown(`## Response body\n\n${items ? "An array of" : "One"} ${linkTo(schema)}:`);
  const fields = schemaFields(schema);
  content.prose(fieldList(fields, { anchors: "response", path, mark: "optional" }), "");
  content.markdown("## Response headers");
  const headers = headerFields(operation, settings);
  content.prose(fieldList(headers, { anchors: "header", path, mark: "optional" }), namesOf(headers));
  return content.finish({ operation: `${method} ${template} ${id}`, tryIt: tryItData(id, settings) });
}

/** Adds what a request can have, with the examples and the response; a script makes a form of it. */
export function addTryIt(content: PageContent, id: OperationId, settings: DocumentedSettings): void {
  const { status } = OPERATIONS[id].success;
  const [example] = Object.values(EXAMPLES[id].success);
  content.form(tryItSection(id, content.path, settings), namesOf(requestFields(id)));
  content.examples(examplesOf(id, exampleContext(settings)));
  content.code(
    `<p class="note">Export your key first: <code>export PETSTORE_KEY=${KEY_PREFIX[settings.environment]}…</code></p><div class="try-it"></div>`,
  );
  content.code(codeBlock(toJson(example?.value, 2), "json", `Response ${status}`));
}

/** The introduction of a deprecated operation says what the description says, and more. */
function introduction(
  { description, deprecated, acceptsIdempotencyKey }: PetstoreOperation,
  settings: DocumentedSettings,
): string {
  if (deprecated !== undefined) return deprecatedIntroduction(deprecated, settings);
  return acceptsIdempotencyKey ? `${description} See [Idempotency](idempotency.md).` : description;
}

function responseTable(operation: PetstoreOperation, path: string): string {
  const { success } = operation;
  const codes: readonly ErrorCode[] = [...operationErrors(operation), ...COMMON_ERRORS];
  const errors = codes.toSorted((a, b) => ERRORS[a].status - ERRORS[b].status);
  const rows = [
    [String(success.status), "", success.description],
    ...(isConditionalGet(operation) ? [["304", "", NOT_MODIFIED]] : []),
    ...errors.map((code) => [String(ERRORS[code].status), `\`${code}\``, ERRORS[code].meaning]),
  ];
  return htmlOf(markdownTable(["Status", "Code", "Meaning"], rows), path);
}

/** The headers of the operation before those of every response. */
function headerFields(operation: PetstoreOperation, settings: DocumentedSettings): readonly Field[] {
  const headers = headersOf(componentHeaders(settings), operation.success.headers, operation);
  const fields = Object.entries(headers).map(([name, header]): Field =>
    Object.assign({ name, in: "header" as const }, header),
  );
  return [...fields.slice(COMMON_HEADERS.length), ...fields.slice(0, COMMON_HEADERS.length)];
}

/** What a list of fields is found by. */
function namesOf(fields: readonly Field[]): string {
  return fields.map(({ name }) => name).join(" ");
}

/** The schema of the items, if the schema is that of a list. */
function itemsOf({ items }: JsonSchema): JsonSchema | undefined {
  return items as JsonSchema | undefined;
}

/** The schemas of request bodies. */
const REQUESTS: ReadonlySet<JsonSchema | undefined> = new Set(
  Object.values<PetstoreOperation>(OPERATIONS).map(({ body }) => body?.json),
);

/** Every schema of the OpenAPI document, with its fields. */
export function schemasPage(): DocsPage {
  const content = new PageContent(SCHEMAS_PATH);
  content.markdown(
    "# Schemas\n\nWhat requests and responses contain. Unknown fields of a request are ignored; new fields may appear in responses.",
  );
  for (const [name, schema] of Object.entries(SCHEMAS)) addSchema(content, name, schema);
  return content.finish();
}

function addSchema(content: PageContent, name: string, schema: JsonSchema): void {
  const { description = "", enum: values } = schema;
  content.markdown(`## ${name}\n\n${String(description)}`);
  const fields = schemaFields(schema);
  const mark = REQUESTS.has(schema) ? "required" : "optional";
  if (fields.length > 0) content.prose(fieldList(fields, { anchors: name, path: SCHEMAS_PATH, mark }));
  if (Array.isArray(values)) content.markdown(`One of ${values.map((value) => `\`${value}\``).join(", ")}.`);
  const items = itemsOf(schema);
  if (items !== undefined) {
    const item = schemaName(items);
    content.markdown(`An array of [${item}](#${item.toLowerCase()}) objects.`);
  }
}

/** Every error code with its meaning, what to do, where it occurs and an example. */
export function errorCodesPage(settings: DocumentedSettings): DocsPage {
  const content = new PageContent(ERROR_CODES_PATH);
  content.markdown(
    "# Error codes\n\nEvery error has one of these codes. [Errors](errors.md) explains how to handle them.",
  );
  content.prose(errorIndex(), "");
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const { status, meaning, action } = ERRORS[code];
    content.markdown(`## \`${code}\`

**${status}.** ${meaning} ${action}

${operationsWith(code)}

\`\`\`json
${toJson(errorExample(code, settings)["value"], 2)}
\`\`\``);
  }
  content.markdown(
    "## Malformed HTTP\n\nThese responses precede authentication. The server closes the connection.",
  );
  for (const [code, { status, meaning }] of Object.entries(PROTOCOL_ERRORS))
    content.markdown(`### \`${code}\`\n\n**${status}.** ${meaning}`);
  return content.finish();
}

/** All codes by their status, each with a link. */
function errorIndex(): string {
  const codes = Object.entries({ ...ERRORS, ...PROTOCOL_ERRORS });
  const byStatus = Map.groupBy(codes, ([, { status }]) => status);
  const rows = Array.from(byStatus).toSorted(([a], [b]) => a - b);
  const cells = rows.map(([status, some]) => [`${status}`, some.map(([code]) => `\`${code}\``).join(", ")]);
  return htmlOf(markdownTable(["Status", "Codes"], cells), ERROR_CODES_PATH);
}

function operationsWith(code: ErrorCode): string {
  const common: readonly ErrorCode[] = COMMON_ERRORS;
  if (common.includes(code)) return "On every operation.";
  const operations = Object.entries<PetstoreOperation>(OPERATIONS);
  const ids = operations.filter(([, operation]) => operationErrors(operation).includes(code));
  if (ids.length === 0) return "On requests that match no operation.";
  return `On ${ids.map(([id]) => `\`${id}\``).join(", ")}.`;
}
