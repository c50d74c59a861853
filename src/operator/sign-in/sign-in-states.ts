import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Environment } from "../../domain/environments.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { MINUTE_MS } from "../../text/time-units.ts";

/** How long after its beginning a sign-in ends without a limit. People may need a second device. */
const VALID_MS = 10 * MINUTE_MS;
/** How much the clocks of two servers may differ. */
const CLOCK_TOLERANCE_MS = MINUTE_MS / 2;
/** More than a server lets begin within the time. */
const MAX_USED = 20_000;

const STATE = /^(?<beginning>[\w-]{22}\.(?<time>[0-9a-z]{1,9}))\.(?<mac>[\w-]{43})$/;

interface Options {
  /** Returns the secret of the client, which all servers of the environment have. */
  readonly secret: () => string;
  readonly environment: Environment;
  readonly clock: Clock;
}

/**
 * The states of sign-ins with the provider. Nothing of a sign-in in progress is stored: a MAC shows that a server of
 * this environment has made the state, and when.
 */
export class SignInStates {
  readonly #options: Options;
  /** When the states that came back can be forgotten, by the steady clock, the oldest first. */
  readonly #used = new Map<string, number>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Makes a state, which nobody can guess. */
  create(): string {
    const beginning = `${randomBytes(16).toString("base64url")}.${this.#options.clock.now().toString(36)}`;
    return `${beginning}.${this.#mac(beginning)}`;
  }

  /** Whether a server of this environment has made the state within ten minutes. It is true once for each state. */
  take(state: string): boolean {
    const { clock } = this.#options;
    const { beginning = "", time = "", mac = "" } = STATE.exec(state)?.groups ?? {};
    const ageMs = clock.now() - Number.parseInt(time, 36);
    if (!(ageMs >= -CLOCK_TOLERANCE_MS && ageMs < VALID_MS)) return false;
    if (!timingSafeEqual(Buffer.from(mac), Buffer.from(this.#mac(beginning)))) return false;
    const now = clock.steadyNow();
    for (const [each, end] of this.#used) {
      if (now < end) break;
      this.#used.delete(each);
    }
    if (this.#used.has(state) || this.#used.size >= MAX_USED) return false;
    this.#used.set(state, now + VALID_MS + CLOCK_TOLERANCE_MS);
    return true;
  }

  #mac(beginning: string): string {
    const { secret, environment } = this.#options;
    return createHmac("sha256", secret())
      .update(`sign-in state of petstore ${environment}: ${beginning}`)
      .digest("base64url");
  }
}
