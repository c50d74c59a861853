import { retryAfterSeconds } from "./retry.ts";

/** The window with the fewest requests left. */
export interface RateLimit {
  limit: number;
  remaining: number;
  resetAt: Date;
}

export interface ResponseMetadata {
  status: number;
  headers: Headers;
  requestId: string | undefined;
  rateLimit: RateLimit | undefined;
  /** The version of what was read, for `ifMatch`. */
  etag: string | undefined;
  /** The seconds to wait. */
  retryAfter: number | undefined;
  /** The server had executed the request before, and repeated its response. */
  replayed: boolean;
  /** How many requests this call has sent so far: 1 without a retry. */
  attempts: number;
}

export function metadataOf({ status, headers }: Response, attempts: number): ResponseMetadata {
  const [limit, remaining, reset] = ["Limit", "Remaining", "Reset"].map((name) =>
    headers.get(`X-RateLimit-${name}`),
  );
  return {
    status,
    headers,
    requestId: headers.get("X-Request-Id") ?? undefined,
    rateLimit:
      limit && remaining && reset
        ? { limit: Number(limit), remaining: Number(remaining), resetAt: new Date(Number(reset) * 1000) }
        : undefined,
    etag: headers.get("ETag") ?? undefined,
    retryAfter: retryAfterSeconds(headers.get("Retry-After"), Date.now()),
    replayed: headers.get("Idempotent-Replayed") === "true",
    attempts,
  };
}

/** The cursor alone: the API key goes to no other address than the client was given. */
export function nextCursor(headers: Headers): string | undefined {
  const [, url] = /<([^>]*)>\s*;\s*rel="?next\b/.exec(headers.get("Link") ?? "") ?? [];
  return url === undefined
    ? undefined
    : (new URL(url, "http://relative").searchParams.get("cursor") ?? undefined);
}
