import { parseJson } from "../../client/json.ts";
import { metadataOf, type ResponseMetadata } from "../../client/response.ts";
import type { TryItRequest } from "./request.ts";

/** What came of a request. */
export type CallOutcome = ApiResponse | { readonly kind: "unreachable" } | { readonly kind: "cancelled" };

export interface ApiResponse extends ResponseMetadata {
  readonly kind: "response";
  /** Empty if the server or a proxy sends none. */
  readonly statusText: string;
  readonly body: string;
  /** The time from the call until all of the body had arrived. */
  readonly durationMs: number;
  /** The time of arrival on the clock of `performance`. */
  readonly receivedAt: number;
}

export async function send(request: TryItRequest, signal: AbortSignal): Promise<CallOutcome> {
  const { method, url, headers, body: sent } = request;
  const start = performance.now();
  try {
    const response = await fetch(url, {
      method,
      headers: Object.fromEntries(headers),
      ...(sent !== undefined && { body: sent }),
      // A stored response would not be what the API responds now.
      cache: "no-store",
      credentials: "omit",
      referrerPolicy: "no-referrer",
      signal,
    });
    const body = await response.text();
    const receivedAt = performance.now();
    const durationMs = receivedAt - start;
    const { statusText } = response;
    return { kind: "response", ...metadataOf(response, 1), statusText, body, durationMs, receivedAt };
  } catch {
    return { kind: signal.aborted ? "cancelled" : "unreachable" };
  }
}

/** The window with the fewest requests left, and when it closes, on the clock of `performance`. */
export function windowOf({ headers, rateLimit, receivedAt }: ApiResponse) {
  if (rateLimit === undefined) return undefined;
  const { limit, remaining, resetAt } = rateLimit;
  // The time by the clock of the server: that of this machine may be wrong.
  const date = Date.parse(headers.get("date") ?? "");
  const now = Number.isNaN(date) ? Date.now() : date;
  // Both are whole seconds, one rounded up and the other down. In the middle of what they mean is a second less.
  return { limit, remaining, closesAt: receivedAt + Math.max(0, resetAt.getTime() - 1_000 - now) };
}

/** When a request that got 429 may be repeated, on the clock of `performance`. */
export function retryAtOf({ status, retryAfter, receivedAt }: ApiResponse): number | undefined {
  return status === 429 && retryAfter !== undefined ? receivedAt + retryAfter * 1_000 : undefined;
}

/** `rawJSON` is newer than the type library. */
const modernJson = JSON as JSON & { rawJSON(source: string): unknown };

/**
 * JSON text with line breaks and indentation. Integers keep the digits with which they were sent. Undefined if the text
 * is not JSON, or if the browser is older than `rawJSON`.
 */
export function indentedJson(text: string): string | undefined {
  try {
    return JSON.stringify(parseJson(text, modernJson.rawJSON), null, 2);
  } catch {
    return undefined;
  }
}
