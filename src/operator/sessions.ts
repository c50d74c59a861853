import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../domain/ports.ts";
import type { AdminToken } from "./token.ts";

export const SESSION_MS = 12 * 60 * 60 * 1000;
/** Sessions that were ended before their time. Of more, the oldest is forgotten. */
const MAX_ENDED = 10_000;
const VALUE = /^(\d{1,16})\.([\w-]{22})\.([\w-]{43})$/;

/**
 * Sessions of browsers. The value of the cookie is the time at which the session ends, a random identifier and a
 * signature by the admin token. So sessions need no storage, survive a restart, and end when the token is replaced.
 */
export class Sessions {
  readonly #token: AdminToken;
  readonly #clock: Pick<Clock, "now">;
  /** When the session would have ended anyway, by its identifier. */
  readonly #ended = new Map<string, number>();

  constructor(token: AdminToken, clock: Pick<Clock, "now">) {
    this.#token = token;
    this.#clock = clock;
  }

  /** The value of a new cookie. */
  create(): string {
    const signed = `${this.#clock.now() + SESSION_MS}.${randomBytes(16).toString("base64url")}`;
    return `${signed}.${this.#token.sign(signed)}`;
  }

  isValid(value: string): boolean {
    const session = this.#parse(value);
    return session !== undefined && !this.#ended.has(session.id);
  }

  end(value: string): void {
    const session = this.#parse(value);
    if (session === undefined) return;
    if (this.#ended.size >= MAX_ENDED) this.#forgetOldest();
    this.#ended.set(session.id, session.endsAt);
  }

  /** Undefined if the session is over or was not made with this token. */
  #parse(value: string): { readonly id: string; readonly endsAt: number } | undefined {
    const match = VALUE.exec(value);
    if (match === null) return undefined;
    const [, endsAtText = "", id = "", signature = ""] = match;
    const endsAt = Number(endsAtText);
    const expected = Buffer.from(this.#token.sign(`${endsAtText}.${id}`));
    const given = Buffer.from(signature);
    const isSigned = given.length === expected.length && timingSafeEqual(given, expected);
    return isSigned && this.#clock.now() < endsAt ? { id, endsAt } : undefined;
  }

  #forgetOldest(): void {
    const now = this.#clock.now();
    for (const [id, endsAt] of this.#ended) if (endsAt <= now) this.#ended.delete(id);
    const [oldest] = this.#ended.keys();
    if (this.#ended.size >= MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
  }
}
