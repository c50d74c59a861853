import api from "../../docs/api.md" with { type: "text" };
import authentication from "../../docs/authentication.md" with { type: "text" };
import deprecation from "../../docs/deprecation.md" with { type: "text" };
import errors from "../../docs/errors.md" with { type: "text" };
import idempotency from "../../docs/idempotency.md" with { type: "text" };
import pagination from "../../docs/pagination.md" with { type: "text" };
import rateLimitFigure from "../../docs/rate-limits.svg" with { type: "text" };
import rateLimits from "../../docs/rate-limits.md" with { type: "text" };
import { type DocsSettings, replaceBlocks, settingBlocks } from "./docs-blocks.ts";

/** The pages of docs/ that make up /docs, in this order, with the id of the heading that each begins with. */
export const API_PAGES: Readonly<Record<string, string>> = {
  api: "petstore-api",
  authentication: "authentication",
  pagination: "pagination",
  "rate-limits": "rate-limits-and-bans",
  errors: "errors",
  idempotency: "idempotency",
  deprecation: "deprecation",
};

/** Imported, so that the executable contains them. */
const FILES: Readonly<Record<string, string>> = {
  "api.md": api,
  "authentication.md": authentication,
  "pagination.md": pagination,
  "rate-limits.md": rateLimits,
  "rate-limits.svg": rateLimitFigure,
  "errors.md": errors,
  "idempotency.md": idempotency,
  "deprecation.md": deprecation,
};

const LINK = /\]\(([\w-]+)\.md(?:#([\w-]+))?\)/g;
const IMAGE = /^!\[[^\]]*\]\(([\w-]+\.svg)\)$/gm;

/** Those pages as one Markdown text, with the settings of the server. Links lead to headings; figures are included. */
export function apiDocs(settings: DocsSettings): string {
  const pages = Object.keys(API_PAGES).map((name) => read(`${name}.md`));
  return replaceBlocks(pages.join("\n"), settingBlocks(settings))
    .replace(LINK, (_link, page: string, heading?: string) => `](#${heading ?? API_PAGES[page] ?? page})`)
    .replace(IMAGE, (_image, file: string) => read(file));
}

function read(file: string): string {
  const text = FILES[file];
  if (text === undefined) throw new Error(`docs/${file} is not among the files of /docs`);
  return text;
}
