import { createHash } from "node:crypto";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { DOCS_PATH, HEALTH_PATH } from "../contract/constants.ts";
import { methodNotAllowed } from "../contract/errors.ts";
import { openApiJson, openApiYaml } from "../contract/openapi/document.ts";
import { ALL_METHODS } from "../contract/operations.ts";
import { etagOf } from "../etag.ts";
import type { Request, Response } from "../http1/index.ts";
import { apiDocs } from "./api-docs.ts";
import { matchesEtag } from "./conditional-requests.ts";
import type { DocsSettings } from "./docs-blocks.ts";
import {
  emptyResponse,
  errorResponse,
  headerLinesOf,
  jsonResponse,
  unavailableResponse,
} from "./responses.ts";

export interface StaticRouteOptions {
  readonly docsSettings: DocsSettings;
  readonly isShuttingDown: () => boolean;
}

export interface StaticRoute {
  /** Whether requests count against the rate limit of the client's address. */
  readonly isRateLimited: boolean;
  respond(request: Pick<Request, "method" | "headers">, headerLines: string): Response;
}

const MAX_AGE_SECONDS = 300;

/** Routes outside the API: they need no key. */
export function createStaticRoutes({
  docsSettings,
  isShuttingDown,
}: StaticRouteOptions): ReadonlyMap<string, StaticRoute> {
  return new Map([
    ["/", route((_, lines) => ({ status: 302, headerLines: lines + REDIRECT, body: "" }))],
    [DOCS_PATH, page(() => docsPage(docsSettings), htmlLinesOf)],
    [
      "/openapi.json",
      page(
        () => openApiJson(docsSettings),
        () => JSON_LINES,
      ),
    ],
    [
      "/openapi.yaml",
      page(
        () => openApiYaml(docsSettings),
        () => YAML_LINES,
      ),
    ],
    [HEALTH_PATH, { isRateLimited: false, respond: onlyGet(health) }],
    // The parser accepts this target with OPTIONS alone (RFC 9112, 3.2.4).
    ["*", { isRateLimited: true, respond: (_, lines) => emptyResponse(204, lines + ALLOW_ALL) }],
  ]);

  function health(): Response {
    return isShuttingDown() ? unavailableResponse(1) : jsonResponse(200, NO_STORE, '{"status":"ok"}');
  }
}

const ALLOW_ALL = headerLinesOf({ Allow: ALL_METHODS });
const REDIRECT = headerLinesOf({ Location: DOCS_PATH });
const NO_STORE = headerLinesOf({ "Cache-Control": "no-store" });
const JSON_LINES = headerLinesOf({ "Content-Type": "application/json" });
/** RFC 9512. */
const YAML_LINES = headerLinesOf({ "Content-Type": "application/yaml" });
const ALLOWED = "GET, HEAD";

type Respond = StaticRoute["respond"];

function route(respond: Respond): StaticRoute {
  return { isRateLimited: true, respond: onlyGet(respond) };
}

function onlyGet(respond: Respond): Respond {
  return (request, headerLines) =>
    request.method === "GET" || request.method === "HEAD"
      ? respond(request, headerLines)
      : errorResponse(
          methodNotAllowed(request.method, ALLOWED),
          headerLines + headerLinesOf({ Allow: ALLOWED }),
        );
}

interface Encoded {
  readonly headerLines: string;
  readonly etag: string;
  readonly body: string | Uint8Array;
}

/** A page is built and compressed on its first request, once for each encoding. */
function page(build: () => string, contentLinesOf: (text: string) => string): StaticRoute {
  const encodings = new Map<Encoding, Encoded>();
  let text: string | undefined;

  function encoded(encoding: Encoding): Encoded {
    const found = encodings.get(encoding);
    if (found !== undefined) return found;
    text ??= build();
    // A strong validator names the bytes, so each encoding has its own.
    const etag = encoding === "identity" ? etagOf(text) : etagOf(text).replace(/"$/, `-${encoding}"`);
    const headers = {
      ETag: etag,
      "Cache-Control": `public, max-age=${MAX_AGE_SECONDS}`,
      Vary: "Accept-Encoding",
      ...(encoding !== "identity" && { "Content-Encoding": encoding }),
    };
    const headerLines = contentLinesOf(text) + headerLinesOf(headers);
    const result = { headerLines, etag, body: COMPRESS[encoding](text) };
    encodings.set(encoding, result);
    return result;
  }

  return route(({ headers }, rateLimitLines) => {
    const { headerLines, etag, body } = encoded(encodingOf(headers.get("accept-encoding")));
    const lines = headerLines + rateLimitLines;
    return matchesEtag(headers.get("if-none-match"), etag)
      ? emptyResponse(304, lines)
      : { status: 200, headerLines: lines, body };
  });
}

const COMPRESS = {
  br: (text: string) => brotliCompressSync(text),
  gzip: (text: string) => gzipSync(text, { level: 9 }),
  identity: (text: string) => text,
} as const;

type Encoding = keyof typeof COMPRESS;

/** The best encoding that the client accepts (RFC 9110, 12.5.3). */
export function encodingOf(acceptEncoding: string | null): Encoding {
  const qualities = new Map<string, number>();
  for (const element of (acceptEncoding ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = element.split(";").map((part) => part.trim());
    const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    qualities.set(name, quality === undefined ? 1 : Number(quality));
  }
  const accepts = (name: string) => (qualities.get(name) ?? qualities.get("*") ?? 0) > 0;
  if (accepts("br")) return "br";
  return accepts("gzip") ? "gzip" : "identity";
}

const STYLE = `
  :root { color-scheme: light dark; background: Canvas; color: CanvasText; font: 16px/1.6 system-ui, sans-serif }
  * { --code: color-mix(in srgb, currentColor 7%, transparent) }
  * { --line: 1px solid color-mix(in srgb, currentColor 15%, transparent) }
  body { max-width: 48rem; margin: 3rem auto; padding: 0 1.25rem }
  h1, h2, h3 { line-height: 1.25; margin-top: 2.2em }
  h1:first-child { margin-top: 0 }
  code, pre { font: 0.875em/1.5 ui-monospace, monospace }
  pre { padding: 0.9rem 1.1rem; overflow-x: auto; border-radius: 6px; background: var(--code) }
  table { border-collapse: collapse; display: block; overflow-x: auto }
  th, td { padding: 0.35rem 0.9rem 0.35rem 0; text-align: left; vertical-align: top; border-bottom: var(--line) }
`;

/** The policy allows the styles of this very page, by their hashes, and nothing else. */
function htmlLinesOf(html: string): string {
  const styles = [...html.matchAll(/<style>([^<]*)<\/style>/g)].map(
    ([, style = ""]) => `'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  );
  const policy = [
    "default-src 'none'",
    `style-src ${styles.join(" ")}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return headerLinesOf({
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": policy.join("; "),
    "Referrer-Policy": "no-referrer",
  });
}

function docsPage(settings: DocsSettings): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Petstore API</title>
<style>${STYLE}</style>
<body>
<main>
${focusable(Bun.markdown.html(apiDocs(settings), { headings: { ids: true } }))}
</main>
</body>
</html>
`;
}

/** What scrolls on a narrow screen can be scrolled with the keyboard. */
function focusable(html: string): string {
  return html.replace(/<(pre|table)>/g, '<$1 tabindex="0">');
}
