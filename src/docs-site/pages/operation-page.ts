import { KEY_PREFIX } from "../../domain/constants.ts";
import { ERRORS, type ErrorCode } from "../../petstore/errors.ts";
import { longDate } from "../../api/formatting.ts";
import { toJson } from "../../api/json.ts";
import { EXAMPLES } from "../../petstore/openapi/examples.ts";
import { componentHeaders } from "../../petstore/openapi/headers.ts";
import {
  BASE_PATH,
  COMMON_ERRORS,
  OPERATIONS,
  Orders,
  Pets,
  type Deprecation,
  type PetstoreOperation,
} from "../../petstore/operations.ts";
import type { OperationId } from "../../domain/usage-history.ts";
import { Order, Pet } from "../../domain/resources.ts";
import { codeBlock, ExampleTabs } from "../markdown/code-blocks.ts";
import { exampleContext } from "../examples/example.ts";
import { examplesOf } from "../examples/examples.ts";
import { ERROR_CODES_PATH, GUIDES, operationPath, SCHEMAS_PATH } from "../guides.ts";
import { linksOn, withSubjectLinks } from "../links.ts";
import { htmlOf, inlineHtml, textOf } from "../markdown/blocks.ts";
import type { Page, Section } from "./page.ts";
import { requestFields, tryItSection } from "./request-fields.ts";
import { fieldsOf, fieldTable } from "./schema-fields.ts";
import type { DocsSettings } from "../setting-blocks.ts";
import { relativeUrl } from "../site-path.ts";
import { tryItData } from "./page-try-it-data.ts";

/** The page of one operation: what it does on the left, examples beside it. */
export function operationPage(id: OperationId, settings: DocsSettings): Page {
  const operation: PetstoreOperation = OPERATIONS[id];
  const path = operationPath(id);
  const head = introduction(id, operation, path);
  const parts = [
    section("request", "Request", tryItSection(id, path)),
    section("responses", "Responses", responseTable(operation, path)),
    section("response-body", "Response body", responseBody(operation, path)),
    section("response-headers", "Response headers", headerTable(operation, path, settings)),
  ];
  return {
    path,
    title: operation.summary,
    description: textOf(inlineHtml(operation.description, linksOn(path))),
    html: `<div class="operation"><div class="prose">${head}</div>${aside(id, settings)}<div class="prose">${parts.map(({ html }) => html).join("")}</div></div>`,
    sections: [pageSection(id, operation), ...parts.map((part) => part.section)],
    tryIt: tryItData([id], path, settings),
  };
}

function pageSection(id: OperationId, { method, path, summary, description }: PetstoreOperation): Section {
  const names = requestFields(id).map(({ name }) => name);
  const text = `${id} ${method} ${path} ${textOf(inlineHtml(description, () => undefined))} ${names.join(" ")}`;
  return { id: "", title: summary, level: 1, text };
}

function section(id: string, title: string, content: string): { html: string; section: Section } {
  const heading = `<h2 id="${id}"><a class="heading-link" href="#${id}">${title}</a></h2>`;
  return { html: heading + content, section: { id, title, level: 2, text: "" } };
}

/** The word of a method has a colour, too. */
export function methodBadge(method: PetstoreOperation["method"]): string {
  return `<span class="method" data-method="${method}">${method}</span>`;
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

function aside(id: OperationId, settings: DocsSettings): string {
  const tabs = new ExampleTabs().render(examplesOf(id, exampleContext(settings)));
  const { status } = OPERATIONS[id].success;
  const [example] = Object.values(EXAMPLES[id].success);
  const response = codeBlock(toJson(example?.value, 2), "json", `Response ${status}`);
  const tryIt = `<a class="button" href="#try-it-${id}">Try it</a>`;
  const note = `<p class="note">Replace <code>${KEY_PREFIX[settings.environment]}YOUR_KEY</code> with your key.</p>`;
  return `<div class="aside"><div class="sticky">${tabs}<div class="aside-actions">${note}${tryIt}</div>${response}</div></div>`;
}

function responseTable({ success, errors }: PetstoreOperation, path: string): string {
  const codes: readonly ErrorCode[] = [...errors, ...COMMON_ERRORS];
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
    return `<tr><td><span class="status" data-class="${Math.floor(status / 100)}">${status}</span></td><td>${link}${meaning}</td></tr>`;
  }
}

function responseBody({ success }: PetstoreOperation, path: string): string {
  const isList = success.body === Pets || success.body === Orders;
  const item = success.body === Pets || success.body === Pet ? Pet : Order;
  const name = item === Pet ? "Pet" : "Order";
  const link = `<a href="${relativeUrl(path, `${SCHEMAS_PATH}#${name.toLowerCase()}`)}">${name}</a>`;
  const one = name === "Pet" ? `A ${link} object:` : `An ${link} object:`;
  const text = isList ? `An array of ${link} objects:` : one;
  const rows = fieldsOf(item.json).map((field) => ({ field, anchor: `response-${field.name}` }));
  return `<p>${text}</p>${fieldTable(rows, { links: linksOn(path), mark: "optional" })}`;
}

/** On every response. */
const RATE_LIMIT_HEADERS = [
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-Request-Id",
];

function headerTable(
  { success, deprecated }: PetstoreOperation,
  path: string,
  settings: DocsSettings,
): string {
  const headers = componentHeaders(settings);
  const link = deprecated === undefined ? "NextLink" : "SuccessorLink";
  const rows = [...success.headers, ...RATE_LIMIT_HEADERS].map((name) => {
    const description = headers[name === "Link" ? link : name]?.description ?? "";
    return `<tr id="header-${name}"><th scope="row"><a class="heading-link" href="#header-${name}"><code>${name}</code></a></th><td>${inlineHtml(description, linksOn(path))}</td></tr>`;
  });
  return `<table class="fields"><tbody>${rows.join("")}</tbody></table>`;
}
