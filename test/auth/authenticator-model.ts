import { type Credential, hashSecret, isWellFormedSecret, validUntil } from "../../src/domain/api-keys.ts";
import { limitsOf, type Plans } from "../../src/domain/plans.ts";
import type { Clock } from "../../src/domain/ports.ts";
import type { ApiKeyPrincipal, AuthFailure } from "../../src/auth/authenticator.ts";
import type { MapKeyStore } from "./map-key-store.ts";

/** A longer header is not cached when it is rejected. */
const MAX_REJECTED_LENGTH = 60;

/** Authentication in the plainest way: Maps, and every header is parsed each time. */
export class ModelAuthenticator {
  /** How often the store should be asked. */
  lookUps = 0;
  readonly #verified = new Map<string, Credential>();
  readonly #rejected = new Set<string>();
  #revision: number;

  constructor(private readonly options: { keys: MapKeyStore; plans: Plans; clock: Pick<Clock, "now"> }) {
    this.#revision = options.keys.changesSince(0).revision;
  }

  authenticate(authorization: string | null): ApiKeyPrincipal | AuthFailure {
    const secret = secretIn(authorization);
    if (authorization === null || secret === "") return "missing_api_key";
    if (!isWellFormedSecret(secret, "production")) return "invalid_api_key";
    if (!this.#verified.has(secret) && !this.#rejected.has(authorization))
      this.#lookUp(secret, authorization);
    return this.#principal(this.#verified.get(secret));
  }

  /** What the result is without any cache. */
  authenticateWithoutCache(authorization: string | null): ApiKeyPrincipal | AuthFailure {
    const secret = secretIn(authorization);
    if (secret === "") return "missing_api_key";
    if (!isWellFormedSecret(secret, "production")) return "invalid_api_key";
    return this.#principal(this.options.keys.peek(hashSecret(secret)));
  }

  followChanges(): void {
    const { revision, changed } = this.options.keys.changesSince(this.#revision);
    for (const { id } of changed) {
      for (const [secret, { key }] of this.#verified) if (key.id === id) this.#verified.delete(secret);
    }
    if (revision !== this.#revision) this.#rejected.clear();
    this.#revision = revision;
  }

  #lookUp(secret: string, authorization: string): void {
    this.lookUps++;
    const credential = this.options.keys.peek(hashSecret(secret));
    if (credential) this.#verified.set(secret, credential);
    else if (authorization.length <= MAX_REJECTED_LENGTH) this.#rejected.add(authorization);
  }

  #principal(credential: Credential | undefined): ApiKeyPrincipal | AuthFailure {
    const { clock, plans } = this.options;
    if (credential === undefined || clock.now() >= validUntil(credential)) return "invalid_api_key";
    const { id, plan, access } = credential.key;
    const limits = limitsOf(credential.key, plans);
    return { keyId: id, subject: { kind: "key", id }, plan, limits, access };
  }
}

/** Empty without a secret. */
function secretIn(authorization: string | null): string {
  const [scheme = "", ...rest] = authorization?.split(" ") ?? [];
  return scheme.toLowerCase() === "bearer" ? rest.join(" ").trimStart() : "";
}
