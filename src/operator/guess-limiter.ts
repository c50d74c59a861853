import type { Rejection } from "../api/errors.ts";
import { sha256 } from "../runtime/hash.ts";
import type { Clock } from "../domain/ports.ts";
import { INVALID_TOKEN, tooManyAttempts } from "./errors.ts";

export type TokenRejection = Rejection<"invalid_token" | "too_many_attempts">;

/** `openssl rand -hex 20` and longer: too many possibilities to guess, however fast. */
const UNGUESSABLE_LENGTH = 40;
/** Different wrong tokens, of all clients together. */
const MAX_WRONG_TOKENS = 20;
const WINDOW_MS = 60_000;
const MAX_REMEMBERED = 100;

/**
 * After 20 wrong tokens within a minute, no token is compared until the minute is over, so that a short token cannot be
 * guessed. A token that is too long to be guessed is compared in any case: nobody who can reach the listener can keep
 * operators out. Sessions are not affected.
 *
 * A wrong token that is sent again is no new guess: a program that still has the old token after a rotation gets 401
 * and does not lock the operators out.
 */
export class GuessLimiter {
  readonly #now: () => number;
  /** Hashes of wrong tokens, oldest first. */
  readonly #wrong = new Set<string>();
  #windowEndsAt = 0;
  #wrongInWindow = 0;

  constructor(clock: Pick<Clock, "steadyNow">) {
    this.#now = () => clock.steadyNow();
  }

  /** Whether a token with this hash was wrong lately. */
  wasWrong(hash: string): boolean {
    return this.#wrong.has(hash);
  }

  /** Whose token it is, as `compare` finds; `onWrong` is called if it is nobody's, or is not compared. */
  async limit<T extends object>(
    token: string,
    compare: () => Promise<T | undefined | "unknown">,
    onWrong: () => void,
  ): Promise<T | TokenRejection> {
    const isGuessable = token.length < UNGUESSABLE_LENGTH;
    const wait = this.#blockedSeconds();
    // Counted before it is compared: guesses that are sent together are no more than 20 either.
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

  /** Until tokens are compared again; undefined if they are. */
  #blockedSeconds(): number | undefined {
    const leftMs = this.#windowEndsAt - this.#now();
    if (leftMs <= 0) this.#wrongInWindow = 0;
    return this.#wrongInWindow >= MAX_WRONG_TOKENS ? Math.ceil(leftMs / 1_000) : undefined;
  }

  #countWrong(): void {
    if (this.#wrongInWindow++ === 0) this.#windowEndsAt = this.#now() + WINDOW_MS;
  }
}
