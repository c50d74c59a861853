import type { Request, Response } from "../http1/index.ts";
import { errorResponse, jsonResponse, headerLinesOf, unavailableResponse } from "./responses.ts";

/** What stands beside the versioned interface: no key, no limits. */
export interface Pages {
  /** The OpenAPI document as JSON text. */
  readonly openApi: () => string;
  /** The interface's documentation, as Markdown. */
  readonly docs: () => string;
  /** What load balancers ask at /healthz: whether to send nothing more here. */
  readonly isLeaving: () => boolean;
}

export type Page = (request: Pick<Request, "method">) => Response;

/** Each is made when it is first asked for, so that no start waits for it. */
export function createPages(pages: Pages): ReadonlyMap<string, Page> {
  const html = once(() => docsPage(pages.docs()));
  const openApi = once(pages.openApi);
  return new Map([
    ["/", page(() => ({ status: 302, headerLines: headerLinesOf({ Location: "/docs" }), body: "" }))],
    ["/docs", page(() => ({ status: 200, headerLines: HTML, body: html() }))],
    ["/openapi.json", page(() => jsonResponse(200, "", openApi()))],
    [
      "/healthz",
      page(() =>
        pages.isLeaving()
          ? unavailableResponse("This server is leaving.")
          : jsonResponse(200, NOT_STORED, '{"status":"ok"}'),
      ),
    ],
  ]);
}

const HTML = headerLinesOf({ "Content-Type": "text/html; charset=utf-8" });
const NOT_STORED = headerLinesOf({ "Cache-Control": "no-store" });

function page(answer: () => Response): Page {
  return ({ method }) => {
    if (method === "GET" || method === "HEAD") return answer();
    const allow = headerLinesOf({ Allow: "GET, HEAD" });
    return errorResponse("method_not_allowed", `This path allows GET, HEAD, not ${method}.`, allow);
  };
}

function once<T extends string>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

function docsPage(markdown: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Petstore: the interface</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif }
  body { max-width: 48rem; margin: 3rem auto; padding: 0 1.25rem }
  h1, h2, h3 { line-height: 1.25; margin-top: 2.2em }
  h1 { margin-top: 0 }
  code, pre { font: 0.875em/1.5 ui-monospace, monospace }
  pre { padding: 0.9rem 1.1rem; overflow-x: auto; border-radius: 6px; background: color-mix(in srgb, currentColor 7%, transparent) }
  table { border-collapse: collapse; display: block; overflow-x: auto }
  th, td { padding: 0.35rem 0.9rem 0.35rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent) }
</style>
<body>
${Bun.markdown.html(markdown, { headings: { ids: true } })}
</body>
</html>
`;
}
