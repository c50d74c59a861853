import { join } from "node:path";
import { encodingOf } from "../api/content-encoding.ts";
import { headerLinesOf } from "../api/responses.ts";
import { type Infer, Invalid, line, nested, object, text } from "../api/schema.ts";
import { EXECUTABLE } from "../executable.ts";
import type { HeaderFields, Response } from "../http1/index.ts";

/** Compressed, in base64. */
const base64 = text(4 * 1024 * 1024);
const BundledFile = object({ required: { hash: line(16), br: base64, gzip: base64 } });
export type BundledFile = Infer<typeof BundledFile>;

const Bundle = object({ required: { script: nested(BundledFile), style: nested(BundledFile) } });
/** The script and the style sheet of a set of pages. */
export type Bundle = Infer<typeof Bundle>;
export type BundleName = "console" | "docs";

/** `json` is what build.ts wrote. */
function parseBundle(json: string): Bundle {
  const bundle = Bundle.read(JSON.parse(json));
  if (bundle instanceof Invalid) throw new Error(`The bundle ${bundle.problems.join("; ")}`);
  return bundle;
}

const ROOT = join(import.meta.dir, "../..");
const TIMEOUT_MS = 60_000;

/** The executable contains the bundles; a program that runs from its source makes them. */
export async function loadBundle(name: BundleName): Promise<Bundle> {
  return EXECUTABLE ? parseBundle(EXECUTABLE.bundles[name]) : bundleInChildProcess(name);
}

async function bundleInChildProcess(name: BundleName): Promise<Bundle> {
  // With the flags of the launcher, Bun reads no settings of the working directory. No variable means no secret.
  const flags = ["--no-env-file", "--config=/dev/null", `--tsconfig-override=${join(ROOT, "tsconfig.json")}`];
  const child = Bun.spawn([process.execPath, ...flags, join(import.meta.dir, "build.ts"), name], {
    cwd: ROOT,
    env: {},
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: TIMEOUT_MS,
  });
  const [output, problem, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`The bundle ${name} could not be built: ${problem.trim()}`);
  return parseBundle(output);
}

interface Asset {
  readonly contentType: string;
  /** Made for the first client that accepts no compression, and kept: whoever has no key may ask for it, too. */
  plain?: Uint8Array;
  readonly br: Uint8Array;
  readonly gzip: Uint8Array<ArrayBuffer>;
}

/** The files of a bundle in memory, compressed, by their paths. The path of a file changes with its content. */
export class BundledAssets {
  readonly scriptPath: string;
  readonly stylePath: string;
  readonly #assets: ReadonlyMap<string, Asset>;

  /** `prefix` is the beginning of their paths, such as `/assets/console-`. */
  constructor(prefix: string, { script, style }: Bundle) {
    this.scriptPath = `${prefix}${script.hash}.js`;
    this.stylePath = `${prefix}${style.hash}.css`;
    this.#assets = new Map([
      [this.scriptPath, assetOf(script, "text/javascript; charset=utf-8")],
      [this.stylePath, assetOf(style, "text/css; charset=utf-8")],
    ]);
  }

  /** Undefined if there is no such file. */
  respond(path: string, headers: Pick<HeaderFields, "get">, headerLines = ""): Response | undefined {
    const asset = this.#assets.get(path);
    if (asset === undefined) return undefined;
    const encoding = encodingOf(headers.get("accept-encoding"));
    const lines = headerLinesOf({
      "Content-Type": asset.contentType,
      Vary: "Accept-Encoding",
      "Cache-Control": "public, max-age=31536000, immutable",
      ...(encoding !== "identity" && { "Content-Encoding": encoding }),
    });
    // Every browser accepts a compressed file.
    const body = encoding === "identity" ? (asset.plain ??= Bun.gunzipSync(asset.gzip)) : asset[encoding];
    return { status: 200, headerLines: lines + headerLines, body };
  }
}

function assetOf({ br, gzip }: BundledFile, contentType: string): Asset {
  return { contentType, br: Uint8Array.fromBase64(br), gzip: Uint8Array.fromBase64(gzip) };
}

/** The icon of all pages, as a URL. */
export const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='%231a5bcc'%3E%3Ccircle cx='3' cy='7' r='1.7'/%3E%3Ccircle cx='6.3' cy='4' r='1.8'/%3E%3Ccircle cx='9.7' cy='4' r='1.8'/%3E%3Ccircle cx='13' cy='7' r='1.7'/%3E%3Cpath d='M8 7.5c2 0 4 2.200 4 4.200S9.500 14 8 13.200 4 13.700 4 11.700 6 7.500 8 7.500z'/%3E%3C/svg%3E";
