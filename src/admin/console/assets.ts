import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { type Infer, Invalid, line, nested, object, text } from "../../contract/schema.ts";
import { etagOf } from "../../etag.ts";
import { matchesEtag } from "../../http/conditional-requests.ts";
import { emptyResponse, headerLinesOf, type Headers } from "../../http/responses.ts";
import { encodingOf } from "../../http/static-routes.ts";
import type { HeaderFields, Response } from "../../http1/index.ts";
import { matchPage } from "./pages.ts";

const base64 = text(4 * 1024 * 1024);

/** Compressed, in base64. */
const ConsoleFile = object({ required: { hash: line(16), br: base64, gzip: base64 } });
export type ConsoleFile = Infer<typeof ConsoleFile>;
const ConsoleFiles = object({ required: { script: nested(ConsoleFile), style: nested(ConsoleFile) } });
export type ConsoleFiles = Infer<typeof ConsoleFiles>;

export interface ConsoleOptions {
  /** An executable that contains the console gives its files here, and bundles nothing. */
  readonly build?: () => Promise<ConsoleFiles>;
}

interface PageRequest {
  readonly path: string;
  readonly headers: Pick<HeaderFields, "get">;
}

/** The pages of the console and what they load. Undefined if there is no such file. */
export interface ConsolePages {
  respond(request: PageRequest): Promise<Response | undefined>;
}

interface Asset {
  readonly contentType: string;
  /** Made for the first client that accepts no compression, and kept: whoever has no token may ask for it, too. */
  plain?: Uint8Array;
  readonly br: Uint8Array;
  readonly gzip: Uint8Array;
}

interface Assets {
  readonly html: string;
  readonly etag: string;
  readonly files: ReadonlyMap<string, Asset>;
}

/** The pages of the console. They are bundled on the first request and kept compressed: about 150 kB in all. */
export function createConsole({ build = buildInChildProcess }: ConsoleOptions = {}): ConsolePages {
  let assets: Promise<Assets> | undefined;

  function load(): Promise<Assets> {
    assets ??= build().then(assetsOf, (error: unknown) => {
      // The next request tries again.
      assets = undefined;
      throw error;
    });
    return assets;
  }

  return {
    async respond(request) {
      const { path } = request;
      if (path.startsWith(ASSET_PATH)) return assetResponse(request, (await load()).files.get(path));
      return pageResponse(request, matchPage(path) === undefined ? 404 : 200, await load());
    },
  };
}

const ASSET_PATH = "/assets/";
/** The name of a file changes with its content. */
const FOREVER = { "Cache-Control": "public, max-age=31536000, immutable" };

function assetsOf({ script, style }: ConsoleFiles): Assets {
  const scriptPath = `${ASSET_PATH}console-${script.hash}.js`;
  const stylePath = `${ASSET_PATH}console-${style.hash}.css`;
  const html = htmlOf(scriptPath, stylePath);
  return {
    html,
    etag: etagOf(html),
    files: new Map([
      [scriptPath, assetOf(script, "text/javascript; charset=utf-8")],
      [stylePath, assetOf(style, "text/css; charset=utf-8")],
    ]),
  };
}

function assetOf({ br, gzip }: ConsoleFile, contentType: string): Asset {
  return { contentType, br: Uint8Array.fromBase64(br), gzip: Uint8Array.fromBase64(gzip) };
}

function assetResponse({ headers }: PageRequest, asset: Asset | undefined): Response | undefined {
  if (asset === undefined) return undefined;
  const encoding = encodingOf(headers.get("accept-encoding"));
  const lines: Headers = {
    "Content-Type": asset.contentType,
    Vary: "Accept-Encoding",
    ...FOREVER,
    ...(encoding !== "identity" && { "Content-Encoding": encoding }),
  };
  // Every browser accepts a compressed file.
  const body = encoding === "identity" ? (asset.plain ??= gunzipSync(asset.gzip)) : asset[encoding];
  return { status: 200, headerLines: headerLinesOf(lines), body };
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

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='%231a5bcc'%3E%3Ccircle cx='3' cy='7' r='1.7'/%3E%3Ccircle cx='6.3' cy='4' r='1.8'/%3E%3Ccircle cx='9.7' cy='4' r='1.8'/%3E%3Ccircle cx='13' cy='7' r='1.7'/%3E%3Cpath d='M8 7.5c2 0 4 2.200 4 4.200S9.500 14 8 13.200 4 13.700 4 11.700 6 7.500 8 7.500z'/%3E%3C/svg%3E";

function htmlOf(scriptPath: string, stylePath: string): string {
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

const ROOT = join(import.meta.dir, "../../..");
const BUILD_TIMEOUT_MS = 60_000;

/** From what build.ts writes. */
export function parseConsoleFiles(json: string): ConsoleFiles {
  const files = ConsoleFiles.read(JSON.parse(json));
  if (files instanceof Invalid) throw new Error(`The bundle of the console ${files.problems.join("; ")}`);
  return files;
}

async function buildInChildProcess(): Promise<ConsoleFiles> {
  // With the flags of the launcher, Bun reads no settings of the working directory. No variable means no secret.
  const flags = ["--no-env-file", "--config=/dev/null", `--tsconfig-override=${join(ROOT, "tsconfig.json")}`];
  const child = Bun.spawn([process.execPath, ...flags, join(import.meta.dir, "build.ts")], {
    cwd: ROOT,
    env: {},
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: BUILD_TIMEOUT_MS,
  });
  const [output, problem, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`The console could not be bundled: ${problem.trim()}`);
  return parseConsoleFiles(output);
}
