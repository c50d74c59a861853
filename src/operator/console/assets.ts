import { type Bundle, BundledAssets, ICON, loadBundle } from "../../browser-bundle/bundle.ts";
import { loadOnce } from "../../api/awaitable.ts";
import { etagOf, matchesEtag } from "../../api/etag.ts";
import { emptyResponse, headerLinesOf } from "../../api/responses.ts";
import type { HeaderFields, Response } from "../../http1/index.ts";
import { matchPage } from "./pages.ts";

interface PageRequest {
  readonly path: string;
  readonly headers: Pick<HeaderFields, "get">;
}

/** The pages of the console and what they load. Undefined if there is no such file. */
export interface ConsolePages {
  respond(request: PageRequest): Promise<Response | undefined>;
}

/** The pages of the console. They are bundled on the first request and kept compressed: about 150 kB in all. */
export function createConsole(build: () => Promise<Bundle> = () => loadBundle("console")): ConsolePages {
  const load = loadOnce(async () => {
    const files = new BundledAssets(`${ASSET_PATH}console-`, await build());
    const html = htmlOf(files);
    return { html, etag: etagOf(html), files };
  });

  return {
    async respond(request) {
      const { path, headers } = request;
      const { html, etag, files } = await load();
      if (path.startsWith(ASSET_PATH)) return files.respond(path, headers);
      const status = matchPage(path) === undefined ? 404 : 200;
      const headerLines = headerLinesOf({
        "Content-Type": "text/html; charset=utf-8",
        "Cache-Control": "no-cache",
        ETag: etag,
      });
      const isCurrent = status === 200 && matchesEtag(headers.get("if-none-match"), etag);
      return isCurrent ? emptyResponse(304, headerLines) : { status, headerLines, body: html };
    },
  };
}

const ASSET_PATH = "/assets/";

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
