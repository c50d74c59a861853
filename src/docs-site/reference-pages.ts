import { longDate } from "../api/formatting.ts";
import { toJson } from "../api/json.ts";
import { PROTOCOL_ERRORS } from "../api/dispatch.ts";
import type { JsonSchema } from "../api/schema.ts";
import { BASE_PATH, KEY_PREFIX } from "../domain/constants.ts";
import { Order, Pet } from "../domain/resources.ts";
import type { OperationId } from "../domain/usage-history.ts";
import type { DocumentedSettings } from "../petstore/documented-settings.ts";
import { type ErrorCode, ERRORS } from "../petstore/errors.ts";
import { SCHEMAS } from "../petstore/openapi/document.ts";
import { errorExample, EXAMPLES } from "../petstore/openapi/examples.ts";
import { componentHeaders } from "../petstore/openapi/headers.ts";
import {
  COMMON_ERRORS,
  type Deprecation,
  operationErrors,
  OPERATIONS,
  OrderList,
  PetList,
  type PetstoreOperation,
} from "../petstore/operations.ts";
import { exampleContext, examplesOf } from "./examples.ts";
import { codeSpan, schemaFields, fieldTable, requestFields, tryItData, tryItSection } from "./fields.ts";
import {
  type DocsSettings,
  methodBadge,
  type DocsPage,
  PageContent,
  type Section,
  statusBadge,
} from "./layout.ts";
import {
  ERROR_CODES_PATH,
  GUIDES,
  linksOn,
  operationPath,
  relativeUrl,
  SCHEMAS_PATH,
  withSubjectLinks,
} from "./links.ts";
import { codeBlock, ExampleTabs, htmlOf, inlineHtml, textOf } from "./markdown.ts";

/** The page of one operation: what it does on the left, examples beside it. */
export function operationPage(id: OperationId, settings: DocsSettings): DocsPage {
  const operation: PetstoreOperation = OPERATIONS[id];
  const path = operationPath(id);
  const head = introduction(id, operation, path);
  const request = section("request", "Request", "");
  const tabs = new ExampleTabs().render(examplesOf(id, exampleContext(settings)));
  const parts = [
    section("responses", "Responses", responseTable(operation, path)),
    section("response-body", "Response body", responseBody(operation, path)),
    section("response-headers", "Response headers", headerTable(operation, path, settings)),
  ];
  return {
    path,
    title: operation.summary,
    description: textOf(inlineHtml(operation.description, linksOn(path))),
    html: `<div class="operation"><div class="prose">${head}${request.html}</div>${tryItSection(id, path, settings)}<div class="aside">${tabs}${responseExample(id, settings)}</div><div class="prose">${parts.map(({ html }) => html).join("")}</div></div>`,
    sections: [pageSection(id, operation), ...[request, ...parts].map((part) => part.section)],
    tryIt: tryItData(id, path, settings),
  };
}

function pageSection(id: OperationId, { method, path, summary, description }: PetstoreOperation): Section {
  const names = requestFields(id).map(({ name }) => name);
  const text = `${textOf(inlineHtml(description, () => undefined))} ${names.join(" ")}`;
  return { id: "", title: summary, level: 1, text, operation: `${method} ${path} ${id}` };
}

function section(id: string, title: string, content: string): { html: string; section: Section } {
  const heading = `<h2 id="${id}"><a class="heading-link" href="#${id}">${title}</a></h2>`;
  return { html: heading + content, section: { id, title, level: 2, text: "" } };
}

function introduction(id: OperationId, operation: PetstoreOperation, path: string): string {
  const { method, path: template, summary, description, deprecated, acceptsIdempotencyKey } = operation;
  const idempotency = acceptsIdempotencyKey
    ? `<p>See <a href="${relativeUrl(path, GUIDES.idempotency)}">Idempotency</a>.</p>`
    : "";
  const text = withSubjectLinks(htmlOf(description, linksOn(path)), path) + idempotency;
  return `<h1>${summary}</h1>
<p class="endpoint">${methodBadge(method)} <code>${BASE_PATH}${template}</code> <span class="operation-id">${id}</span></p>
${deprecated === undefined ? text : deprecationNotice(deprecated, path)}`;
}

/** It says what the description of the operation says, and more. */
function deprecationNotice({ since, sunset, replacement }: Deprecation, path: string): string {
  const migration = relativeUrl(path, GUIDES.deprecation);
  return `<p class="notice deprecated"><strong>Deprecated</strong> since ${longDate(since)}, removed on ${longDate(sunset)}. Use <code>GET ${replacement}</code> instead. <a href="${migration}">How to migrate</a></p>`;
}

/** What stands below the examples of an operation. */
export function responseExample(id: OperationId, settings: DocsSettings): string {
  const { status } = OPERATIONS[id].success;
  const [example] = Object.values(EXAMPLES[id].success);
  const response = codeBlock(toJson(example?.value, 2), "json", `Response ${status}`);
  const note = `<p class="note">Replace <code>${KEY_PREFIX[settings.environment]}YOUR_KEY</code> with your key.</p>`;
  return `${note}<div class="try-it"></div>${response}`;
}

function responseTable(operation: PetstoreOperation, path: string): string {
  const { success } = operation;
  const codes: readonly ErrorCode[] = [...operationErrors(operation), ...COMMON_ERRORS];
  const rows = [
    row(success.status, success.description),
    ...(success.headers.includes("ETag")
      ? [
          row(
            304,
            "Not modified: the current <code>ETag</code> is in <code>If-None-Match</code>. There is no body.",
          ),
        ]
      : []),
    ...codes
      .toSorted((a, b) => ERRORS[a].status - ERRORS[b].status)
      .map((code) => row(ERRORS[code].status, inlineHtml(ERRORS[code].meaning, linksOn(path)), code)),
  ];
  return `<table class="statuses"><thead><tr><th scope="col">Status</th><th scope="col">Meaning</th></tr></thead><tbody>${rows.join("")}</tbody></table>`;

  function row(status: number, meaning: string, code?: ErrorCode): string {
    const link =
      code === undefined
        ? ""
        : `<a href="${relativeUrl(path, `${ERROR_CODES_PATH}#${code}`)}"><code>${code}</code></a> `;
    return `<tr><td>${statusBadge(status)}</td><td>${link}${meaning}</td></tr>`;
  }
}

function responseBody({ success }: PetstoreOperation, path: string): string {
  const isList = success.body === PetList || success.body === OrderList;
  const item = success.body === PetList || success.body === Pet ? Pet : Order;
  const name = item === Pet ? "Pet" : "Order";
  const link = `<a href="${relativeUrl(path, `${SCHEMAS_PATH}#${name.toLowerCase()}`)}">${name}</a>`;
  const one = name === "Pet" ? `A ${link} object:` : `An ${link} object:`;
  const text = isList ? `An array of ${link} objects:` : one;
  const table = fieldTable(schemaFields(item.json), {
    anchors: "response",
    links: linksOn(path),
    mark: "optional",
  });
  return `<p>${text}</p>${table}`;
}

/** On every response. */
const RATE_LIMIT_HEADERS = [
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-Request-Id",
] as const;

function headerTable(
  { success, deprecated }: PetstoreOperation,
  path: string,
  settings: DocsSettings,
): string {
  const headers = componentHeaders(settings);
  const link = deprecated === undefined ? "NextLink" : "SuccessorLink";
  const rows = [...success.headers, ...RATE_LIMIT_HEADERS].map((name) => {
    const { description } = headers[name === "Link" ? link : name];
    return `<tr id="header-${name}"><th scope="row"><a class="heading-link" href="#header-${name}"><code>${name}</code></a></th><td>${inlineHtml(description, linksOn(path))}</td></tr>`;
  });
  return `<table class="fields"><tbody>${rows.join("")}</tbody></table>`;
}

/** The schemas of request bodies. */
const REQUESTS: ReadonlySet<string> = new Set(["NewPet", "NewOrder", "OrderUpdate"]);

/** Every schema of the OpenAPI document, with its fields. */
export function schemasPage(): DocsPage {
  const content = new PageContent();
  content.heading({ level: 1, id: "schemas", html: "Schemas" });
  content.prose(
    "<p>What requests and responses contain. Unknown fields of a request are ignored; new fields may appear in responses.</p>",
  );
  for (const [name, schema] of Object.entries(SCHEMAS)) addSchema(content, name, schema);
  return {
    path: SCHEMAS_PATH,
    title: "Schemas",
    description: "The fields of every object that requests and responses contain.",
    ...content.finish(),
  };
}

function addSchema(content: PageContent, name: string, schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  const { description, items, enum: values }: JsonSchema = { ...schema };
  const links = linksOn(SCHEMAS_PATH);
  content.heading({ level: 2, id: name.toLowerCase(), html: name });
  content.prose(`<p>${inlineHtml(String(description ?? ""), links)}</p>`);
  const fields = schemaFields({ ...schema });
  const mark = REQUESTS.has(name) ? "required" : "optional";
  if (fields.length > 0) content.prose(fieldTable(fields, { anchors: name, links, mark }));
  if (Array.isArray(values))
    content.prose(`<p>One of ${values.map((value) => codeSpan(String(value))).join(", ")}.</p>`);
  if (items !== undefined) {
    const item = name.replace(/s$/, "");
    content.prose(`<p>An array of <a href="#${item.toLowerCase()}">${item}</a> objects.</p>`);
  }
}

/** Every error code with its meaning, what to do, where it occurs and an example. */
export function errorCodesPage(settings: DocumentedSettings): DocsPage {
  const content = new PageContent();
  content.heading({ level: 1, id: "error-codes", html: "Error codes" });
  const guide = relativeUrl(ERROR_CODES_PATH, GUIDES.errors);
  content.prose(
    `<p>Every error has one of these codes. <a href="${guide}">Errors</a> explains how to handle them.</p>`,
  );
  for (const code of Object.keys(ERRORS) as ErrorCode[]) addErrorCode(content, code, settings);
  content.heading({ level: 2, id: "malformed-http", html: "Malformed HTTP" });
  content.prose("<p>These responses precede authentication. The server closes the connection.</p>");
  for (const [code, { status, meaning }] of Object.entries(PROTOCOL_ERRORS)) {
    content.heading({ level: 3, id: code, html: `<code>${code}</code>`, after: ` ${statusBadge(status)}` });
    content.prose(`<p>${inlineHtml(meaning, linksOn(ERROR_CODES_PATH))}</p>`);
  }
  return {
    path: ERROR_CODES_PATH,
    title: "Error codes",
    description: "Every error code, what it means and what to do about it.",
    ...content.finish(),
  };
}

function addErrorCode(content: PageContent, code: ErrorCode, settings: DocumentedSettings): void {
  const links = linksOn(ERROR_CODES_PATH);
  const { status, meaning } = ERRORS[code];
  content.heading({ level: 2, id: code, html: `<code>${code}</code>`, after: ` ${statusBadge(status)}` });
  content.prose(
    `<p>${inlineHtml(meaning, links)} ${inlineHtml(ERROR_ACTIONS[code], links)}</p><p class="note">${operationsWith(code)}</p>`,
  );
  content.code(codeBlock(toJson(errorExample(code, settings)["value"], 2), "json"));
}

function operationsWith(code: ErrorCode): string {
  const common: readonly ErrorCode[] = COMMON_ERRORS;
  if (common.includes(code)) return "On every operation.";
  const ids = Object.entries<PetstoreOperation>(OPERATIONS).filter(([, operation]) =>
    operationErrors(operation).includes(code),
  );
  if (ids.length === 0) return "On requests that match no operation.";
  const anchors = ids.map(
    ([id]) => `<a href="${relativeUrl(ERROR_CODES_PATH, operationPath(id))}">${id}</a>`,
  );
  return `On ${anchors.join(", ")}.`;
}

/** What a client does about an error, beyond what its meaning says. */
export const ERROR_ACTIONS: Readonly<Record<ErrorCode, string>> = {
  invalid_json: "Send valid JSON.",
  invalid_body: "Correct the fields that `message` names.",
  invalid_parameter: "Correct the parameter that `message` names.",
  missing_api_key: "Send your key.",
  invalid_api_key: "Check the key and the environment.",
  read_only_key: "Use a key with write access.",
  not_found: "Check the path.",
  pet_not_found: "Check the identifier.",
  order_not_found: "Check the identifier.",
  method_not_allowed: "Use a method from `Allow`.",
  pet_not_available: "Order another pet.",
  order_closed: "Nothing; the order is final.",
  idempotency_conflict: "Retry in a moment.",
  operation_removed: "Use what `Link` names.",
  body_too_large: "Send a smaller body.",
  unsupported_media_type: "Set `Content-Type`.",
  idempotency_key_reused: "Use a new key for a new operation.",
  rate_limited: "Wait `Retry-After` seconds.",
  key_banned: "Wait `Retry-After` seconds.",
  internal_error: "Retry; send a `POST` with its `Idempotency-Key`.",
  unavailable: "Retry after `Retry-After` seconds.",
};
