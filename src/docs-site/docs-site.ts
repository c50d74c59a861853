import { assetOf, loadBundle } from "../browser-bundle/bundle.ts";
import { CLIENT_PACKAGE_PATH, DOCS_PATH } from "../domain/constants.ts";
import { andThen, type Awaitable, loadOnce } from "../event-loop.ts";
import { EncodedContent } from "../api/content-encoding.ts";
import { headerLinesOf } from "../api/dispatch.ts";
import { acceptsHtml, type DocsPages } from "../petstore/static-routes.ts";
import type { Response } from "../http1/index.ts";
import type { DocsSettings } from "./layout.ts";
import { ASSETS_PATH, operationPath, REFERENCE_PATH, relativeUrl } from "./links.ts";
import type { RenderedSite } from "./render-site.ts";

type PageRequest = Parameters<DocsPages["respond"]>[0];

interface Site extends Pick<RenderedSite, "headerLines" | "notFound"> {
  readonly contents: ReadonlyMap<string, EncodedContent>;
}

/**
 * The documentation site. Everything is rendered on the first request of a page, so that a server starts as fast as
 * without it, and then stays in memory: about 1 MB.
 */
export function createDocsSite(settings: DocsSettings): DocsPages {
  const site = loadOnce(async (): Promise<Site> => {
    const [bundle, { renderSite }] = await Promise.all([loadBundle("docs"), import("./render-site.ts")]);
    const script = assetOf(`${ASSETS_PATH}docs-`, "js", bundle.script);
    const style = assetOf(`${ASSETS_PATH}docs-`, "css", bundle.style);
    const site = await renderSite({ settings, scriptPath: script.path, stylePath: style.path });
    const { headerLines, notFound } = site;
    const contents = new Map([script, style, site.searchIndex].map(({ path, content }) => [path, content]));
    for (const [path, text] of site.pages)
      contents.set(path, new EncodedContent({ text, headerLines, ...(path === "/" && { vary: "Accept" }) }));
    return { contents, headerLines, notFound };
  });

  const client = loadOnce(async () => (await import("./client-package.ts")).clientPackage(settings));
  return {
    respond: (request, headerLines) =>
      request.path === CLIENT_PACKAGE_PATH
        ? andThen(client(), (respond) => respond(request, headerLines))
        : andThen(site(), (found) => respondFrom(found, request, headerLines)),
  };
}

function respondFrom(site: Site, request: PageRequest, headerLines: string): Awaitable<Response | undefined> {
  const { path, headers } = request;
  const content = site.contents.get(path);
  if (content !== undefined) return content.respond(request, headerLines);
  const withoutSlash = path.replace(/\/$/, "");
  const page = site.contents.has(withoutSlash) ? withoutSlash : OTHER_PATHS.get(withoutSlash);
  if (page !== undefined) return redirect(relativeUrl(path, page), headerLines);
  if (path.startsWith(ASSETS_PATH) || path.length > MAX_PATH_LENGTH) return undefined;
  if (!acceptsHtml(headers.get("accept"))) return undefined;
  const body = site.notFound(path);
  return { status: 404, headerLines: site.headerLines + NO_STORE + headerLines, body };
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
