import { type Bundle, BundledAssets, ICON, loadBundle } from "../../browser-bundle/bundle.ts";
import { loadOnce } from "../../api/awaitable.ts";
import { etagOf } from "../../api/etag.ts";
import { matchesEtag } from "../../api/etag.ts";
import { emptyResponse, headerLinesOf } from "../../api/responses.ts";
import type { HeaderFields, Response } from "../../http1/index.ts";
import { matchPage } from "./pages.ts";

export interface ConsoleOptions {
  readonly build?: () => Promise<Bundle>;
}

interface PageRequest {
  readonly path: string;
  readonly headers: Pick<HeaderFields, "get">;
}

/** The pages of the console and what they load. Undefined if there is no such file. */
export interface ConsolePages {
  respond(request: PageRequest): Promise<Response | undefined>;
}

interface Assets {
  readonly html: string;
  readonly etag: string;
  readonly files: BundledAssets;
}

/** The pages of the console. They are bundled on the first request and kept compressed: about 150 kB in all. */
export function createConsole({ build = bundleConsole }: ConsoleOptions = {}): ConsolePages {
  const load = loadOnce(async () => assetsOf(await build()));

  return {
    async respond(request) {
      const { path } = request;
      if (path.startsWith(ASSET_PATH)) return (await load()).files.respond(path, request.headers);
      return pageResponse(request, matchPage(path) === undefined ? 404 : 200, await load());
    },
  };
}

const bundleConsole = () => loadBundle("console");
const ASSET_PATH = "/assets/";

function assetsOf(bundle: Bundle): Assets {
  const files = new BundledAssets(`${ASSET_PATH}console-`, bundle);
  const html = htmlOf(files);
  return { html, etag: etagOf(html), files };
}

function pageResponse({ headers }: PageRequest, status: 200 | 404, { html, etag }: Assets): Response {
  const lines = headerLinesOf({
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-cache",
    ETag: etag,
  });
  const isCurrent = status === 200 && matchesEtag(headers.get("if-none-match"), etag);
  return isCurrent ? emptyResponse(304, lines) : { status, headerLines: lines, body: html };
}

function htmlOf({ scriptPath, stylePath }: BundledAssets): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Petstore</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${stylePath}">
<script type="module" src="${scriptPath}"></script>
</head>
<body>
<div id="console"></div>
<noscript><p>The console needs JavaScript. The command line and the admin API do the same without it.</p></noscript>
</body>
</html>
`;
}
