import { type Credential, hashSecret, isWellFormedSecret, validUntil } from "../../src/domain/api-keys.ts";
import { limitsOf, type Plans } from "../../src/domain/plans.ts";
import type { Clock } from "../../src/domain/ports.ts";
import type { ApiKeyPrincipal, AuthFailure } from "../../src/auth/authenticator.ts";
import type { MapKeys } from "./map-keys.ts";

/** A header longer than this is not remembered as a stranger's. */
const MAX_STRANGER_LENGTH = 60;

/** Finding callers in a way that is obviously right: plain Maps, and every header is taken apart each time. */
export class CallersModel {
  /** How often the store would have been asked. */
  reads = 0;
  readonly #known = new Map<string, Credential>();
  readonly #strangers = new Set<string>();
  #revision: number;

  constructor(private readonly options: { keys: MapKeys; plans: Plans; clock: Clock }) {
    this.#revision = options.keys.changesSince(0).revision;
  }

  find(authorization: string | null): ApiKeyPrincipal | AuthFailure {
    const secret = secretIn(authorization);
    if (authorization === null || secret === "") return "missing_api_key";
    if (!isWellFormedSecret(secret, "production")) return "invalid_api_key";
    if (!this.#known.has(secret) && !this.#strangers.has(authorization)) this.#learn(secret, authorization);
    return this.#answer(this.#known.get(secret));
  }

  /** What the store itself would say of the header now, if nothing were ever remembered. */
  truth(authorization: string | null): ApiKeyPrincipal | AuthFailure {
    const secret = secretIn(authorization);
    if (secret === "") return "missing_api_key";
    if (!isWellFormedSecret(secret, "production")) return "invalid_api_key";
    return this.#answer(this.options.keys.peek(hashSecret(secret)));
  }

  follow(): void {
    const { revision, changed } = this.options.keys.changesSince(this.#revision);
    for (const { id } of changed) {
      for (const [secret, { key }] of this.#known) if (key.id === id) this.#known.delete(secret);
    }
    if (revision !== this.#revision) this.#strangers.clear();
    this.#revision = revision;
  }

  #learn(secret: string, authorization: string): void {
    this.reads++;
    const credential = this.options.keys.peek(hashSecret(secret));
    if (credential && this.options.clock.now() < validUntil(credential)) this.#known.set(secret, credential);
    else if (authorization.length <= MAX_STRANGER_LENGTH) this.#strangers.add(authorization);
  }

  #answer(credential: Credential | undefined): ApiKeyPrincipal | AuthFailure {
    const { clock, plans } = this.options;
    if (credential === undefined || clock.now() >= validUntil(credential)) return "invalid_api_key";
    const { key } = credential;
    return { keyId: key.id, subject: `key:${key.id}`, limits: limitsOf(key, plans) };
  }
}

/** Empty when there is none. */
function secretIn(authorization: string | null): string {
  const [scheme = "", ...rest] = authorization?.split(" ") ?? [];
  return scheme.toLowerCase() === "bearer" ? rest.join(" ").trimStart() : "";
}
