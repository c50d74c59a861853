import { type Asset, assetOf } from "../browser-bundle/bundle.ts";
import type { OperationId } from "../domain/operation-ids.ts";
import { yieldToEventLoop } from "../runtime/scheduler.ts";
import { OPERATIONS } from "../petstore/operations.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { exampleContext, examplesOf } from "./examples.ts";
import { guidePage, settingBlocks } from "./guide-pages.ts";
import { type LayoutOptions, layoutOf } from "./layout.ts";
import { ASSETS_PATH, operationPath, PRODUCT } from "./links.ts";
import { markdownFiles } from "./markdown-files.ts";
import { type DocsPage, PageContent } from "./page-content.ts";
import { ERROR_CODES_PATH, type SearchEntry } from "./page-data.ts";
import { errorCodesPage, operationPage, schemasPage } from "./reference-pages.ts";
import { GUIDE_SOURCES, type GuideName } from "./sources.ts";

interface RenderedSite {
  /** HTML by path. */
  readonly pages: ReadonlyMap<string, string>;
  readonly searchEntries: readonly SearchEntry[];
  readonly searchIndex: Asset;
  /** Markdown by path. */
  readonly markdown: ReadonlyMap<string, string>;
  /** The page for a path that does not exist. Its links are relative to that path. */
  readonly notFound: (path: string) => string;
}

type SiteOptions = Omit<LayoutOptions, "guides" | "searchIndexPath">;

export async function renderSite(options: SiteOptions): Promise<RenderedSite> {
  const { settings } = options;
  const blocks = settingBlocks(settings);
  const names = Object.keys(GUIDE_SOURCES) as GuideName[];
  const guides = await renderAll(names.map((name) => () => guidePage(name, blocks, settings)));
  const ids = Object.keys(OPERATIONS) as OperationId[];
  const operations = ids.map((id) => () => operationPage(id, settings));
  const reference = await renderAll([...operations, schemasPage, () => errorCodesPage(settings)]);

  // The changelog, which is the last guide, mentions everything: of equal results it comes last.
  const searched = [...guides.slice(0, -1), ...reference, ...guides.slice(-1)];
  const searchEntries = searched.flatMap(searchEntriesOf);
  const searchIndex = assetOf(`${ASSETS_PATH}search-`, "json", JSON.stringify(searchEntries));
  const render = layoutOf({ ...options, guides, searchIndexPath: searchIndex.path });
  const pages = [landingPage(settings), ...guides, ...reference];
  return {
    pages: new Map(pages.map((page) => [page.path, render(page)])),
    markdown: markdownFiles(guides, blocks, settings),
    searchEntries,
    searchIndex,
    notFound: (path) => render(notFoundPage(path)),
  };
}

/** Renders the pages one by one. Requests of clients run in between. */
async function renderAll(renderers: readonly (() => DocsPage)[]): Promise<DocsPage[]> {
  const pages: DocsPage[] = [];
  for (const render of renderers) {
    pages.push(render());
    await yieldToEventLoop();
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
function landingPage(settings: DocumentedSettings): DocsPage {
  const content = new PageContent("/");
  content.markdown(`# ${PRODUCT}

A pet store over HTTP: with an API key you list pets, add pets, and place, complete or cancel orders. Rate limits are exact, integers keep all 64 bits, and a write is on disk before its response is sent.

[Make your first call](quickstart.md), or read the [reference](${operationPath("listPets")}).

- Base URL: \`${settings.baseUrl}\`
- Environment: ${settings.environment}
- Client library: [\`@petstore/client\`](client-library.md)
- OpenAPI 3.1: [JSON](/openapi.json), [YAML](/openapi.yaml)`);
  content.examples(examplesOf("createPet", exampleContext(settings)));
  return content.finish();
}

function notFoundPage(path: string): DocsPage {
  const content = new PageContent(path);
  content.markdown(`# There is no such page

Search for it, or start here:

- [Quickstart](quickstart.md): your first request
- [API overview](api.md): operations, values and limits
- [Error codes](${ERROR_CODES_PATH}): what each means, and what to do`);
  return content.finish();
}
