import { type Bundle, BundledAssets, loadBundle } from "../browser-bundle/bundle.ts";
import { DOCS_PATH } from "../domain/constants.ts";
import { andThen, type Awaitable, loadOnce } from "../api/awaitable.ts";
import { EncodedContent } from "../api/content-encoding.ts";
import { headerLinesOf } from "../api/responses.ts";
import { acceptsHtml, type DocsPages } from "../petstore/static-routes.ts";
import type { Response } from "../http1/index.ts";
import type { DocsSettings } from "./layout.ts";
import { operationPath, REFERENCE_PATH, relativeUrl } from "./links.ts";
import type { RenderedSite } from "./render-site.ts";

export interface DocsSiteOptions {
  readonly settings: DocsSettings;
  readonly build?: () => Promise<Bundle>;
}

type PageRequest = Parameters<DocsPages["respond"]>[0];

interface Site {
  readonly contents: ReadonlyMap<string, EncodedContent>;
  readonly assets: BundledAssets;
  readonly notFound: RenderedSite["notFound"];
}

const ASSETS_PATH = `${DOCS_PATH}/assets/`;
/** The name of a file changes with its content. */
const FOREVER_SECONDS = 31_536_000;

/**
 * The documentation site. Everything is rendered on the first request of a page, so that a server starts as fast as
 * without it, and then stays in memory: about 1 MB.
 */
export function createDocsSite({ settings, build = () => loadBundle("docs") }: DocsSiteOptions): DocsPages {
  const site = loadOnce(async (): Promise<Site> => {
    const [bundle, { renderSite }] = await Promise.all([build(), import("./render-site.ts")]);
    const assets = new BundledAssets(`${ASSETS_PATH}docs-`, bundle);
    const { scriptPath, stylePath } = assets;
    const rendered = await renderSite({ settings, assetsPath: ASSETS_PATH, scriptPath, stylePath });
    return { contents: contentsOf(rendered), assets, notFound: rendered.notFound };
  });

  return {
    respond: (request, headerLines) => andThen(site(), (found) => respondFrom(found, request, headerLines)),
  };
}

function contentsOf({ pages, searchIndex }: RenderedSite): ReadonlyMap<string, EncodedContent> {
  const contents = [...pages].map(([path, { html, headerLines }]) => {
    return [
      path,
      new EncodedContent({ text: html, headerLines, ...(path === "/" && { vary: "Accept" }) }),
    ] as const;
  });
  const index = new EncodedContent({
    text: searchIndex.json,
    headerLines: headerLinesOf({ "Content-Type": "application/json" }),
    maxAgeSeconds: FOREVER_SECONDS,
  });
  return new Map([...contents, [searchIndex.path, index]]);
}

function respondFrom(site: Site, request: PageRequest, headerLines: string): Awaitable<Response | undefined> {
  const { path, headers } = request;
  const content = site.contents.get(path);
  if (content !== undefined) return content.respond(request, headerLines);
  const asset = site.assets.respond(path, headers, headerLines);
  if (asset !== undefined) return asset;
  const withoutSlash = path.replace(/\/$/, "");
  const page = site.contents.has(withoutSlash) ? withoutSlash : OTHER_PATHS.get(withoutSlash);
  if (page !== undefined) return redirect(relativeUrl(path, page), headerLines);
  if (path.startsWith(ASSETS_PATH) || path.length > MAX_PATH_LENGTH) return undefined;
  if (!acceptsHtml(headers.get("accept"))) return undefined;
  const { html, headerLines: pageHeaderLines } = site.notFound(path);
  return { status: 404, headerLines: pageHeaderLines + NO_STORE + headerLines, body: html };
}

/** The page for a path that does not exist grows with it: its links lead up from there. */
const MAX_PATH_LENGTH = 200;

const NO_STORE = headerLinesOf({ "Cache-Control": "no-store" });

/** Paths that people guess, with the page that they mean. */
const OTHER_PATHS: ReadonlyMap<string, string> = new Map([
  [`${DOCS_PATH}/quickstart`, DOCS_PATH],
  [REFERENCE_PATH, operationPath("listPets")],
]);

/** To a relative URL, because a proxy may serve the site under a prefix. */
function redirect(url: string, headerLines: string): Response {
  return { status: 302, headerLines: headerLinesOf({ Location: url }) + headerLines, body: "" };
}
