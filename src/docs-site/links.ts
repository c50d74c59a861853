import { ERRORS } from "../petstore/errors.ts";
import { PROTOCOL_ERRORS } from "../api/protocol-errors.ts";
import { OPERATIONS } from "../petstore/operations.ts";
import { ERROR_CODES_PATH, GUIDES, isGuide, operationPath } from "./guides.ts";
import type { LinkTarget } from "./markdown/blocks.ts";
import { relativeUrl } from "./site-path.ts";

const FILE = /^(?:\.\/|docs\/)?([\w-]+)\.md(#[\w-]+)?$/;

/** Where the links of Markdown files lead on the page at `path`. */
export function linksOn(path: string): LinkTarget {
  return (href) => {
    if (/^(?:#|https?:)/.test(href)) return href;
    if (href.startsWith("/")) return relativeUrl(path, href);
    if (href === "src/client/README.md" || href === "../src/client/README.md") {
      return relativeUrl(path, GUIDES["client-library"]);
    }
    const [, name = "", fragment = ""] = FILE.exec(href) ?? [];
    return isGuide(name) ? relativeUrl(path, GUIDES[name] + fragment) : undefined;
  };
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

const LINK_OR_CODE = /<a [^>]*>.*?<\/a>|<code>([^<]+)<\/code>/gs;

/** Error codes and operations in code spans become links to their pages. */
export function withSubjectLinks(html: string, path: string): string {
  return html.replace(LINK_OR_CODE, (found, name?: string) => {
    const target = name === undefined ? undefined : SUBJECTS.get(name);
    return target === undefined || target === path
      ? found
      : `<a href="${relativeUrl(path, target)}">${found}</a>`;
  });
}
