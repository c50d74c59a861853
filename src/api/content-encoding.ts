import { promisify } from "node:util";
import { andThen, type Awaitable } from "../runtime/awaitable.ts";
import { loadOnce } from "../runtime/load-once.ts";
import type { HeaderFields, Response } from "../http1/index.ts";
import { etagOf, matchesEtag } from "../runtime/etag.ts";
import { emptyResponse, headerLinesOf } from "./responses.ts";

export type Encoding = "br" | "gzip" | "identity";

/** Browsers send 30 characters. Reading 14 kB would take a millisecond. */
const MAX_ACCEPT_ENCODING = 500;

/** Returns the encoding that the client prefers (RFC 9110, 12.5.3), and among equal ones the smallest. */
export function encodingOf(acceptEncoding: string | null): Encoding {
  if (acceptEncoding === null || acceptEncoding.length > MAX_ACCEPT_ENCODING) return "identity";
  const qualities = new Map<string, number>();
  for (const element of acceptEncoding.toLowerCase().split(",")) {
    const [name = "", ...parameters] = element.split(";").map((part) => part.trim());
    const quality = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    qualities.set(name, quality === undefined ? 1 : Number(quality));
  }
  const qualityOf = (name: Encoding) => qualities.get(name) ?? qualities.get("*") ?? 0;
  const preferred = qualityOf("gzip") > qualityOf("br") ? "gzip" : "br";
  const isAccepted = qualityOf(preferred) > 0 && qualityOf(preferred) >= (qualities.get("identity") ?? 0);
  return isAccepted ? preferred : "identity";
}

/** The part of a request that the response depends on. */
export interface ContentRequest {
  readonly headers: Pick<HeaderFields, "get">;
}

interface ContentOptions {
  readonly text: string;
  /** `Content-Type` and the other headers that depend on the content. */
  readonly headerLines: string;
  /** Whether the path changes with the content, so that browsers may keep it forever. */
  readonly isImmutable?: boolean;
  /** Request headers besides `Accept-Encoding` that the choice of this content depends on. */
  readonly vary?: string;
}

interface Encoded {
  readonly headerLines: string;
  readonly etag: string;
  readonly body: string | Uint8Array;
}

const CACHE_CONTROL = "public, max-age=300";
export const IMMUTABLE_CACHE_CONTROL = "public, max-age=31536000, immutable";

/** Returns a 304 response if the client already has this version, and the given response otherwise. */
export function conditional({ headers }: ContentRequest, etag: string, response: Response): Response {
  const { headerLines } = response;
  return matchesEtag(headers.get("if-none-match"), etag) ? emptyResponse(304, headerLines) : response;
}

/** A text that stays in memory. It is compressed on its first request, once for each encoding, in another thread. */
export class EncodedContent {
  readonly #options: ContentOptions;
  readonly #encodings: Readonly<Record<Encoding, () => Awaitable<Encoded>>> = {
    br: loadOnce(() => this.#encode("br")),
    gzip: loadOnce(() => this.#encode("gzip")),
    identity: loadOnce(() => this.#encode("identity")),
  };

  constructor(options: ContentOptions) {
    this.#options = options;
  }

  respond(request: ContentRequest, rateLimitLines: string): Awaitable<Response> {
    return andThen(
      this.#encodings[encodingOf(request.headers.get("accept-encoding"))](),
      ({ headerLines, etag, body }) =>
        conditional(request, etag, { status: 200, headerLines: headerLines + rateLimitLines, body }),
    );
  }

  #encode(encoding: Encoding): Awaitable<Encoded> {
    const { text, headerLines, isImmutable = false, vary } = this.#options;
    // A strong validator identifies the bytes, so each encoding has its own.
    const etag = encoding === "identity" ? etagOf(text) : etagOf(text).replace(/"$/, `-${encoding}"`);
    const headers = {
      ETag: etag,
      "Cache-Control": isImmutable ? IMMUTABLE_CACHE_CONTROL : CACHE_CONTROL,
      Vary: vary === undefined ? "Accept-Encoding" : `${vary}, Accept-Encoding`,
      ...(encoding !== "identity" && { "Content-Encoding": encoding }),
    };
    const lines = headerLines + headerLinesOf(headers);
    return andThen(compress(text, encoding), (body) => ({ etag, headerLines: lines, body }));
  }
}

/** Compresses in another thread. `node:zlib` is loaded when it is used, because that takes 10 ms. */
function compress(text: string, encoding: Encoding): Awaitable<string | Uint8Array> {
  if (encoding === "identity") return text;
  const { brotliCompress, constants, gzip } = process.getBuiltinModule("node:zlib");
  // The best quality of Brotli takes ten times as long for 5 % less.
  const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
  return encoding === "br" ? promisify(brotliCompress)(text, brotli) : promisify(gzip)(text, { level: 9 });
}
