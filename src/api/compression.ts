import { promisify } from "node:util";
import { brotliCompress, constants, gzip as gzipCompress } from "node:zlib";

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzipCompress);
/** The best quality takes ten times as long for 5 % less. */
const BROTLI_OPTIONS = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };

/** In another thread, as `gzip` does. */
export function br(text: string): Promise<Uint8Array> {
  return compressBrotli(text, BROTLI_OPTIONS);
}

export function gzip(text: string): Promise<Uint8Array> {
  return compressGzip(text, { level: 9 });
}
