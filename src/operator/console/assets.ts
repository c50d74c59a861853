import { type Asset, assetOf, loadBundle } from "../../browser-bundle/bundle.ts";
import { ICON } from "../../pages/mark.ts";
import { loadOnce } from "../../runtime/load-once.ts";
import { etagOf } from "../../runtime/etag.ts";
import { conditional, type ContentRequest } from "../../api/content-encoding.ts";
import type { Environment } from "../../domain/environments.ts";
import { headerLinesOf } from "../../api/responses.ts";
import type { Request, Response } from "../../http1/index.ts";
import { matchPage } from "./pages.ts";

/**
 * Serves the pages of the console, their scripts and styles. They need no token, and contain no data but the
 * environment, or that it is a demo. They are bundled at the first request and kept in memory. The handler returns
 * undefined if the page does not exist; the caller adds security headers to its responses.
 */
export function createConsole(environment: Environment | "demo") {
  const load = loadOnce(async () => {
    const bundle = await loadBundle("console");
    const script = assetOf(`${ASSET_PATH}console-`, "js", bundle.script);
    const style = assetOf(`${ASSET_PATH}console-`, "css", bundle.style);
    const html = htmlOf(environment, script, style);
    return { html, etag: etagOf(html), assets: [script, style] };
  });

  return async (request: ContentRequest & Pick<Request, "path">): Promise<Response | undefined> => {
    const { path } = request;
    const { html, etag, assets } = await load();
    if (path.startsWith(ASSET_PATH))
      return assets.find((asset) => asset.path === path)?.content.respond(request, "");
    const status = matchPage(path) === undefined ? 404 : 200;
    const headerLines = headerLinesOf({
      "Content-Type": "text/html; charset=utf-8",
      "Cache-Control": "no-cache",
      ETag: etag,
    });
    const response = { status, headerLines, body: html } as const;
    return status === 200 ? conditional(request, etag, response) : response;
  };
}

const ASSET_PATH = "/assets/";

function htmlOf(environment: string, script: Asset, style: Asset): string {
  return `<!doctype html>
<html lang="en" data-environment="${environment}">
<head>
<meta charset="utf-8">
<title>Petstore</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${style.path}">
<script type="module" src="${script.path}"></script>
</head>
<body>
<div id="console"></div>
<noscript><p>The console needs JavaScript. The command line and the admin API do the same without it.</p></noscript>
</body>
</html>
`;
}
