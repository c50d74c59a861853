import type { Verdict } from "../domain/limits.ts";
import { type Condition, isKnown } from "./condition.ts";
import type { HeaderFields } from "./replies.ts";

const NO_FIELDS: HeaderFields = {};

/**
 * The headers of answers that are alike. A `Headers` that exists is copied into a Response in a sixth of the time that
 * it takes to make one from fields; so it is kept, and only what differs from the answer before is put into it.
 */
export class Template {
  readonly #init: ResponseInit;
  readonly #headers: Headers;
  readonly #common: HeaderFields;
  #ownFields = NO_FIELDS;
  #etag = "";
  #limit = -1;
  #remaining = -1;
  #resetAt = -1;
  #retryAfter = 0;

  /** `fields` are common to all of the answers. */
  constructor(status: number, fields: HeaderFields = NO_FIELDS) {
    this.#common = fields;
    this.#headers = new Headers({ "Content-Type": "application/json", ...fields });
    // 200 is what a Response is by itself; saying so costs a microsecond.
    this.#init = status === 200 ? { headers: this.#headers } : { status, headers: this.#headers };
  }

  /** `fields` belong to the answers from here on; those of the answers before are gone. */
  dress(fields: HeaderFields = NO_FIELDS): this {
    if (fields === this.#ownFields) return this;
    for (const name in this.#ownFields) if (!(name in fields)) this.#put(name, this.#common[name]);
    for (const name in fields) this.#put(name, fields[name]);
    this.#ownFields = fields;
    return this;
  }

  reply(body: string, verdict: Verdict): Response {
    this.#stand(verdict);
    return new Response(body, this.#init);
  }

  /** With the ETag; 304 when the client has this already. */
  replyUnlessKnown(body: string, verdict: Verdict, condition: Condition): Response {
    const { etag } = condition;
    if (etag !== this.#etag) this.#headers.set("ETag", (this.#etag = etag));
    if (!isKnown(condition)) return this.reply(body, verdict);
    this.#stand(verdict);
    const response = new Response(null, { status: 304, headers: this.#headers });
    response.headers.delete("Content-Type");
    return response;
  }

  #stand({ limit, remaining, resetAt, retryAfter }: Verdict): void {
    if (limit !== this.#limit) this.#headers.set("X-RateLimit-Limit", `${(this.#limit = limit)}`);
    if (remaining !== this.#remaining) {
      this.#headers.set("X-RateLimit-Remaining", `${(this.#remaining = remaining)}`);
    }
    if (resetAt !== this.#resetAt) this.#headers.set("X-RateLimit-Reset", `${(this.#resetAt = resetAt)}`);
    if (retryAfter !== this.#retryAfter) {
      this.#put("Retry-After", retryAfter === 0 ? undefined : `${retryAfter}`);
      this.#retryAfter = retryAfter;
    }
  }

  #put(name: string, value: string | undefined): void {
    if (value === undefined) this.#headers.delete(name);
    else this.#headers.set(name, value);
  }
}
