import type { Rejection } from "../api/errors.ts";
import { sha256 } from "../runtime/hash.ts";
import type { Clock } from "../domain/ports.ts";
import { INVALID_TOKEN, tooManyAttempts } from "./errors.ts";

export type TokenRejection = Rejection<"invalid_token" | "too_many_attempts">;

/** The length of `openssl rand -hex 20`. Tokens of this length or more have too many possibilities to be guessed. */
const UNGUESSABLE_LENGTH = 40;
/** The number of different wrong tokens, from all clients together, within a minute. */
const MAX_WRONG_TOKENS = 20;
const WINDOW_MS = 60_000;
const MAX_REMEMBERED = 100;

/**
 * Limits how many tokens can be guessed. After 20 wrong tokens within a minute, no token is compared until the minute
 * is over, so that a short token cannot be guessed. A token that is too long to be guessed is always compared, so that
 * nobody who can reach the listener can lock operators out. Sessions are not affected.
 *
 * A wrong token that is sent again counts once: a program that still has the old token after a rotation gets 401
 * responses and does not lock the operators out.
 */
export class GuessLimiter {
  readonly #now: () => number;
  /** The hashes of wrong tokens, oldest first. */
  readonly #wrong = new Set<string>();
  #windowEndsAt = 0;
  #wrongInWindow = 0;

  constructor(clock: Pick<Clock, "steadyNow">) {
    this.#now = () => clock.steadyNow();
  }

  /** Whether a token with this hash was wrong recently. */
  wasWrong(hash: string): boolean {
    return this.#wrong.has(hash);
  }

  /**
   * Returns the owner of a token, whom `compare` finds. Calls `onWrong` if the token has no owner or is not compared.
   */
  async limit<T extends object>(
    token: string,
    compare: () => Promise<T | undefined | "unknown">,
    onWrong: () => void,
  ): Promise<T | TokenRejection> {
    const isGuessable = token.length < UNGUESSABLE_LENGTH;
    const wait = this.#blockedSeconds();
    // The token is counted before it is compared, so that guesses that are sent together are limited to 20 as well.
    if (isGuessable && wait === undefined) this.#countWrong();
    const isCompared = !isGuessable || wait === undefined;
    const holder = isCompared ? await compare() : undefined;
    if (holder === "unknown") return tooManyAttempts(1);
    if (holder !== undefined) {
      if (isGuessable) this.#wrongInWindow--;
      return holder;
    }
    onWrong();
    if (wait !== undefined) return tooManyAttempts(wait);
    if (!isGuessable) this.#countWrong();
    const [oldest] = this.#wrong;
    if (this.#wrong.size >= MAX_REMEMBERED && oldest !== undefined) this.#wrong.delete(oldest);
    this.#wrong.add(sha256(token));
    return INVALID_TOKEN;
  }

  /** The seconds until tokens are compared again; undefined if they are compared now. */
  #blockedSeconds(): number | undefined {
    const leftMs = this.#windowEndsAt - this.#now();
    if (leftMs <= 0) this.#wrongInWindow = 0;
    return this.#wrongInWindow >= MAX_WRONG_TOKENS ? Math.ceil(leftMs / 1_000) : undefined;
  }

  #countWrong(): void {
    if (this.#wrongInWindow++ === 0) this.#windowEndsAt = this.#now() + WINDOW_MS;
  }
}
