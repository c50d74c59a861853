import type { Verdict } from "../domain/limits.ts";
import { matches } from "./etag.ts";
import type { HeaderFields } from "./replies.ts";

/**
 * An answer that is sent many times over. A `Headers` that exists is copied into a Response in a sixth of the time
 * that it takes to make one from fields, so it is kept, and only what differs from the time before is set.
 */
export class Template {
  readonly #headers: Headers;
  readonly #init: ResponseInit;
  readonly #notModified: ResponseInit;
  #limit = -1;
  #remaining = -1;
  #resetAt = -1;
  #retryAfter = 0;

  constructor(
    private readonly body: string,
    options: { status: number; headers: HeaderFields },
  ) {
    this.#headers = new Headers({ "Content-Type": "application/json", ...options.headers });
    // 200 is what a Response is by itself; saying so costs a microsecond.
    this.#init = options.status === 200 ? { headers: this.#headers } : { ...options, headers: this.#headers };
    this.#notModified = { status: 304, headers: this.#headers };
  }

  reply(verdict: Verdict): Response {
    this.#stand(verdict);
    return new Response(this.body, this.#init);
  }

  /** 304 when the client has this already. */
  replyUnlessKnown(verdict: Verdict, ifNoneMatch: string | null, etag: string): Response {
    if (!matches(ifNoneMatch, etag)) return this.reply(verdict);
    this.#stand(verdict);
    const response = new Response(null, this.#notModified);
    response.headers.delete("Content-Type");
    return response;
  }

  #stand({ limit, remaining, resetAt, retryAfter }: Verdict): void {
    if (limit !== this.#limit) this.#headers.set("X-RateLimit-Limit", `${(this.#limit = limit)}`);
    if (remaining !== this.#remaining) {
      this.#headers.set("X-RateLimit-Remaining", `${(this.#remaining = remaining)}`);
    }
    if (resetAt !== this.#resetAt) this.#headers.set("X-RateLimit-Reset", `${(this.#resetAt = resetAt)}`);
    if (retryAfter !== this.#retryAfter)
      this.#headers.set("Retry-After", `${(this.#retryAfter = retryAfter)}`);
  }
}
