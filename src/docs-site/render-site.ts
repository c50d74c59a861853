import { type Asset, assetOf } from "../browser-bundle/bundle.ts";
import type { OperationId } from "../domain/usage-history.ts";
import { TimeSlice } from "../event-loop.ts";
import { OPERATIONS } from "../petstore/operations.ts";
import { exampleContext, examplesOf } from "./examples.ts";
import { guidePage, settingBlocks } from "./guide-pages.ts";
import { type DocsSettings, layoutOf, PAGE_HEADER_LINES } from "./layout.ts";
import { ASSETS_PATH, type GuideName, GUIDES, operationPath, PRODUCT } from "./links.ts";
import { type DocsPage, PageContent } from "./page-content.ts";
import type { SearchEntry } from "./page-data.ts";
import { errorCodesPage, operationPage, schemasPage } from "./reference-pages.ts";

export interface RenderedSite {
  /** HTML by path. */
  readonly pages: ReadonlyMap<string, string>;
  /** Of every page. */
  readonly headerLines: string;
  readonly searchEntries: readonly SearchEntry[];
  readonly searchIndex: Asset;
  /** The page for a path that does not exist. Its links are relative to that path. */
  readonly notFound: (path: string) => string;
}

interface SiteOptions {
  readonly settings: DocsSettings;
  readonly scriptPath: string;
  readonly stylePath: string;
}

export async function renderSite(options: SiteOptions): Promise<RenderedSite> {
  const { settings } = options;
  const blocks = settingBlocks(settings);
  const names = Object.keys(GUIDES) as GuideName[];
  const guides = await inTimeSlices(names.map((name) => () => guidePage(name, blocks, settings)));
  const ids = Object.keys(OPERATIONS) as OperationId[];
  const operations = ids.map((id) => () => operationPage(id, settings));
  const reference = await inTimeSlices([...operations, schemasPage, () => errorCodesPage(settings)]);

  const searchEntries = [...guides, ...reference].flatMap(searchEntriesOf);
  const searchIndex = assetOf(`${ASSETS_PATH}search-`, "json", JSON.stringify(searchEntries));
  const render = layoutOf({ ...options, guides, searchIndexPath: searchIndex.path });
  const pages = [landingPage(settings), ...guides, ...reference];
  return {
    pages: new Map(pages.map((page) => [page.path, render(page)])),
    headerLines: PAGE_HEADER_LINES,
    searchEntries,
    searchIndex,
    notFound: (path) => render(notFoundPage(path)),
  };
}

/** Requests of clients are answered meanwhile. */
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
function searchEntriesOf({ path, title, sections, operation }: DocsPage): SearchEntry[] {
  return sections.map(({ id, title: heading, text }) => {
    const url = path.slice(1) + (id === "" ? "" : `#${id}`);
    const entry = [title, id === "" ? "" : heading, url, text.slice(0, MAX_TEXT)] as const;
    return operation === undefined || id !== "" ? entry : [...entry, operation];
  });
}

/** What browsers see at `/`. */
function landingPage(settings: DocsSettings): DocsPage {
  const content = new PageContent("/");
  content.markdown(`# ${PRODUCT}

A pet store over HTTP: with an API key you list pets, add pets, and place, complete or cancel orders. Rate limits are exact, integers keep all 64 bits, and a write is on disk before its response is sent.

[Make your first call](quickstart.md), or look into the [reference](${operationPath("listPets")}).

- Base URL: \`${settings.baseUrl}\`
- Environment: ${settings.environment}
- Client library: [\`@petstore/client\`](client-library.md)
- OpenAPI 3.1: [JSON](/openapi.json), [YAML](/openapi.yaml)`);
  content.examples(examplesOf("createPet", exampleContext(settings)));
  return content.finish();
}

function notFoundPage(path: string): DocsPage {
  const content = new PageContent(path);
  content.markdown(
    "# There is no such page\n\nSearch for it, or start with the [quickstart](quickstart.md).",
  );
  return content.finish();
}
