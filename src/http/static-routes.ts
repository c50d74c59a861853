import { DOCS_PATH } from "../contract/constants.ts";
import { methodNotAllowed } from "../contract/errors.ts";
import { ALL_METHODS } from "../contract/operations.ts";
import type { Request } from "../http1/index.ts";
import type { Response } from "../http1/index.ts";
import { apiDocs } from "./api-docs.ts";
import {
  emptyResponse,
  errorResponse,
  headerLinesOf,
  jsonResponse,
  unavailableResponse,
} from "./responses.ts";

export interface StaticRouteOptions {
  /** The OpenAPI document as JSON. */
  readonly openApi: () => string;
  readonly isShuttingDown: () => boolean;
}

export type StaticRoute = (request: Pick<Request, "method">) => Response;

/** Routes outside the API: no key, no rate limits. Their bodies are built on the first request. */
export function createStaticRoutes({
  openApi,
  isShuttingDown,
}: StaticRouteOptions): ReadonlyMap<string, StaticRoute> {
  const openApiJson = once(openApi);
  const docs = once(docsPage);
  const health = () =>
    isShuttingDown() ? unavailableResponse(1) : jsonResponse(200, NO_STORE, '{"status":"ok"}');
  return new Map([
    ["/", route(() => ({ status: 302, headerLines: headerLinesOf({ Location: DOCS_PATH }), body: "" }))],
    [DOCS_PATH, route(() => ({ status: 200, headerLines: HTML, body: docs() }))],
    ["/openapi.json", route(() => jsonResponse(200, "", openApiJson()))],
    ["/healthz", route(health)],
    // The parser allows no other method with this target (RFC 9112, 3.2.4).
    ["*", () => emptyResponse(204, headerLinesOf({ Allow: ALL_METHODS }))],
  ]);
}

const HTML = headerLinesOf({ "Content-Type": "text/html; charset=utf-8" });
const NO_STORE = headerLinesOf({ "Cache-Control": "no-store" });
const ALLOWED = "GET, HEAD";

function route(respond: () => Response): StaticRoute {
  return ({ method }) =>
    method === "GET" || method === "HEAD"
      ? respond()
      : errorResponse(methodNotAllowed(method, ALLOWED), headerLinesOf({ Allow: ALLOWED }));
}

function once(build: () => string): () => string {
  let built: string | undefined;
  return () => (built ??= build());
}

function docsPage(): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Petstore API</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.6 system-ui, sans-serif }
  body { max-width: 48rem; margin: 3rem auto; padding: 0 1.25rem }
  h1, h2, h3 { line-height: 1.25; margin-top: 2.2em }
  h1:first-child { margin-top: 0 }
  code, pre { font: 0.875em/1.5 ui-monospace, monospace }
  pre { padding: 0.9rem 1.1rem; overflow-x: auto; border-radius: 6px; background: color-mix(in srgb, currentColor 7%, transparent) }
  table { border-collapse: collapse; display: block; overflow-x: auto }
  th, td { padding: 0.35rem 0.9rem 0.35rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent) }
</style>
<body>
${Bun.markdown.html(apiDocs(), { headings: { ids: true } })}
</body>
</html>
`;
}
