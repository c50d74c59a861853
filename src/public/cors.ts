import { headerLine, type Request, type Response } from "../http1/index.ts";
import { emptyResponse, headerLinesOf } from "../api/responses.ts";

/** The request headers that a script of another origin may send besides those that every script may. */
const REQUEST_HEADERS = [
  "Authorization",
  "Content-Type",
  "Idempotency-Key",
  "If-Match",
  "If-None-Match",
  "X-Request-Id",
];

/** The response headers that a script of another origin can read besides those that every script can. */
const EXPOSED_HEADERS = [
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "Retry-After",
  "Link",
  "Location",
  "ETag",
  "X-Request-Id",
  "Deprecation",
  "Sunset",
  "Idempotent-Replayed",
  "Date",
];

/** The longest time for which Chromium remembers a preflight. */
const MAX_AGE_SECONDS = 7_200;

const EXPOSE_LINE = headerLine("Access-Control-Expose-Headers", EXPOSED_HEADERS.join(", "));
/** The headers differ by origin, so a cache must store the responses separately. */
const VARY_LINE = headerLine("Vary", "Origin");

/**
 * Handles cross-origin requests of browsers (the CORS protocol of the Fetch standard). The origins are listed one by
 * one, and no response allows cookies: the key in `Authorization` is the only credential.
 */
export class Cors {
  readonly #allowLines: ReadonlyMap<string, string>;
  readonly #preflightLines: string;

  /** `methods` is the value of `Allow` for the API as a whole. */
  constructor(origins: readonly string[], methods: string) {
    this.#preflightLines = headerLinesOf({
      "Access-Control-Allow-Methods": methods,
      "Access-Control-Allow-Headers": REQUEST_HEADERS.join(", "),
      "Access-Control-Max-Age": `${MAX_AGE_SECONDS}`,
    });
    this.#allowLines = new Map(
      origins.map((origin) => [origin, headerLine("Access-Control-Allow-Origin", origin)]),
    );
  }

  /** Responds to a preflight of an allowed origin. It needs no key and counts against no limit. */
  preflight({ method, headers }: Request): Response | undefined {
    if (method !== "OPTIONS" || headers.get("access-control-request-method") === null) return undefined;
    return this.#allowLines.has(headers.get("origin") ?? "")
      ? emptyResponse(204, this.#preflightLines)
      : undefined;
  }

  /** Adds the headers that allow a script of an allowed origin to read the response. */
  allow({ headers }: Request, { status, headerLines, body }: Response): Response {
    const allowLine = this.#allowLines.get(headers.get("origin") ?? "");
    const lines = allowLine === undefined ? VARY_LINE : VARY_LINE + allowLine + EXPOSE_LINE;
    return { status, headerLines: headerLines + lines, body };
  }
}
