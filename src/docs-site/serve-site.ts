import { EncodedContent } from "../api/content-encoding.ts";
import { headerLinesOf, NO_STORE } from "../api/responses.ts";
import { assetOf, loadBundle } from "../browser-bundle/bundle.ts";
import { DOCS_PATH } from "../domain/paths.ts";
import type { DocumentedSettings } from "../public/documented-settings.ts";
import { acceptsHtml, type DocsPages } from "../public/static-routes.ts";
import { PAGE_HEADER_LINES } from "./layout.ts";
import { ASSETS_PATH, operationPath, REFERENCE_PATH, relativeUrl } from "./links.ts";
import { renderSite } from "./render-site.ts";

/** The pages, their scripts and styles. */
export async function sitePages(settings: DocumentedSettings): Promise<DocsPages["respond"]> {
  const bundle = await loadBundle("docs");
  const script = assetOf(`${ASSETS_PATH}docs-`, "js", bundle.script);
  const style = assetOf(`${ASSETS_PATH}docs-`, "css", bundle.style);
  const { pages, markdown, notFound, searchIndex } = await renderSite({
    settings,
    scriptPath: script.path,
    stylePath: style.path,
  });
  const contents = new Map([script, style, searchIndex].map(({ path, content }) => [path, content]));
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

/** Markdown is sent as text, which browsers show. */
const MARKDOWN_HEADER_LINES = headerLinesOf({ "Content-Type": "text/plain; charset=utf-8" });

/** The page for a path that does not exist grows with it: its links lead up from there. */
const MAX_PATH_LENGTH = 200;

/** Paths that people guess, with the page that they mean. */
const OTHER_PATHS: ReadonlyMap<string, string> = new Map([
  [`${DOCS_PATH}/quickstart`, DOCS_PATH],
  [REFERENCE_PATH, operationPath("listPets")],
]);
