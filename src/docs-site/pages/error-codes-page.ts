import type { DocumentedSettings } from "../../petstore/documented-settings.ts";
import { type ErrorCode, ERRORS } from "../../petstore/errors.ts";
import { PROTOCOL_ERRORS } from "../../api/protocol-errors.ts";
import { toJson } from "../../api/json.ts";
import { errorExample } from "../../petstore/openapi/examples.ts";
import { COMMON_ERRORS, OPERATIONS, type PetstoreOperation } from "../../petstore/operations.ts";
import { codeBlock } from "../markdown/code-blocks.ts";
import { ERROR_ACTIONS } from "../error-actions.ts";
import { ERROR_CODES_PATH, GUIDES, operationPath } from "../guides.ts";
import { linksOn } from "../links.ts";
import { inlineHtml } from "../markdown/blocks.ts";
import type { Page } from "./page.ts";
import { PageContent } from "./page-content.ts";
import { relativeUrl } from "../site-path.ts";

const links = linksOn(ERROR_CODES_PATH);

/** Every error code with its meaning, what to do, where it occurs and an example. */
export function errorCodesPage(settings: DocumentedSettings): Page {
  const content = new PageContent();
  content.heading({ level: 1, id: "error-codes", html: "Error codes" });
  const guide = relativeUrl(ERROR_CODES_PATH, GUIDES.errors);
  content.prose(
    `<p>The <code>code</code> of an error is one of these. <a href="${guide}">Errors</a> says how to handle them.</p>`,
  );
  for (const code of Object.keys(ERRORS) as ErrorCode[]) addCode(content, code, settings);
  content.heading({ level: 2, id: "malformed-http", html: "Malformed HTTP" });
  content.prose("<p>These responses precede authentication. The server closes the connection.</p>");
  for (const [code, { status, meaning }] of Object.entries(PROTOCOL_ERRORS)) {
    content.heading({ level: 3, id: code, html: `<code>${code}</code>`, after: statusBadge(status) });
    content.prose(`<p>${inlineHtml(meaning, links)}</p>`);
  }
  return {
    path: ERROR_CODES_PATH,
    title: "Error codes",
    description: "Every error code, what it means and what to do about it.",
    ...content.finish(),
  };
}

function addCode(content: PageContent, code: ErrorCode, settings: DocumentedSettings): void {
  const { status, meaning } = ERRORS[code];
  content.heading({ level: 2, id: code, html: `<code>${code}</code>`, after: statusBadge(status) });
  content.prose(
    `<p>${inlineHtml(meaning, links)} ${inlineHtml(ERROR_ACTIONS[code], links)}</p><p class="note">${operationsWith(code)}</p>`,
  );
  content.code(codeBlock(toJson(errorExample(code, settings)["value"], 2), "json"));
}

function statusBadge(status: number): string {
  return ` <span class="status" data-class="${Math.floor(status / 100)}">${status}</span>`;
}

function operationsWith(code: ErrorCode): string {
  const common: readonly ErrorCode[] = COMMON_ERRORS;
  if (common.includes(code)) return "On every operation.";
  const ids = Object.entries<PetstoreOperation>(OPERATIONS).filter(([, { errors }]) => errors.includes(code));
  if (ids.length === 0) return "On requests that no operation takes.";
  const anchors = ids.map(
    ([id]) => `<a href="${relativeUrl(ERROR_CODES_PATH, operationPath(id))}">${id}</a>`,
  );
  return `On ${anchors.join(", ")}.`;
}
