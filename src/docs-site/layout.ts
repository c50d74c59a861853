import { headerLinesOf } from "../api/dispatch.ts";
import { ICON, MARK_PATH } from "../browser-bundle/mark.ts";
import { DOCS_PATH } from "../domain/constants.ts";
import { docsUrl, type DocumentedSettings } from "../petstore/documented-settings.ts";
import { OPERATIONS, type PetstoreOperation } from "../petstore/operations.ts";
import type { Example } from "./browser/programs.ts";
import { ERROR_CODES_PATH, operationPath, PRODUCT, relativeUrl, SCHEMAS_PATH } from "./links.ts";
import { ExampleTabs, languagesOf, textOf } from "./markdown.ts";
import type { TryItData } from "./page-data.ts";

export interface DocsSettings extends DocumentedSettings {
  /** 0 means any number. */
  readonly maxConnectionsPerAddress: number;
}

/** A page of the site without what all pages share. */
export interface DocsPage {
  /** From the root of the site: `/docs/rate-limits`. */
  readonly path: string;
  readonly title: string;
  /** One sentence for search engines and the page itself. */
  readonly description: string;
  /** What is in `<main>`. */
  readonly html: string;
  /** In the order of the page; the first is the page itself, without an id. */
  readonly sections: readonly Section[];
  readonly tryIt?: TryItData;
}

/** A part of a page that can be linked to. */
export interface Section {
  readonly id: string;
  readonly title: string;
  /** The level of its heading. */
  readonly level: number;
  /** For the search. */
  readonly text: string;
  /** The method, path and id of the operation that the page is about. */
  readonly operation?: string;
}

interface Heading {
  readonly level: number;
  readonly id: string;
  /** Without links. */
  readonly html: string;
  /** Further attributes or elements after the heading, such as a badge. */
  readonly after?: string;
}

/**
 * The content of a page in rows: prose on the left, the code that belongs to it on the right. On a narrow screen they
 * follow one another.
 */
export class PageContent {
  readonly #tabs = new ExampleTabs();
  readonly #rows: string[] = [];
  readonly #sections: { id: string; title: string; level: number; text: string }[] = [];
  #prose = "";
  #code = "";

  heading({ level, id, html, after = "" }: Heading): void {
    if (level <= 2 || this.#code !== "") this.#endRow();
    // A page is found by its title, a section by its heading.
    this.#sections.push({ id: level === 1 ? "" : id, title: textOf(html), level, text: textOf(after) });
    const content = level === 1 ? html : `<a class="heading-link" href="#${id}">${html}</a>`;
    this.#prose += `<h${level} id="${id}">${content}${after}</h${level}>`;
  }

  prose(html: string): void {
    if (this.#code !== "") this.#endRow();
    this.#prose += html;
    this.#addText(html);
  }

  /** Stands beside the prose before it. */
  code(html: string): void {
    this.#code += html;
  }

  /** Found by the names of their languages. */
  examples(examples: readonly Example[]): void {
    this.code(this.#tabs.render(examples));
    this.#addText(languagesOf(examples));
  }

  /** Takes both columns, under its heading. */
  wide(html: string): void {
    this.#endRow();
    this.#rows.push(`<div class="row wide">${html}</div>`);
    this.#addText(html);
  }

  finish(): { readonly html: string; readonly sections: readonly Section[] } {
    this.#endRow();
    return { html: this.#rows.join("\n"), sections: this.#sections };
  }

  #addText(html: string): void {
    const section = this.#sections.at(-1);
    if (section !== undefined) section.text = `${section.text} ${textOf(html)}`.trim();
  }

  #endRow(): void {
    if (this.#prose === "" && this.#code === "") return;
    const code = this.#code === "" ? "" : `<div class="aside">${this.#code}</div>`;
    this.#rows.push(`<div class="row"><div class="prose">${this.#prose}</div>${code}</div>`);
    this.#prose = "";
    this.#code = "";
  }
}

interface Entry {
  readonly path: string;
  readonly html: string;
}

/** All pages by the headings of the sidebar. */
type Navigation = Readonly<Record<string, readonly Entry[]>>;

function navigationOf(guides: readonly DocsPage[]): Navigation {
  return {
    Guides: guides.map(({ path, title }) => ({ path, html: Bun.escapeHTML(title) })),
    Pets: operationEntries("Pets"),
    Orders: operationEntries("Orders"),
    Reference: [
      { path: SCHEMAS_PATH, html: "Schemas" },
      { path: ERROR_CODES_PATH, html: "Error codes" },
    ],
  };
}

/** A page with more sections would hide the pages below it. */
const MAX_SECTIONS = 12;

/** All pages, and the sections of this one. */
function sidebar({ path, sections }: DocsPage, navigation: Navigation): string {
  const groups = Object.entries(navigation).map(([title, entries]) => {
    const items = entries.map((entry) => item(entry, path, sections));
    return `<h2>${title}</h2><ul>${items.join("")}</ul>`;
  });
  const documents = ["/openapi.json", "/openapi.yaml"].map(
    (each) => `<li><a href="${relativeUrl(path, each)}">${each.slice(1)}</a></li>`,
  );
  return `<nav id="navigation" class="sidebar" popover aria-label="Documentation">${groups.join("")}<h2>OpenAPI</h2><ul>${documents.join("")}</ul></nav>`;
}

/** The word of a method has a colour, too. */
export function methodBadge(method: PetstoreOperation["method"]): string {
  return `<span class="method" data-method="${method}">${method}</span>`;
}

const STATUS_TONES: Readonly<Record<number, string>> = { 2: "ok", 3: "muted", 4: "limited", 5: "error" };

/** So has a status. */
export function statusBadge(status: number): string {
  return `<span class="status tone-${STATUS_TONES[Math.floor(status / 100)]}">${status}</span>`;
}

function operationEntries(tag: PetstoreOperation["tag"]): Entry[] {
  return Object.entries<PetstoreOperation>(OPERATIONS)
    .filter(([, operation]) => operation.tag === tag)
    .map(([id, { method, path, summary, deprecated }]) => {
      const name = deprecated === undefined ? path : `<s>${path}</s>`;
      const note = deprecated === undefined ? "" : '<span class="visually-hidden">, deprecated</span>';
      const html = `${methodBadge(method)}<span class="path" title="${summary}">${name}</span>${note}`;
      return { path: operationPath(id), html };
    });
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

interface LayoutOptions {
  readonly settings: DocsSettings;
  readonly guides: readonly DocsPage[];
  /** What every page loads. */
  readonly scriptPath: string;
  readonly stylePath: string;
  readonly searchIndexPath: string;
}

export interface RenderedPage {
  readonly html: string;
  /** `Content-Type` and the policy of the page. */
  readonly headerLines: string;
}

/** Adds what all pages share. The landing page has no sidebar. */
export function layoutOf(options: LayoutOptions): (page: DocsPage) => RenderedPage {
  const navigation = navigationOf(options.guides);
  return (page) => {
    const content =
      page.path === "/"
        ? `<main id="main" class="landing" tabindex="-1">${page.html}</main>`
        : `<div class="site">${sidebar(page, navigation)}<main id="main" tabindex="-1">${page.html}${pager(page, navigation)}</main></div>`;
    const html = frame(page, options, content + tryItScript(page));
    return { html, headerLines: pageHeaderLines(html) };
  };
}

/** Before the first paint, so that a page does not flash in the other theme. */
const THEME_SCRIPT =
  'try{const t=localStorage.getItem("petstore-theme");if(t==="light"||t==="dark")document.documentElement.dataset.theme=t}catch{}';

function frame(
  { path, title, description }: DocsPage,
  { settings, scriptPath, stylePath, searchIndexPath }: LayoutOptions,
  content: string,
): string {
  const to = (target: string) => relativeUrl(path, target);
  return `<!doctype html>
<html lang="en" data-root="${to("/")}">
<head>
<meta charset="utf-8">
<title>${Bun.escapeHTML(title === PRODUCT ? title : `${title} · ${PRODUCT}`)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="${Bun.escapeHTML(description)}">
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${to(stylePath)}">
<script>${THEME_SCRIPT}</script>
<script type="module" src="${to(scriptPath)}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="header">
${path === "/" ? "" : '<button type="button" class="menu-button" popovertarget="navigation">Menu</button>'}
<a class="brand" href="${to("/")}"><svg viewBox="0 0 16 16" width="20" height="20" fill="currentColor" aria-hidden="true"><path d="${MARK_PATH}"/></svg><span class="brand-name">${PRODUCT} <span class="version">1.0</span></span></a>
<div class="search" data-index="${to(searchIndexPath)}"></div>
<div class="header-end">
${path === "/" ? `<a href="${to(DOCS_PATH)}">Documentation</a>` : ""}
${environmentMenu(settings)}
<button type="button" class="theme" hidden></button>
</div>
</header>
${content}
</body>
</html>
`;
}

function environmentMenu({ environment, baseUrl, otherUrl }: DocsSettings): string {
  const own = `<dt>This server: ${environment}</dt><dd><code>${Bun.escapeHTML(baseUrl)}</code></dd>`;
  const other = environment === "production" ? "staging" : "production";
  const elsewhere =
    otherUrl === undefined
      ? `<dt>${other}</dt><dd>Ask the operator for its address.</dd>`
      : `<dt>${other}</dt><dd><code>${Bun.escapeHTML(otherUrl)}</code><br><a href="${Bun.escapeHTML(docsUrl(otherUrl))}">Documentation of ${other}</a></dd>`;
  return `<button type="button" class="menu" popovertarget="environment" data-environment="${environment}">${environment}</button><dl id="environment" class="menu-items" popover>${own}${elsewhere}</dl>`;
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

/** `<` is escaped, so that no text of the data can end the element. */
function tryItScript({ tryIt }: DocsPage): string {
  if (tryIt === undefined) return "";
  const json = JSON.stringify(tryIt).replace(/</g, String.raw`\u003c`);
  return `<script type="application/json" id="try-it-data">${json}</script>`;
}

/** Scripts and styles of this origin, and the inline ones of this very page by their hashes. */
function pageHeaderLines(html: string): string {
  const policy = [
    "default-src 'none'",
    ["script-src 'self'", hashOf(THEME_SCRIPT)].join(" "),
    ["style-src 'self'", ...stylesOf(html).map(hashOf)].join(" "),
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return headerLinesOf({
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": policy.join("; "),
    "Referrer-Policy": "no-referrer",
  });
}

function stylesOf(html: string): string[] {
  return [...html.matchAll(/<style>([^<]*)<\/style>/g)].map(([, style = ""]) => style);
}

function hashOf(text: string): string {
  return `'sha256-${Bun.SHA256.hash(text, "base64")}'`;
}
