import { type Asset, assetOf } from "../browser-bundle/bundle.ts";
import { DOCS_PATH } from "../domain/constants.ts";
import type { OperationId } from "../domain/usage-history.ts";
import { TimeSlice } from "../event-loop.ts";
import { OPERATIONS } from "../petstore/operations.ts";
import { exampleContext, examplesOf } from "./examples.ts";
import { guidePage, settingBlocks } from "./guide-pages.ts";
import { type DocsSettings, layoutOf, type DocsPage, type RenderedPage } from "./layout.ts";
import { ASSETS_PATH, type GuideName, GUIDES, operationPath, PRODUCT, relativeUrl } from "./links.ts";
import { ExampleTabs } from "./markdown.ts";
import type { SearchEntry } from "./page-data.ts";
import { errorCodesPage, operationPage, schemasPage } from "./reference-pages.ts";

export interface RenderedSite {
  /** By their paths. */
  readonly pages: ReadonlyMap<string, RenderedPage>;
  readonly searchEntries: readonly SearchEntry[];
  readonly searchIndex: Asset;
  /** The page for a path that does not exist. Its links are relative to that path. */
  readonly notFound: (path: string) => RenderedPage;
}

interface SiteOptions {
  readonly settings: DocsSettings;
  readonly scriptPath: string;
  readonly stylePath: string;
}

export async function renderSite(options: SiteOptions): Promise<RenderedSite> {
  const { settings } = options;
  const { guides, reference } = await contentOf(settings);
  const searchEntries = [...guides, ...reference].flatMap(searchEntriesOf);
  const searchIndex = assetOf(`${ASSETS_PATH}search-`, "json", JSON.stringify(searchEntries));
  const render = layoutOf({ ...options, guides, searchIndexPath: searchIndex.path });
  const pages = [landingPage(settings), ...guides, ...reference];
  return {
    pages: new Map(pages.map((page) => [page.path, render(page)])),
    searchEntries,
    searchIndex,
    notFound: (path) => render(notFoundPage(path)),
  };
}

interface Content {
  readonly guides: readonly DocsPage[];
  readonly reference: readonly DocsPage[];
}

/** In time slices, so that requests of clients are answered meanwhile. */
async function contentOf(settings: DocsSettings): Promise<Content> {
  const blocks = settingBlocks(settings);
  const names = Object.keys(GUIDES) as GuideName[];
  const guides = await inTimeSlices(names.map((name) => () => guidePage(name, blocks, settings)));
  const ids = Object.keys(OPERATIONS) as OperationId[];
  const operations = ids.map((id) => () => operationPage(id, settings));
  const reference = await inTimeSlices([...operations, schemasPage, () => errorCodesPage(settings)]);
  return { guides, reference };
}

async function inTimeSlices(renderers: readonly (() => DocsPage)[]): Promise<DocsPage[]> {
  const pages: DocsPage[] = [];
  const slice = new TimeSlice();
  for (const render of renderers) {
    pages.push(render());
    if (slice.isOver) await slice.next();
  }
  return pages;
}

/** Characters of a section that are searched. The index has 13 kB, compressed. */
const MAX_TEXT = 2000;

/** One entry for the page and each of its sections. */
function searchEntriesOf({ path, title, sections }: DocsPage): SearchEntry[] {
  return sections.map(({ id, title: heading, text, operation }) => {
    const url = path.slice(1) + (id === "" ? "" : `#${id}`);
    const entry = [title, id === "" ? "" : heading, url, text.slice(0, MAX_TEXT)] as const;
    return operation === undefined ? entry : [...entry, operation];
  });
}

const DESCRIPTION =
  "A pet store over HTTP: with an API key you list pets, add pets, and place, complete or cancel orders.";

/** What browsers see at `/`. */
function landingPage(settings: DocsSettings): DocsPage {
  const path = "/";
  const to = (target: string) => relativeUrl(path, target);
  const examples = new ExampleTabs().render(examplesOf("createPet", exampleContext(settings)));
  const html = `<div class="row"><div class="prose">
<h1>${PRODUCT}</h1>
<p class="lead">${DESCRIPTION} Rate limits are exact, integers keep all 64 bits, and a write is on disk before its response is sent.</p>
<p class="actions"><a class="button primary" href="${to(DOCS_PATH)}">Make your first call</a> <a class="button" href="${to(operationPath("listPets"))}">Reference</a></p>
<dl class="facts">
<dt>Base URL</dt><dd><code>${Bun.escapeHTML(settings.baseUrl)}</code></dd>
<dt>Environment</dt><dd>${settings.environment}</dd>
<dt>Client library</dt><dd><a href="${to(GUIDES["client-library"])}"><code>@petstore/client</code></a></dd>
<dt>OpenAPI 3.1</dt><dd><a href="${to("/openapi.json")}">JSON</a>, <a href="${to("/openapi.yaml")}">YAML</a></dd>
</dl>
</div><div class="aside">${examples}</div></div>`;
  return { path, title: PRODUCT, description: DESCRIPTION, html, sections: [] };
}

function notFoundPage(path: string): DocsPage {
  const html = `<div class="prose"><h1>There is no such page</h1><p>Search for it, or start with the <a href="${relativeUrl(path, DOCS_PATH)}">quickstart</a>.</p></div>`;
  return { path, title: "Not found", description: "There is no such page.", html, sections: [] };
}
