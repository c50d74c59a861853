import { hash } from "node:crypto";
import type { Clock } from "../domain/ports.ts";
import type { AdminToken } from "./token.ts";

/** Different wrong tokens, of all clients together. */
const MAX_WRONG_TOKENS = 20;
const WINDOW_MS = 60_000;
const MAX_REMEMBERED = 100;

export type TokenCheck =
  | { readonly outcome: "right" }
  /** `isNew` is false for a wrong token that was sent before. */
  | { readonly outcome: "wrong"; readonly isNew: boolean }
  | { readonly outcome: "blocked"; readonly retryAfterSeconds: number };

/**
 * Compares tokens with the admin token. After 20 wrong ones within a minute, no token is compared until the minute is
 * over, so that a short token cannot be guessed. A token that is too long to be guessed is compared in any case: nobody
 * who can reach the listener can keep operators out. Sessions are not affected.
 *
 * A wrong token that is sent again is no new guess: a program that still has the old token after a roll gets 401 and
 * does not lock the operators out.
 */
export class TokenAttempts {
  readonly #token: AdminToken;
  readonly #clock: Pick<Clock, "steadyNow">;
  /** Hashes, oldest first. */
  readonly #wrong = new Set<string>();
  #windowEndsAt = 0;
  #wrongInWindow = 0;

  constructor(token: AdminToken, clock: Pick<Clock, "steadyNow">) {
    this.#token = token;
    this.#clock = clock;
    token.onReplace(() => this.#wrong.clear());
  }

  check(candidate: string): TokenCheck {
    const hashed = hash("sha256", candidate);
    if (this.#wrong.has(hashed)) return { outcome: "wrong", isNew: false };
    const now = this.#clock.steadyNow();
    if (now >= this.#windowEndsAt) this.#wrongInWindow = 0;
    const isBlocked = this.#wrongInWindow >= MAX_WRONG_TOKENS;
    if ((!isBlocked || this.#token.isUnguessable) && this.#token.matches(candidate))
      return { outcome: "right" };
    if (isBlocked) {
      return { outcome: "blocked", retryAfterSeconds: Math.ceil((this.#windowEndsAt - now) / 1_000) };
    }
    if (this.#wrongInWindow++ === 0) this.#windowEndsAt = now + WINDOW_MS;
    const [oldest] = this.#wrong;
    if (this.#wrong.size >= MAX_REMEMBERED && oldest !== undefined) this.#wrong.delete(oldest);
    this.#wrong.add(hashed);
    return { outcome: "wrong", isNew: true };
  }
}
