import * as errors from "./errors.ts";
import { errorBody, parseJson } from "./json.ts";
import { RequestQueue } from "./request-queue.ts";
import { metadataOf, type ResponseMetadata } from "./response.ts";
import { isRetried, retryDelay, sleep, timeLimit } from "./retry.ts";
import type { CallOptions, Hooks, Ids, PetstoreOptions, RequestEvent } from "./types.ts";

export interface ApiRequest {
  readonly method: string;
  /** The path below the base URL, with its query. */
  readonly path: string;
  /** JSON. */
  readonly body?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** `endsAt` is the deadline of a call that sends several requests. */
  readonly options: CallOptions & { readonly endsAt?: number };
  /** What the data of a success must be. */
  readonly expected: "array" | "object" | "any";
}

export interface ApiResult {
  readonly data: unknown;
  readonly response: ResponseMetadata;
}

/** A response with its text. */
interface Received extends errors.ErrorDetails {
  response: ResponseMetadata;
  body: string;
}

const USER_AGENT = "petstore-client/1.3.0";
const KEY = /^pet_(?:live|test)_[^\W_]+$/;
/** A server allows an address 256 connections, so that three more clients of the address have as many. */
const MAX_CONCURRENCY = 64;
const MAX_RETRIES = 10;
/** A call of a client that has never had a response goes on for as long as a restart takes. */
const MAX_UNREACHED_MS = 10_000;
/**
 * What no restart causes: an unknown host, a wrong certificate, another protocol. Node and Bun have codes for it, Deno
 * messages.
 */
const WRONG_ADDRESS =
  /ENOTFOUND|CERT|SSL|EPROTO|HPE_|Malformed_|UNABLE_TO_|not known$|peer cert|corrupt message/;

/** Sends requests: authentication, rate limit, retries, deadline, cache, hooks. */
export class Transport {
  readonly #baseUrl: string;
  /** What to do if the address is not that of the API. */
  readonly #advice: string;
  readonly #key: string;
  readonly #integer: (digits: string) => unknown;
  readonly #hooks: Hooks;
  readonly #queue: RequestQueue;
  readonly #waitForRateLimit: boolean;
  readonly #maxRetries: number | undefined;
  readonly #timeoutMs: number;
  readonly #deadlineMs: number;
  readonly #cacheSize: number;
  readonly #fetch: NonNullable<PetstoreOptions["fetch"]>;
  #lastResponse: ResponseMetadata | undefined;
  /** The last 429, until a request succeeds. */
  #rejection: errors.ApiError | undefined;
  /** The last responses by URL; the one that was used last is at the end. */
  readonly #cache = new Map<string, { etag: string; headers: Headers; text: string }>();
  /** The paths whose deprecation was reported, without identifiers. */
  readonly #reported = new Set<string>();

  constructor(options: PetstoreOptions<Ids>) {
    const { baseUrl } = options;
    // Browsers have no environment.
    const key: string | undefined = options.key ?? Reflect.get(globalThis, "process")?.env?.["PETSTORE_KEY"];
    const waitForRateLimit = options.waitForRateLimit ?? true;
    const maxConcurrency = options.maxConcurrency ?? MAX_CONCURRENCY;
    if (!(maxConcurrency >= 1)) throw new TypeError("maxConcurrency must be at least 1.");
    // The message has no key, because messages end up in logs.
    if (!key) throw new TypeError("Set key or PETSTORE_KEY.");
    if (!KEY.test(key)) throw new TypeError("key or PETSTORE_KEY must be a pet_live_ or pet_test_ key.");
    this.#key = key;
    // `localhost:8080` would be a URL whose scheme is localhost.
    if (!/^https?:\/\/./.test(baseUrl))
      throw new TypeError(`baseUrl must be a URL such as https://example.com/v1, not ${baseUrl}.`);
    this.#baseUrl = new URL(baseUrl).href.replace(/\/+$/, "");
    this.#advice = this.#baseUrl.endsWith("/v1") ? "" : ` Set baseUrl to ${this.#baseUrl}/v1.`;
    this.#integer = options.ids === "string" ? String : BigInt;
    this.#hooks = options;
    this.#queue = new RequestQueue({ maxConcurrency, waitForRateLimit });
    this.#waitForRateLimit = waitForRateLimit;
    this.#maxRetries = options.maxRetries;
    this.#timeoutMs = options.timeoutMs ?? 15_000;
    this.#deadlineMs = options.deadlineMs ?? 120_000;
    this.#cacheSize = options.cache ?? 0;
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
  }

  /** Starts the time of a call that sends several requests. */
  startTime<T extends CallOptions>(options: T): T & { readonly endsAt: number } {
    return { ...options, endsAt: Date.now() + (options.deadlineMs ?? this.#deadlineMs) };
  }

  async send(request: ApiRequest): Promise<ApiResult> {
    const { signal: aborted, deadlineMs = this.#deadlineMs } = request.options;
    const { endsAt = Date.now() + deadlineMs } = request.options;
    const passed = new Error("The deadline passed.");
    const { signal, end } = timeLimit(endsAt - Date.now(), passed, aborted);
    let attempt = 0;
    let reachUntil = 0;
    let last: errors.ApiError | errors.ConnectionError | undefined;
    try {
      for (;;) {
        const event = { method: request.method, url: this.#baseUrl + request.path, attempt: ++attempt };
        await this.#queue.acquire(signal, (waitMs) => {
          if (Date.now() + waitMs >= endsAt) throw this.#limited(waitMs, request, attempt - 1);
          this.#hooks.onWait?.({ ...event, waitMs });
        });
        reachUntil ||= Date.now() + MAX_UNREACHED_MS;
        const outcome = await this.#attempt(request, event, signal);
        if ("data" in outcome) {
          this.#rejection = undefined;
          return outcome;
        }
        last = outcome;
        if (last instanceof errors.RateLimitError) this.#rejection = last;
        if (last instanceof errors.ApiError && !isRetried(last)) throw last;
        signal.throwIfAborted();
        const { code, message } = Object(innermost(last.cause));
        if (!this.#lastResponse && WRONG_ADDRESS.test(code ?? message)) throw last;
        const now = Date.now();
        const askedMs = (last.response?.retryAfter ?? 0) * 1_000;
        let delayMs = askedMs + retryDelay(attempt, endsAt - now - askedMs);
        const maxRetries = this.#maxRetries ?? (this.#lastResponse && MAX_RETRIES);
        if (maxRetries === undefined) delayMs = Math.min(delayMs, reachUntil - now);
        if (delayMs <= 0 || attempt > (maxRetries ?? attempt) || now + delayMs >= endsAt) throw last;
        this.#hooks.onRetry?.({ ...event, delayMs, error: last });
        if (last.status === 429 && this.#waitForRateLimit) this.#queue.pause(delayMs, askedMs);
        else await sleep(delayMs, signal);
      }
    } catch (error) {
      if (error !== passed) throw error;
      const { idempotencyKey } = request;
      const message = last
        ? `No success within ${deadlineMs} ms, ${attempt} attempts.`
        : `No request was sent within ${deadlineMs} ms: others or the rate limit came first.`;
      throw new errors.TimeoutError(message, {
        idempotencyKey,
        ...(last && { cause: last, response: last.response, body: last.body }),
      });
    } finally {
      end();
    }
  }

  /** The error of a call that would wait for the rate limit, or for the end of a ban, until after its deadline. */
  #limited(waitMs: number, { idempotencyKey }: ApiRequest, attempts: number): errors.ApiError | undefined {
    const { code = "rate_limited", body, response = this.#lastResponse } = this.#rejection ?? {};
    if (!response) return;
    const retryAfter = Math.ceil(waitMs / 1_000);
    const message = `No request was sent: ${code} for ${retryAfter} s, beyond the deadline.`;
    const details = { code, idempotencyKey, body };
    return new errors.RateLimitError(message, {
      ...details,
      response: { ...response, status: 429, retryAfter, attempts },
    });
  }

  /** A failure that may be retried is a value. `signal` ends the call. */
  async #attempt(
    request: ApiRequest,
    event: RequestEvent,
    signal: AbortSignal,
  ): Promise<ApiResult | errors.ApiError | errors.ConnectionError> {
    const { idempotencyKey } = request;
    const late = new Error(`nothing came within ${this.#timeoutMs} ms`);
    const limit = timeLimit(this.#timeoutMs, late, signal);
    let response: ResponseMetadata | undefined;
    try {
      signal.throwIfAborted();
      this.#hooks.onRequest?.(event);
      const known = request.method === "GET" ? this.#cache.get(event.url) : undefined;
      const init = this.#init(request, known?.etag, limit.signal);
      let body;
      try {
        const received = await this.#fetch(event.url, init);
        this.#lastResponse = response = metadataOf(received, event.attempt);
        body = await received.text();
      } catch (cause) {
        return lostResponse(event.url, { cause, idempotencyKey, response });
      }
      this.#hooks.onResponse?.({ ...event, response });
      this.#reportDeprecation(event, response);
      if (response.status === 304 && known) {
        const headers = new Headers(known.headers);
        for (const [name, value] of response.headers) headers.set(name, value);
        response = { ...response, headers, etag: known.etag };
        body = known.text;
      } else if (response.status >= 400) {
        return apiError({ idempotencyKey, response, body }, this.#advice);
      }
      const result = this.#resultOf(request, { idempotencyKey, response, body });
      if (request.method === "GET" && body && "data" in result)
        this.#remember(event.url, response.headers, body);
      return result;
    } finally {
      limit.end();
      this.#queue.release(response);
    }
  }

  #init(
    { method, body, idempotencyKey, options }: ApiRequest,
    etag: string | undefined,
    signal: AbortSignal,
  ) {
    const headers = new Headers(options.headers);
    headers.set("Authorization", `Bearer ${this.#key}`);
    // A browser names itself, and asks servers of other origins before it names something else.
    if (!isBrowser() && !headers.has("User-Agent")) headers.set("User-Agent", USER_AGENT);
    if (body !== undefined) headers.set("Content-Type", "application/json");
    if (idempotencyKey !== undefined) headers.set("Idempotency-Key", idempotencyKey);
    if (etag !== undefined) headers.set("If-None-Match", etag);
    return { method, headers, signal, redirect: "manual" as const, ...(body !== undefined && { body }) };
  }

  /** The result of a response that is no error. JSON that ends too early is a response that was cut off. */
  #resultOf({ method, path, expected }: ApiRequest, details: Received): ApiResult | errors.ConnectionError {
    const { response, body } = details;
    const { status, headers } = response;
    const url = this.#baseUrl + path;
    const invalid = (problem: string) =>
      new errors.InvalidResponseError(`${method} ${url} ${problem}`, details);
    // 0 is what a browser shows of a redirect.
    if (status === 0 || (status >= 300 && status !== 304))
      throw invalid(`redirects to ${headers.get("Location") ?? "another address"}: set baseUrl to it.`);
    const isEmpty = !body && (status === 204 || status === 304);
    if (method === "HEAD" || (isEmpty && expected === "any")) return { data: undefined, response };
    const type = headers.get("Content-Type") ?? "no Content-Type";
    const received = `responded with status ${status} and ${type},`;
    let data;
    try {
      data = parseJson(body, this.#integer);
    } catch (cause) {
      if (/\bjson\b/.test(type)) return lostResponse(url, { ...details, cause });
      throw invalid(`${received} which is no JSON.${this.#advice}`);
    }
    const kind = Array.isArray(data) ? "array" : data === null ? "null" : typeof data;
    if (expected !== "any" && kind !== expected) throw invalid(`${received} whose JSON is no ${expected}.`);
    return { data, response };
  }

  #remember(url: string, headers: Headers, text: string): void {
    const etag = headers.get("ETag");
    this.#cache.delete(url);
    if (etag === null || this.#cacheSize === 0) return;
    this.#cache.set(url, { etag, headers, text });
    const [oldest] = this.#cache.keys();
    if (this.#cache.size > this.#cacheSize && oldest !== undefined) this.#cache.delete(oldest);
  }

  #reportDeprecation({ method, url }: RequestEvent, { headers, status }: ResponseMetadata): void {
    const since = headers.get("Deprecation");
    if (since === null) return;
    const sunset = headers.get("Sunset");
    const link = headers.get("Link") ?? undefined;
    if (this.#hooks.onDeprecation) {
      const sinceDate = /^@\d+$/.test(since) ? new Date(Number(since.slice(1)) * 1000) : undefined;
      this.#hooks.onDeprecation({
        method,
        url,
        since: sinceDate,
        sunset: sunset === null ? undefined : new Date(sunset),
        link,
      });
      return;
    }
    const operation = `${method} ${url.replace(/\?.*/, "").replace(/-?\d+$/, "{id}")}`;
    if (this.#reported.has(operation)) return;
    this.#reported.add(operation);
    const removal = sunset ? ` and ${status === 410 ? "was" : "will be"} removed on ${sunset}` : "";
    const page = link?.match(/<([^>]*)>; rel="deprecation"/)?.[1];
    // oxlint-disable-next-line no-console -- the warning that the documentation promises
    console.warn(`Petstore: ${operation} is deprecated${removal}.${page ? ` See ${page}` : ""}`);
  }
}

const CLASSES: Readonly<Record<number, typeof errors.ApiError>> = {
  401: errors.AuthenticationError,
  403: errors.PermissionError,
  404: errors.NotFoundError,
  409: errors.ConflictError,
  412: errors.ConflictError,
  410: errors.NotFoundError,
  422: errors.ConflictError,
  429: errors.RateLimitError,
};

/** The body is `{code, message, status}`, unless something in front of the server responded. */
function apiError(received: Received, advice: string): errors.ApiError {
  const { status } = received.response;
  const { code, message = `The server responded with status ${status}.` } = errorBody(received.body);
  const Class = CLASSES[status] ?? (status < 500 ? errors.InvalidRequestError : errors.ServerError);
  const isElsewhere = status === 404 && (code ?? "not_found") === "not_found";
  return new Class(message + (isElsewhere ? advice : ""), { ...received, code });
}

/** The error of a request without a complete response. */
function lostResponse(url: string, details: errors.ErrorDetails): errors.ConnectionError {
  const { cause, idempotencyKey, response } = details;
  const message = response
    ? `The response from ${url} was cut off: ${innermostMessage(cause)}. Repeat the call${idempotencyKey ? " with its idempotencyKey" : ""}.`
    : `No response from ${url}: ${innermostMessage(cause)}.`;
  return new errors.ConnectionError(message, details);
}

function isBrowser(): boolean {
  return globalThis.navigator?.userAgent?.startsWith("Mozilla/") === true;
}

function innermostMessage(error: unknown): string {
  const cause = innermost(error);
  if (!(cause instanceof Error)) return String(cause);
  return cause.message.replace(/[.?]$/, "") || ("code" in cause ? String(cause.code) : cause.name);
}

/** `fetch` of Node says "fetch failed", and its cause says why. */
function innermost(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? innermost(error.cause) : error;
}
