import type { ApiRequest } from "./request.ts";

/** What came of a request. */
export type CallOutcome = ApiResponse | { readonly kind: "unreachable" } | { readonly kind: "cancelled" };

export interface ApiResponse {
  readonly kind: "response";
  readonly status: number;
  /** Empty if the server or a proxy sends none. */
  readonly statusText: string;
  readonly headers: Headers;
  readonly body: string;
  /** From the call until all of the body had arrived. */
  readonly durationMs: number;
  /** On the clock of `performance`. */
  readonly receivedAt: number;
}

export async function send(
  { url, headers, ...request }: ApiRequest,
  signal: AbortSignal,
): Promise<CallOutcome> {
  const start = performance.now();
  try {
    const response = await fetch(url, {
      ...request,
      headers: Object.fromEntries(headers),
      // A stored response would not be what the API responds now.
      cache: "no-store",
      credentials: "omit",
      referrerPolicy: "no-referrer",
      signal,
    });
    const { status, statusText, headers: received } = response;
    const body = await response.text();
    const receivedAt = performance.now();
    const durationMs = receivedAt - start;
    return { kind: "response", status, statusText, headers: received, body, durationMs, receivedAt };
  } catch {
    return { kind: signal.aborted ? "cancelled" : "unreachable" };
  }
}

/** The window with the fewest requests left, and when it closes, on the clock of `performance`. */
export function rateLimitOf({ headers, receivedAt }: ApiResponse) {
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) =>
    wholeNumber(headers.get(`x-ratelimit-${name}`)),
  );
  if (limit === undefined || remaining === undefined || reset === undefined || limit === 0) return undefined;
  // The time by the clock of the server: that of this machine may be wrong.
  const date = Date.parse(headers.get("date") ?? "");
  const now = Number.isNaN(date) ? Date.now() : date;
  // Both are whole seconds, one rounded up and the other down. In the middle of what they mean is a second less.
  return { limit, remaining, closesAt: receivedAt + Math.max(0, (reset - 1) * 1_000 - now) };
}

/** When a request that got 429 may be repeated, on the clock of `performance`. */
export function retryAtOf({ status, headers, receivedAt }: ApiResponse): number | undefined {
  const seconds = wholeNumber(headers.get("retry-after"));
  return status === 429 && seconds !== undefined ? receivedAt + seconds * 1_000 : undefined;
}

function wholeNumber(text: string | null): number | undefined {
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** The code and message of an error; undefined for every other body. */
export function apiErrorOf(body: string): { readonly code: string; readonly message: string } | undefined {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value !== "object" || value === null || !("code" in value) || !("message" in value))
      return undefined;
    const { code, message } = value;
    return typeof code === "string" && typeof message === "string" ? { code, message } : undefined;
  } catch {
    return undefined;
  }
}

const NEXT_PAGE = /<([^>]*)>\s*;\s*rel="?next"?/;

/** The cursor of the next page; undefined on the last one. */
export function nextCursorOf({ headers }: Pick<ApiResponse, "headers">): string | undefined {
  const url = NEXT_PAGE.exec(headers.get("link") ?? "")?.[1];
  const query = url?.split("?")[1];
  return new URLSearchParams(query ?? "").get("cursor") ?? undefined;
}

/** `rawJSON` and the third argument of a reviver are newer than the type library. */
const modernJson = JSON as JSON & { rawJSON(source: string): unknown };
type Reviver = (name: string, value: unknown, context?: { readonly source: string }) => unknown;

const keepDigits: Reviver = (_name, value, context) =>
  typeof value === "number" ? modernJson.rawJSON(context?.source ?? "") : value;

/**
 * JSON text with line breaks and indentation. Numbers keep the digits with which they were sent. Undefined if the text
 * is not JSON, or if the browser is older than `rawJSON`.
 */
export function indentedJson(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text, keepDigits), null, 2);
  } catch {
    return undefined;
  }
}
