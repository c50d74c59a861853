import { createHash } from "node:crypto";
import { ICON } from "../../browser-bundle/icon.ts";
import { DOCS_PATH } from "../../domain/constants.ts";
import { baseUrlOf, docsUrl } from "../../petstore/documented-settings.ts";
import { headerLinesOf } from "../../api/responses.ts";
import type { Navigation } from "./navigation.ts";
import type { Page } from "./page.ts";
import type { DocsSettings } from "../setting-blocks.ts";
import { relativeUrl } from "../site-path.ts";

/** Paths of what every page loads. */
export interface SiteFiles {
  readonly scriptPath: string;
  readonly stylePath: string;
  readonly searchIndexPath: string;
}

interface LayoutOptions {
  readonly settings: DocsSettings;
  readonly files: SiteFiles;
  readonly navigation: Navigation;
}

/** Before the first paint, so that a page does not flash in the other theme. */
const THEME_SCRIPT =
  'try{const t=localStorage.getItem("petstore-theme");if(t==="light"||t==="dark")document.documentElement.dataset.theme=t}catch{}';

export function htmlOfPage(page: Page, options: LayoutOptions): string {
  const { path, html, sections } = page;
  const { navigation } = options;
  const sidebar = `<nav id="navigation" class="sidebar" popover aria-label="Documentation">${navigation.html(path, sections)}</nav>`;
  return frame(
    page,
    options,
    `<div class="site">${sidebar}<main id="main" tabindex="-1">${html}${pager(path, navigation)}</main></div>${tryItScript(page)}`,
  );
}

/** The landing page has no sidebar. */
export function htmlOfLandingPage(page: Page, options: LayoutOptions): string {
  return frame(page, options, `<main id="main" class="landing" tabindex="-1">${page.html}</main>`);
}

function frame(
  { path, title, description }: Page,
  { settings, files }: LayoutOptions,
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
<link rel="stylesheet" href="${to(files.stylePath)}">
<script>${THEME_SCRIPT}</script>
<script type="module" src="${to(files.scriptPath)}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="header">
${path === "/" ? "" : '<button type="button" class="menu-button" popovertarget="navigation">Menu</button>'}
<a class="brand" href="${to("/")}">${PRODUCT} <span class="version">1.0</span></a>
<div class="search" data-index="${to(files.searchIndexPath)}"></div>
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

export const PRODUCT = "Petstore API";

function environmentMenu({ environment, otherUrl, ...settings }: DocsSettings): string {
  const url = baseUrlOf({ environment, ...settings });
  const own = `<dt>This server: ${environment}</dt><dd><code>${Bun.escapeHTML(url)}</code></dd>`;
  const other = environment === "production" ? "staging" : "production";
  const elsewhere =
    otherUrl === undefined
      ? `<dt>${other}</dt><dd>The operator has not told its address.</dd>`
      : `<dt>${other}</dt><dd><code>${Bun.escapeHTML(otherUrl)}</code><br><a href="${Bun.escapeHTML(docsUrl(otherUrl))}">Documentation of ${other}</a></dd>`;
  return `<details class="menu"><summary data-environment="${environment}">${environment}</summary><dl class="menu-items">${own}${elsewhere}</dl></details>`;
}

function pager(path: string, navigation: Navigation): string {
  const { previous, next } = navigation.neighbours(path);
  const links = [
    previous &&
      `<a rel="prev" href="${relativeUrl(path, previous.path)}"><span class="note">Previous</span> ${previous.html}</a>`,
    next &&
      `<a rel="next" href="${relativeUrl(path, next.path)}"><span class="note">Next</span> ${next.html}</a>`,
  ].filter((link) => link !== undefined);
  return links.length === 0 ? "" : `<nav class="pager" aria-label="Pages">${links.join("")}</nav>`;
}

/** `<` is escaped, so that no text of the data can end the element. */
function tryItScript({ tryIt }: Page): string {
  if (tryIt === undefined) return "";
  const json = JSON.stringify(tryIt).replace(/</g, String.raw`\u003c`);
  return `<script type="application/json" id="try-it-data">${json}</script>`;
}

/** Scripts and styles of this origin, and the inline ones of this very page by their hashes. */
export function pageHeaderLines(html: string): string {
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
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
