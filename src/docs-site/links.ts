import { PROTOCOL_ERRORS } from "../api/protocol-errors.ts";
import { DOCS_PATH } from "../domain/paths.ts";
import { ERRORS } from "../petstore/errors.ts";
import { OPERATIONS } from "../petstore/operations.ts";
import { ERROR_CODES_PATH } from "./page-data.ts";
import { GUIDE_SOURCES, type GuideName } from "./sources.ts";

export const PRODUCT = "Petstore API";

/** The quickstart is the first page. */
export function guidePath(name: GuideName): string {
  return name === "quickstart" ? DOCS_PATH : `${DOCS_PATH}/${name}`;
}

function isGuide(name: string): name is GuideName {
  return Object.hasOwn(GUIDE_SOURCES, name);
}

/** The beginning of the path of each file that pages load. */
export const ASSETS_PATH = `${DOCS_PATH}/assets/`;
export const REFERENCE_PATH = `${DOCS_PATH}/reference`;
export const SCHEMAS_PATH = `${REFERENCE_PATH}/schemas`;

export function operationPath(operationId: string): string {
  return `${REFERENCE_PATH}/${operationId}`;
}

/**
 * The URL of a page relative to another, so that the site also works behind a proxy that serves it under a prefix.
 * Both paths begin with `/`; `to` may have a fragment.
 */
export function relativeUrl(from: string, to: string): string {
  const directories = from.split("/").slice(1, -1);
  const parts = to.split("/").slice(1);
  let shared = 0;
  while (shared < directories.length && shared < parts.length - 1 && directories[shared] === parts[shared])
    shared++;
  const up = "../".repeat(directories.length - shared);
  return up + parts.slice(shared).join("/") || "./";
}

const FILE = /^(?:\.\/|docs\/)?([\w-]+)\.md(#[\w-]+)?$/;

/** Where a link of a Markdown file leads on the page at `path`. Undefined if the site has no such page. */
function linkTarget(href: string, path: string): string | undefined {
  if (/^(?:#|https?:)/.test(href)) return href;
  if (href.startsWith("/")) return relativeUrl(path, href);
  const [, name = "", fragment = ""] = FILE.exec(href) ?? [];
  return isGuide(name) ? relativeUrl(path, guidePath(name) + fragment) : undefined;
}

/** The path of a guide as Markdown. */
export function markdownPath(name: GuideName): string {
  return `${DOCS_PATH}/${name}.md`;
}

/** Markdown whose links to other files lead to those that are served. A link to any other file becomes text. */
export function withGuideLinks(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\(([^)\s]+)\)/g, (link, text: string, href: string) => {
    const [, name = "", fragment = ""] = FILE.exec(href) ?? [];
    if (/^(?:#|https?:|\/)/.test(href)) return link;
    return isGuide(name) ? `[${text}](${name}.md${fragment})` : text;
  });
}

/** What code spans name, with the page about it. */
const SUBJECTS: ReadonlyMap<string, string> = new Map([
  ...Object.keys({ ...ERRORS, ...PROTOCOL_ERRORS }).map(
    (code) => [code, `${ERROR_CODES_PATH}#${code}`] as const,
  ),
  ...Object.entries(OPERATIONS).flatMap(([id, { method, path }]) => [
    [id, operationPath(id)] as const,
    [`${method} ${path}`, operationPath(id)] as const,
  ]),
]);

const LINK_OR_CODE = /<a href="([^"]*)">(.*?)<\/a>|<code>([^<]+)<\/code>/gs;

/**
 * HTML of a Markdown file with the links of the page at `path`: error codes and operations in code spans lead to their
 * pages, and a link to a page that the site does not have becomes text.
 */
export function withLinks(html: string, path: string): string {
  return html.replace(LINK_OR_CODE, (found, href?: string, text?: string, name = "") => {
    const subject = SUBJECTS.get(name);
    if (href === undefined && (subject === undefined || subject === path)) return found;
    const target = href === undefined ? relativeUrl(path, subject ?? "") : linkTarget(href, path);
    return target === undefined ? (text ?? "") : `<a href="${target}">${text ?? found}</a>`;
  });
}
