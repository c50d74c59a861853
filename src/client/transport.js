/** @import { CallOptions, PetstoreOptions, RequestEvent, ResponseMetadata, Hooks } from "./index.d.ts" */
import { ApiError, apiError, ConnectionError, TimeoutError } from "./errors.js";
import { parseJson } from "./json.js";
import { RateLimiter } from "./rate-limiter.js";
import { isRetried, retryAfterSeconds, retryDelay, sleep } from "./retry.js";

/**
 * @typedef {object} ApiRequest
 * @property {"GET" | "POST" | "PATCH"} method
 * @property {string} path Below the base URL, with its query.
 * @property {string} [body] JSON.
 * @property {string} [idempotencyKey]
 * @property {CallOptions} options
 */

/** @typedef {{ data: unknown, response: ResponseMetadata }} ApiResult */

/** Sends requests: authentication, rate limit, retries, deadline, hooks. */
export class Transport {
  #baseUrl;
  #key;
  /** @type {Hooks} */
  #hooks;
  #limiter;
  #maxRetries;
  #timeoutMs;
  #deadlineMs;
  #fetch;
  /** The paths whose deprecation was reported, without identifiers. */
  #reported = new Set();

  /** @param {PetstoreOptions} options */
  constructor(options) {
    const { key, baseUrl, waitForRateLimit = true, maxRetries = 10 } = options;
    if (!key || !baseUrl) throw new TypeError("new Petstore() needs key and baseUrl.");
    this.#key = key;
    this.#baseUrl = new URL(baseUrl).href.replace(/\/+$/, "");
    this.#hooks = options;
    this.#limiter = waitForRateLimit ? new RateLimiter() : undefined;
    this.#maxRetries = maxRetries;
    this.#timeoutMs = options.timeoutMs ?? 15_000;
    this.#deadlineMs = options.deadlineMs ?? 120_000;
    this.#fetch =
      options.fetch ?? ((/** @type {string} */ url, /** @type {RequestInit} */ init) => fetch(url, init));
  }

  /**
   * @param {ApiRequest} request
   * @returns {Promise<ApiResult>}
   */
  async send(request) {
    const { signal = new AbortController().signal, deadlineMs = this.#deadlineMs } = request.options;
    let leftMs = deadlineMs;
    for (let attempt = 1; ; attempt++) {
      const event = { method: request.method, url: this.#baseUrl + request.path, attempt };
      await this.#limiter?.acquire(signal);
      const startedAt = Date.now();
      const outcome = await this.#attempt({ request, event, signal, leftMs });
      leftMs -= Date.now() - startedAt;
      if ("data" in outcome) return outcome;

      const { error } = outcome;
      const response = error instanceof ApiError ? error.response : undefined;
      if (error instanceof ApiError && !isRetried(error)) throw error;
      if (leftMs <= 0)
        throw new TimeoutError(`No success within ${deadlineMs} ms, ${attempt} attempts.`, { cause: error });
      const delayMs = retryDelay(attempt, response?.retryAfter);
      const isHeld = response?.status === 429 && this.#limiter !== undefined;
      if (attempt > this.#maxRetries || (!isHeld && delayMs >= leftMs)) throw error;
      this.#hooks.onRetry?.({ ...event, delayMs, error });
      if (isHeld) {
        this.#limiter?.pause(delayMs);
      } else {
        await sleep(delayMs, signal);
        leftMs -= delayMs;
      }
    }
  }

  /**
   * A failure that may be retried is a value; an abort by the caller is thrown.
   *
   * @param {{ request: ApiRequest, event: RequestEvent, signal: AbortSignal, leftMs: number }} options
   * @returns {Promise<ApiResult | { error: ApiError | ConnectionError }>}
   */
  async #attempt({ request, event, signal, leftMs }) {
    const controller = new AbortController();
    const stop = () => controller.abort(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
    const timer = setTimeout(
      () => controller.abort(new Error("The time limit passed.")),
      Math.min(this.#timeoutMs, leftMs),
    );
    /** @type {ResponseMetadata | undefined} */
    let metadata;
    try {
      signal.throwIfAborted();
      this.#hooks.onRequest?.(event);
      let text;
      let data;
      try {
        const received = await this.#fetch(event.url, this.#init(request, controller.signal));
        metadata = metadataOf(received, event.attempt);
        text = await received.text();
        if (received.ok) data = parseJson(text);
      } catch (cause) {
        signal.throwIfAborted();
        return { error: new ConnectionError(`No response from ${event.url}.`, { cause }) };
      }
      this.#hooks.onResponse?.({ ...event, response: metadata });
      this.#reportDeprecation(event, metadata.headers);
      const isSuccess = metadata.status >= 200 && metadata.status < 300;
      return isSuccess ? { data, response: metadata } : { error: apiError(text, metadata) };
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      this.#limiter?.release(metadata);
    }
  }

  /**
   * @param {ApiRequest} request
   * @param {AbortSignal} signal
   * @returns {RequestInit}
   */
  #init({ method, body, idempotencyKey }, signal) {
    /** @type {Record<string, string>} */
    const headers = { Authorization: `Bearer ${this.#key}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (idempotencyKey !== undefined) headers["Idempotency-Key"] = idempotencyKey;
    return { method, headers, signal, redirect: "manual", ...(body !== undefined && { body }) };
  }

  /**
   * @param {RequestEvent} event
   * @param {Headers} headers
   */
  #reportDeprecation({ method, url }, headers) {
    const since = headers.get("Deprecation");
    if (since === null) return;
    const sunset = headers.get("Sunset");
    const link = headers.get("Link") ?? undefined;
    const { onDeprecation } = this.#hooks;
    if (onDeprecation) {
      const sinceDate = /^@\d+$/.test(since) ? new Date(Number(since.slice(1)) * 1000) : undefined;
      onDeprecation({
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
    const removal = sunset ? ` and is removed on ${sunset}` : "";
    const page = link?.match(/<([^>]*)>; rel="deprecation"/)?.[1];
    // oxlint-disable-next-line no-console -- the warning that the documentation promises
    console.warn(`Petstore: ${operation} is deprecated${removal}.${page ? ` See ${page}` : ""}`);
  }
}

/**
 * @param {Response} response
 * @param {number} attempts
 * @returns {ResponseMetadata}
 */
function metadataOf({ status, headers }, attempts) {
  const limit = headers.get("X-RateLimit-Limit");
  const remaining = headers.get("X-RateLimit-Remaining");
  const reset = headers.get("X-RateLimit-Reset");
  const isComplete = limit !== null && remaining !== null && reset !== null;
  return {
    status,
    headers,
    requestId: headers.get("X-Request-Id") ?? undefined,
    rateLimit: isComplete
      ? { limit: Number(limit), remaining: Number(remaining), resetAt: new Date(Number(reset) * 1000) }
      : undefined,
    retryAfter: retryAfterSeconds(headers.get("Retry-After"), Date.now()),
    replayed: headers.get("Idempotent-Replayed") === "true",
    attempts,
  };
}
