import { DOCS_PATH } from "../domain/constants.ts";
import { OPERATIONS } from "../petstore/operations.ts";
import type { OperationId } from "../domain/usage-history.ts";
import { Turn } from "../event-loop.ts";
import { errorCodesPage } from "./pages/error-codes-page.ts";
import { guidePage } from "./pages/guide-page.ts";
import { GUIDES, type GuideName } from "./guides.ts";
import { landingPage } from "./pages/landing-page.ts";
import { htmlOfLandingPage, htmlOfPage, pageHeaderLines, type SiteFiles } from "./pages/layout.ts";
import { Navigation } from "./pages/navigation.ts";
import { operationPage } from "./pages/operation-page.ts";
import type { Page } from "./pages/page.ts";
import { schemasPage } from "./pages/schemas-page.ts";
import { searchIndex } from "./search-index.ts";
import { type DocsSettings, settingBlocks } from "./setting-blocks.ts";
import { relativeUrl } from "./site-path.ts";

/** Every page without its frame. */
export interface SiteContent {
  readonly landing: Page;
  readonly pages: readonly Page[];
  readonly navigation: Navigation;
  /** JSON. */
  readonly searchIndex: string;
}

/** In turns, so that requests of clients are answered meanwhile. */
export async function siteContent(settings: DocsSettings): Promise<SiteContent> {
  const blocks = settingBlocks(settings);
  const guides = await inTurns(Object.keys(GUIDES) as GuideName[], (name) =>
    guidePage(name, blocks, settings),
  );
  const operations = await inTurns(Object.keys(OPERATIONS) as OperationId[], (id) =>
    operationPage(id, settings),
  );
  const others = await inTurns([schemasPage, () => errorCodesPage(settings)], (render) => render());
  const pages = [...guides, ...operations, ...others];
  return {
    landing: landingPage(settings),
    pages,
    navigation: new Navigation(guides),
    searchIndex: searchIndex(pages),
  };
}

async function inTurns<T>(items: readonly T[], render: (item: T) => Page): Promise<Page[]> {
  const pages: Page[] = [];
  const turn = new Turn();
  for (const item of items) {
    pages.push(render(item));
    if (turn.isOver) await turn.next();
  }
  return pages;
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
