import { readFileSync } from "node:fs";
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
  "client-library": "client-library",
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
  return readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8");
}
