import { EncodedContent } from "../api/content-encoding.ts";
import { headerLinesOf, NO_STORE } from "../api/responses.ts";
import { type Asset, assetOf, loadBundle } from "../browser-bundle/bundle.ts";
import { DOCS_PATH, POSTMAN_PATH } from "../domain/paths.ts";
import type { OperationId } from "../domain/operation-ids.ts";
import { yieldToEventLoop } from "../runtime/scheduler.ts";
import { OPERATIONS } from "../petstore/operations.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { acceptsHtml, type DocsPages } from "../public/static-routes.ts";
import { exampleContext, examplesOf } from "./examples.ts";
import { changelogFeed } from "./feed.ts";
import { guidePage, settingBlocks } from "./guide-pages.ts";
import { type LayoutOptions, layoutOf, PAGE_HEADER_LINES } from "./layout.ts";
import { ASSETS_PATH, operationPath, PRODUCT, REFERENCE_PATH, relativeUrl } from "./links.ts";
import { markdownFiles } from "./markdown-files.ts";
import { type DocsPage, PageContent } from "./page-content.ts";
import { ERROR_CODES_PATH, type SearchEntry } from "./page-data.ts";
import { errorCodesPage, operationPage, schemasPage } from "./reference-pages.ts";
import { FEED_PATH, GUIDE_SOURCES, type GuideName } from "./sources.ts";

interface RenderedSite {
  /** HTML by path. */
  readonly pages: ReadonlyMap<string, string>;
  readonly searchEntries: readonly SearchEntry[];
  readonly searchIndex: Asset;
  /** Markdown by path. */
  readonly markdown: ReadonlyMap<string, string>;
  /** The changelog as Atom. */
  readonly feed: string;
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
    feed: changelogFeed(settings),
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
- OpenAPI 3.1: [JSON](/openapi.json), [YAML](/openapi.yaml)
- Postman: [collection](${POSTMAN_PATH})`);
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

/** The pages, their scripts and styles. */
export async function sitePages(settings: DocumentedSettings): Promise<DocsPages["respond"]> {
  const bundle = await loadBundle("docs");
  const script = assetOf(`${ASSETS_PATH}docs-`, "js", bundle.script);
  const style = assetOf(`${ASSETS_PATH}docs-`, "css", bundle.style);
  const { pages, markdown, notFound, searchIndex, feed } = await renderSite({
    settings,
    scriptPath: script.path,
    stylePath: style.path,
  });
  const contents = new Map([script, style, searchIndex].map(({ path, content }) => [path, content]));
  contents.set(FEED_PATH, new EncodedContent({ text: feed, headerLines: FEED_HEADER_LINES }));
  for (const [path, text] of markdown)
    contents.set(path, new EncodedContent({ text, headerLines: MARKDOWN_HEADER_LINES }));
  for (const [path, text] of pages) {
    const vary = path === "/" && { vary: "Accept" };
    contents.set(path, new EncodedContent({ text, headerLines: PAGE_HEADER_LINES, ...vary }));
  }

  return (request, headerLines) => {
    const { path, headers } = request;
    const content = contents.get(path);
    if (content !== undefined) return content.respond(request, headerLines);
    const withoutSlash = path.replace(/\/$/, "");
    const page = contents.has(withoutSlash) ? withoutSlash : OTHER_PATHS.get(withoutSlash);
    if (page !== undefined) {
      // A relative URL, because a proxy may serve the site under a prefix.
      const location = headerLinesOf({ Location: relativeUrl(path, page) });
      return { status: 302, headerLines: location + headerLines, body: "" };
    }
    if (path.startsWith(ASSETS_PATH) || path.length > MAX_PATH_LENGTH) return undefined;
    if (!acceptsHtml(headers.get("accept"))) return undefined;
    return { status: 404, headerLines: PAGE_HEADER_LINES + NO_STORE + headerLines, body: notFound(path) };
  };
}

const FEED_HEADER_LINES = headerLinesOf({ "Content-Type": "application/atom+xml; charset=utf-8" });

/** Markdown is sent as text, which browsers show. */
const MARKDOWN_HEADER_LINES = headerLinesOf({ "Content-Type": "text/plain; charset=utf-8" });

/** The page for a path that does not exist grows with it: its links lead up from there. */
const MAX_PATH_LENGTH = 200;

/** Paths that people guess, with the page that they mean. */
const OTHER_PATHS: ReadonlyMap<string, string> = new Map([
  [`${DOCS_PATH}/quickstart`, DOCS_PATH],
  [REFERENCE_PATH, operationPath("listPets")],
]);
