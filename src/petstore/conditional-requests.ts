import { matchesEtag } from "../api/etag.ts";
import type { Decision } from "../domain/rate-limit.ts";
import type { Request, Response } from "../http1/index.ts";
import { emptyResponse, jsonResponse } from "../api/responses.ts";
import { rateLimitLines } from "./responses.ts";

/** The response to a GET, without the headers that depend on the request. */
export interface Representation {
  /** With `ETag`, without the rate limit headers. */
  readonly headerLines: string;
  readonly body: string;
  readonly etag: string;
}

/** 304 if the client has this representation already, 200 otherwise. */
export function conditionalResponse(
  { headers }: Request,
  { headerLines, body, etag }: Representation,
  decision: Decision,
): Response {
  const lines = headerLines + rateLimitLines(decision);
  return matchesEtag(headers.get("if-none-match"), etag)
    ? emptyResponse(304, lines)
    : jsonResponse(200, lines, body);
}
