import packageJson from "../../package.json" with { type: "json" };
import { headerLinesOf } from "../api/responses.ts";
import { classesOf } from "../pages/classes.ts";
import { ICON, MARK_PATH } from "../pages/mark.ts";
import { STORED_THEME } from "../pages/themes.ts";
import { API_VERSION } from "../domain/paths.ts";
import { otherEnvironment } from "../domain/environments.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { docsUrl } from "../public/site-urls.ts";
import { OPERATIONS, type PetstoreOperation } from "../petstore/operations.ts";
import { guidePath, markdownPath, operationPath, PRODUCT, relativeUrl, SCHEMAS_PATH } from "./links.ts";
import type { DocsPage, Section } from "./page-content.ts";
import { ERROR_CODES_PATH } from "./page-data.ts";
import { GUIDE_SOURCES, type GuideName } from "./sources.ts";

interface Entry {
  readonly path: string;
  readonly html: string;
}

/** All pages by the headings of the sidebar. */
type Navigation = Readonly<Record<string, readonly Entry[]>>;

/** What a reader needs on the first day, and what sends requests for them. The other guides are between them. */
const GROUPS: ReadonlyMap<string, string> = new Map([
  ...groupOf("Get started", ["quickstart", "api", "authentication"]),
  ...groupOf("Libraries", ["client-library", "generated-clients", "changelog"]),
]);

function groupOf(title: string, guides: readonly GuideName[]) {
  return guides.map((name) => [guidePath(name), title] as const);
}

function navigationOf(guides: readonly DocsPage[]): Navigation {
  const entriesOf = (group?: string) =>
    guides
      .filter(({ path }) => GROUPS.get(path) === group)
      .map(({ path, title }) => ({ path, html: Bun.escapeHTML(title) }));
  return {
    "Get started": entriesOf("Get started"),
    Concepts: entriesOf(),
    Libraries: entriesOf("Libraries"),
    ...operationEntries(),
    Reference: [
      { path: SCHEMAS_PATH, html: "Schemas" },
      { path: ERROR_CODES_PATH, html: "Error codes" },
    ],
  };
}

/** A page with more sections would hide the pages below it. */
const MAX_SECTIONS = 12;

/** All pages, and the sections of this one. */
function sidebar({ path, sections }: DocsPage, navigation: Navigation, environment: string): string {
  const groups = Object.entries(navigation).map(([title, entries]) => {
    const items = entries.map((entry) => item(entry, path, sections));
    return `<h2>${title}</h2><ul>${items.join("")}</ul>`;
  });
  const documents = ["/openapi.json", "/openapi.yaml"].map(
    (each) => `<li><a href="${relativeUrl(path, each)}">${each.slice(1)}</a></li>`,
  );
  return `<nav id="navigation" class="sidebar" popover aria-label="Documentation">${environment}${groups.join("")}<h2>OpenAPI</h2><ul>${documents.join("")}</ul></nav>`;
}

/** The word of a method has a colour, too. */
export function methodBadge(method: PetstoreOperation["method"]): string {
  return `<span class="method" data-method="${method}">${method}</span>`;
}

/** The operations by their tags, in the order of the table. */
function operationEntries(): Navigation {
  const byTag: Record<string, Entry[]> = {};
  for (const [id, operation] of Object.entries<PetstoreOperation>(OPERATIONS)) {
    const { tag, method, path, summary, deprecated } = operation;
    const name = deprecated === undefined ? summary : `<s>${summary}</s>`;
    const note = deprecated === undefined ? "" : '<span class="visually-hidden">, deprecated</span>';
    const html = `<span title="${method} ${path}">${name}</span>${note} ${methodBadge(method)}`;
    (byTag[tag] ??= []).push({ path: operationPath(id), html });
  }
  return byTag;
}

function item({ path, html }: Entry, current: string, sections: readonly Section[]): string {
  if (path !== current) return `<li><a href="${relativeUrl(current, path)}">${html}</a></li>`;
  const inner = sections.filter(({ level }) => level === 2);
  const list = inner
    .map(({ id, title }) => `<li><a href="#${id}">${Bun.escapeHTML(title)}</a></li>`)
    .join("");
  const nested = inner.length > 0 && inner.length <= MAX_SECTIONS ? `<ul class="sections">${list}</ul>` : "";
  return `<li><a href="${relativeUrl(current, path)}" aria-current="page">${html}</a>${nested}</li>`;
}

export interface LayoutOptions {
  readonly settings: DocumentedSettings;
  readonly guides: readonly DocsPage[];
  /** What every page loads. */
  readonly scriptPath: string;
  readonly stylePath: string;
  readonly searchIndexPath: string;
}

/** Adds what all pages share. */
export function layoutOf(options: LayoutOptions): (page: DocsPage) => string {
  const { settings, guides, scriptPath, stylePath, searchIndexPath } = options;
  const navigation = navigationOf(guides);
  const names = Object.keys(GUIDE_SOURCES) as GuideName[];
  const markdownPaths = new Map(names.map((name) => [guidePath(name), markdownPath(name)]));
  return (page) => {
    const { path, title, description, html, isProse, tryIt } = page;
    const to = (target: string) => relativeUrl(path, target);
    const alternate = markdownPaths.has(path)
      ? `<link rel="alternate" type="text/markdown" href="${to(markdownPaths.get(path) ?? "")}">\n`
      : "";
    const shape = classesOf({ numbered: path === guidePath("quickstart"), narrow: isProse });
    // `<` is escaped, so that no text of the data can end the element.
    const data = JSON.stringify(tryIt)?.replace(/</g, String.raw`\u003c`);
    return `<!doctype html>
<html lang="en" data-root="${to("/")}">
<head>
<meta charset="utf-8">
<title>${Bun.escapeHTML(title === PRODUCT ? title : `${title} · ${PRODUCT}`)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="${Bun.escapeHTML(description)}">
<link rel="icon" href="${ICON}">
${alternate}<link rel="stylesheet" href="${to(stylePath)}">
<script>${THEME_SCRIPT}</script>
<script type="module" src="${to(scriptPath)}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="header">
<button type="button" class="menu-button" popovertarget="navigation">Menu</button>
<a class="brand" href="${to("/")}"><svg viewBox="0 0 16 16" width="20" height="20" fill="currentColor" aria-hidden="true"><path d="${MARK_PATH}"/></svg><span class="brand-name">${PRODUCT} <span class="version">${API_VERSION}, server ${packageJson.version}</span></span></a>
<div class="search" data-index="${to(searchIndexPath)}"></div>
<div class="header-end">
${environmentMenu(settings)}
<button type="button" class="theme" hidden></button>
</div>
</header>
<div class="site">${sidebar(page, navigation, environmentButton(settings))}<main id="main" class="${shape}" tabindex="-1">${html}${pager(page, navigation)}</main></div>${data === undefined ? "" : `<script type="application/json" id="try-it-data">${data}</script>`}
</body>
</html>
`;
  };
}

/** The script runs before the first paint, so that a page does not flash in the other theme. */
const THEME_SCRIPT = `try{const t=localStorage.getItem("${STORED_THEME}");if(t==="light"||t==="dark")document.documentElement.dataset.theme=t}catch{}`;

/** On a phone it is in the sidebar, because the header has no room. */
function environmentButton({ environment }: Pick<DocumentedSettings, "environment">): string {
  return `<button type="button" class="menu" popovertarget="environment" data-environment="${environment}">${environment}</button>`;
}

function environmentMenu({ environment, baseUrl, otherEnvironmentUrl }: DocumentedSettings): string {
  const own = `<dt>This server: ${environment}</dt><dd><code>${Bun.escapeHTML(baseUrl)}</code></dd>`;
  const other = otherEnvironment(environment);
  const elsewhere =
    otherEnvironmentUrl === undefined
      ? `<dt>${other}</dt><dd>Ask the operator for its address.</dd>`
      : `<dt>${other}</dt><dd><code>${Bun.escapeHTML(otherEnvironmentUrl)}</code><br><a href="${Bun.escapeHTML(docsUrl(otherEnvironmentUrl))}">Documentation of ${other}</a></dd>`;
  return `${environmentButton({ environment })}<dl id="environment" class="menu-items" popover>${own}${elsewhere}</dl>`;
}

/** Links to the pages before and after this one. */
function pager({ path }: DocsPage, navigation: Navigation): string {
  const entries = Object.values(navigation).flat();
  const index = entries.findIndex((entry) => entry.path === path);
  if (index === -1) return "";
  const link = (entry: Entry | undefined, rel: "prev" | "next", title: string) =>
    entry === undefined
      ? ""
      : `<a rel="${rel}" href="${relativeUrl(path, entry.path)}"><span class="note">${title}</span> ${entry.html}</a>`;
  const links = link(entries[index - 1], "prev", "Previous") + link(entries[index + 1], "next", "Next");
  return `<nav class="pager" aria-label="Pages">${links}</nav>`;
}

/** Scripts and styles of this origin, and the one inline script by its hash. */
const POLICY = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${Bun.SHA256.hash(THEME_SCRIPT, "base64")}'`,
  "style-src 'self'",
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

export const PAGE_HEADER_LINES = headerLinesOf({
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": POLICY.join("; "),
  "Referrer-Policy": "no-referrer",
});
