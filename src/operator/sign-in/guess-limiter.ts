import { MINUTE_MS } from "../../text/time-units.ts";
import type { Rejection } from "../../api/errors.ts";
import { BoundedMap } from "../../runtime/bounded-map.ts";
import { sha256 } from "../../runtime/hash.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { INVALID_TOKEN, tooManyAttempts } from "../errors.ts";

export type TokenRejection = Rejection<"invalid_token" | "too_many_attempts">;

/** The length of `openssl rand -hex 20`. Tokens of this length or more have too many possibilities to be guessed. */
const UNGUESSABLE_LENGTH = 40;
/** The number of different wrong tokens within a minute: from one address, and from all together. */
const MAX_WRONG_OF_ADDRESS = 20;
const MAX_WRONG = 200;
const MAX_ADDRESSES = 10_000;
const WINDOW_MS = MINUTE_MS;
const MAX_REMEMBERED = 100;

/** A minute, and the wrong tokens in it. */
class Window {
  #endsAt = 0;
  #wrong = 0;

  constructor(
    private readonly max: number,
    private readonly now: () => number,
  ) {}

  /** The seconds until tokens are compared again; 0 if they are compared now. */
  get blockedSeconds(): number {
    const leftMs = this.#endsAt - this.now();
    if (leftMs <= 0) this.#wrong = 0;
    return this.#wrong >= this.max ? Math.ceil(leftMs / 1_000) : 0;
  }

  count(): void {
    if (this.#wrong++ === 0) this.#endsAt = this.now() + WINDOW_MS;
  }

  uncount(): void {
    this.#wrong = Math.max(0, this.#wrong - 1);
  }
}

interface Comparison<Data, Owner> {
  /** Applies a comparison to data until it finds something. */
  readonly find: (
    compare: (data: Data) => Owner | TokenRejection | undefined,
  ) => Promise<Owner | TokenRejection | undefined>;
  /** Who sends the token. */
  readonly address: string;
  readonly compare: (data: Data) => Owner | undefined;
  readonly onWrong: () => void;
}

/**
 * Limits how many tokens can be guessed. After 20 wrong tokens of an address within a minute, or 200 of all, no token
 * is compared until the minute is over, so that a short token cannot be guessed. A token that is too long to be guessed
 * is always compared, so that nobody who can reach the listener can lock operators out. Sessions are not affected.
 *
 * A wrong token that is sent again counts once: a program that still has the old token after a rotation gets 401
 * responses and does not lock the operators out.
 */
export class GuessLimiter {
  readonly #now: () => number;
  /** The hashes of wrong tokens. */
  readonly #wrong = new BoundedMap<string, true>(MAX_REMEMBERED);
  readonly #windows = new BoundedMap<string, Window>(MAX_ADDRESSES);
  readonly #all: Window;

  constructor(clock: Pick<Clock, "steadyNow">) {
    this.#now = () => clock.steadyNow();
    this.#all = new Window(MAX_WRONG, this.#now);
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
    { address, find, compare, onWrong }: Comparison<Data, Owner>,
  ): Promise<Owner | TokenRejection> {
    const isGuessable = token.length < UNGUESSABLE_LENGTH;
    const windows = [this.#windowOf(address), this.#all];
    const guess = { isCounted: false, waitSeconds: 0 };
    const owner = await find((data) => {
      if (!guess.isCounted) guess.waitSeconds = Math.max(...windows.map((each) => each.blockedSeconds));
      const { waitSeconds, isCounted } = guess;
      if (isGuessable && waitSeconds > 0) return tooManyAttempts(waitSeconds);
      const found = compare(data);
      const isWrong = waitSeconds === 0 && found === undefined;
      if (isWrong && !isCounted) for (const each of windows) each.count();
      if (found !== undefined && isCounted) for (const each of windows) each.uncount();
      guess.isCounted = isWrong;
      return found;
    });
    if (owner !== undefined) return owner;
    onWrong();
    if (guess.waitSeconds > 0) return tooManyAttempts(guess.waitSeconds);
    this.#wrong.set(sha256(token), true);
    return INVALID_TOKEN;
  }

  #windowOf(address: string): Window {
    const window = this.#windows.get(address) ?? new Window(MAX_WRONG_OF_ADDRESS, this.#now);
    this.#windows.set(address, window);
    return window;
  }
}
