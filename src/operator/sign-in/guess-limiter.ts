import { MINUTE_MS } from "../../text/time-units.ts";
import type { Rejection } from "../../api/errors.ts";
import { BoundedMap } from "../../runtime/bounded-map.ts";
import { sha256 } from "../../runtime/hash.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { INVALID_TOKEN, tooManyAttempts } from "../errors.ts";

export type TokenRejection = Rejection<"invalid_token" | "too_many_attempts">;

/** The length of `openssl rand -hex 20`. Tokens of this length or more have too many possibilities to be guessed. */
const UNGUESSABLE_LENGTH = 40;
/** The number of different wrong tokens, from all clients together, within a minute. */
const MAX_WRONG_TOKENS = 20;
const WINDOW_MS = MINUTE_MS;
const MAX_REMEMBERED = 100;

interface Comparison<Data, Owner> {
  /** Applies a comparison to data until it finds something. "unknown" means that newer data could not be read. */
  readonly find: (
    compare: (data: Data) => Owner | TokenRejection | undefined,
  ) => Promise<Owner | TokenRejection | undefined | "unknown">;
  readonly compare: (data: Data) => Owner | undefined;
  readonly onWrong: () => void;
}

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
  /** The hashes of wrong tokens. */
  readonly #wrong = new BoundedMap<string, true>(MAX_REMEMBERED);
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
   * Returns the owner of a token, whom `compare` finds in what `find` reads; `find` may read newer data and compare
   * again. Calls `onWrong` if the token has no owner.
   *
   * A wrong token is counted in the same turn of the event loop as it is compared: of guesses that are sent together 20
   * are compared, and tokens that are right are never counted.
   */
  async limit<Data, Owner extends object>(
    token: string,
    { find, compare, onWrong }: Comparison<Data, Owner>,
  ): Promise<Owner | TokenRejection> {
    const isGuessable = token.length < UNGUESSABLE_LENGTH;
    const guess: { isCounted: boolean; wait?: number | undefined } = { isCounted: false };
    const owner = await find((data) => {
      if (!guess.isCounted) guess.wait = this.#blockedSeconds();
      const { wait, isCounted } = guess;
      if (isGuessable && wait !== undefined) return tooManyAttempts(wait);
      const found = compare(data);
      if (wait === undefined && found === undefined && !isCounted) this.#countWrong();
      if (found !== undefined && isCounted) this.#wrongInWindow = Math.max(0, this.#wrongInWindow - 1);
      guess.isCounted = wait === undefined && found === undefined;
      return found;
    });
    if (owner === "unknown") return tooManyAttempts(1);
    if (owner !== undefined) return owner;
    onWrong();
    if (guess.wait !== undefined) return tooManyAttempts(guess.wait);
    this.#wrong.set(sha256(token), true);
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
