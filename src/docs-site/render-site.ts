import { DOCS_PATH } from "../contract/constants.ts";
import { OPERATIONS, type OperationId } from "../contract/operations.ts";
import { errorCodesPage } from "./error-codes-page.ts";
import { guidePage } from "./guide-page.ts";
import { GUIDES, type GuideName } from "./guides.ts";
import { landingPage } from "./landing-page.ts";
import { htmlOfLandingPage, htmlOfPage, pageHeaderLines, type SiteFiles } from "./layout.ts";
import { Navigation } from "./navigation.ts";
import { operationPage } from "./operation-page.ts";
import type { Page } from "./page.ts";
import { schemasPage } from "./schemas-page.ts";
import { searchIndex } from "./search-index.ts";
import type { DocsSettings } from "./setting-blocks.ts";
import { relativeUrl } from "./site-path.ts";

/** Every page without its frame. */
export interface SiteContent {
  readonly landing: Page;
  readonly pages: readonly Page[];
  readonly navigation: Navigation;
  /** JSON. */
  readonly searchIndex: string;
}

export function siteContent(settings: DocsSettings): SiteContent {
  const guides = (Object.keys(GUIDES) as GuideName[]).map((name) => guidePage(name, settings));
  const operations = (Object.keys(OPERATIONS) as OperationId[]).map((id) => operationPage(id, settings));
  const pages = [...guides, ...operations, schemasPage(), errorCodesPage(settings)];
  return {
    landing: landingPage(settings),
    pages,
    navigation: new Navigation(guides),
    searchIndex: searchIndex(pages),
  };
}

export interface RenderedPage {
  readonly html: string;
  /** `Content-Type` and the policy of the page. */
  readonly headerLines: string;
}

interface RenderOptions {
  readonly settings: DocsSettings;
  readonly files: SiteFiles;
}

/** The pages by their paths. */
export function renderPages(
  { landing, pages, navigation }: SiteContent,
  options: RenderOptions,
): ReadonlyMap<string, RenderedPage> {
  return new Map([
    [landing.path, rendered(htmlOfLandingPage(landing, { ...options, navigation }))],
    ...pages.map((page) => [page.path, rendered(htmlOfPage(page, { ...options, navigation }))] as const),
  ]);
}

function rendered(html: string): RenderedPage {
  return { html, headerLines: pageHeaderLines(html) };
}

/** The page for a path below /docs that does not exist. Its links are relative to that path. */
export function renderNotFound(
  path: string,
  { navigation }: SiteContent,
  options: RenderOptions,
): RenderedPage {
  const html = `<div class="prose"><h1>There is no such page</h1><p>Search for it, or start with the <a href="${relativeUrl(path, DOCS_PATH)}">quickstart</a>.</p></div>`;
  const page = { path, title: "Not found", description: "There is no such page.", html, sections: [] };
  return rendered(htmlOfPage(page, { ...options, navigation }));
}
