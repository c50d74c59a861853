import { Unavailable } from "../contract/errors.ts";
import { type ApiKey, type Environment, hashSecret, isPlausibleSecret, validUntil } from "../domain/keys.ts";
import type { Limits, Subject } from "../domain/limits.ts";
import { limitsOf, type Plans } from "../domain/plans.ts";
import type { Awaitable, Clock, KeyStore } from "../domain/ports.ts";
import { andThen } from "./awaitable.ts";

/** A key that may call. */
export interface Caller {
  readonly keyId: number;
  readonly subject: Subject;
  readonly limits: Limits;
  readonly validUntil: number;
  /** The revision of the keys at which this was read. */
  readonly revision: number;
}

/** Why a request has no caller. */
export type Stranger = "missing_api_key" | "invalid_api_key" | Unavailable;

const BEARER = /^bearer(?: +(.*))?$/i;
const MAX_KNOWN = 1_000_000;
const MAX_STRANGERS = 10_000;
/** The scheme, a blank and a secret take 52 characters; any number of blanks would do, and take up memory. */
const MAX_LENGTH = 60;

/**
 * From `Authorization` to the caller. A key that was seen before costs one look-up in a Map, by the header's value as
 * it came. What was learned is forgotten when the key changes, and `follow` brings the changes made elsewhere.
 */
export class Callers {
  readonly #known = new Map<string, Caller>();
  /** Keys that changed while this process ran, with the revision of the change. */
  readonly #changedAt = new Map<number, number>();
  readonly #strangers = new Set<string>();
  #strangersAt = -1;
  #revision: number;

  private constructor(
    private readonly options: { keys: KeyStore; environment: Environment; plans: Plans; clock: Clock },
    revision: number,
  ) {
    this.#revision = revision;
  }

  static async open(options: { keys: KeyStore; environment: Environment; plans: Plans; clock: Clock }) {
    const { revision } = await options.keys.changesSince(Number.MAX_SAFE_INTEGER);
    return new Callers(options, revision);
  }

  find(authorization: string | null): Awaitable<Caller | Stranger> {
    if (authorization === null) return "missing_api_key";
    const known = this.#known.get(authorization);
    if (known === undefined || this.#isStale(known)) return this.#learn(authorization);
    return this.options.clock.now() < known.validUntil ? known : "invalid_api_key";
  }

  #isStale({ keyId, revision }: Caller): boolean {
    return this.#changedAt.size > 0 && (this.#changedAt.get(keyId) ?? 0) > revision;
  }

  /** Strangers are remembered until any key changes: a secret that nobody has does not become one meanwhile. */
  #isKnownStranger(authorization: string): boolean {
    if (this.#strangersAt !== this.#revision) {
      this.#strangers.clear();
      this.#strangersAt = this.#revision;
    }
    return this.#strangers.has(authorization);
  }

  #learn(authorization: string): Awaitable<Caller | Stranger> {
    if (this.#isKnownStranger(authorization)) return "invalid_api_key";
    const secret = BEARER.exec(authorization)?.[1];
    if (secret === undefined || secret === "") return "missing_api_key";
    const { keys, environment, plans, clock } = this.options;
    if (!isPlausibleSecret(secret, environment)) return "invalid_api_key";

    const revision = this.#revision;
    const found = unlessUnavailable(() => keys.findCredential(hashSecret(secret)));
    return andThen(found, (credential) => {
      this.#known.delete(authorization);
      if (credential instanceof Unavailable) return credential;
      if (credential === undefined || clock.now() >= validUntil(credential)) {
        if (revision === this.#revision) this.#rememberStranger(authorization);
        return "invalid_api_key";
      }
      const { key } = credential;
      const caller: Caller = {
        keyId: key.id,
        subject: `key:${key.id}`,
        limits: limitsOf(key, plans),
        validUntil: validUntil(credential),
        revision,
      };
      this.#remember(authorization, caller);
      return caller;
    });
  }

  #rememberStranger(authorization: string): void {
    if (this.#strangers.size < MAX_STRANGERS && authorization.length <= MAX_LENGTH)
      this.#strangers.add(authorization);
  }

  #remember(authorization: string, caller: Caller): void {
    if (authorization.length > MAX_LENGTH) return;
    if (this.#known.size >= MAX_KNOWN) {
      for (const oldest of this.#known.keys()) {
        this.#known.delete(oldest);
        break;
      }
    }
    this.#known.set(authorization, caller);
  }

  /** Learns what changed since the last call; returns the keys that did. */
  async follow(): Promise<readonly ApiKey[]> {
    const { revision, changed } = await this.options.keys.changesSince(this.#revision);
    for (const key of changed) this.#changedAt.set(key.id, revision);
    this.#revision = revision;
    return changed;
  }
}

/** An engine that is gone makes a stranger of a key not seen before; it is no reason to fail before the limits. */
function unlessUnavailable<T>(work: () => Awaitable<T>): Awaitable<T | Unavailable> {
  try {
    const result = work();
    return result instanceof Promise ? result.catch(onlyUnavailable) : result;
  } catch (error) {
    return onlyUnavailable(error);
  }
}

function onlyUnavailable(error: unknown): Unavailable {
  if (error instanceof Unavailable) return error;
  throw error;
}
