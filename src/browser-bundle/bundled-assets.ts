import { encodingOf } from "../api/content-encoding.ts";
import { headerLinesOf } from "../api/responses.ts";
import type { HeaderFields, Response } from "../http1/index.ts";
import type { Bundle, BundledFile } from "./bundle.ts";

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
