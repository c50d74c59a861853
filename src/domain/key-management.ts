import { formatTime } from "../api/formatting.ts";
import {
  type ApiKey,
  type Credential,
  type Environment,
  ENVIRONMENTS,
  generateSecret,
  hashSecret,
  isWellFormedSecret,
  type NewKey,
  toNewSecret,
} from "./api-keys.ts";
import type { Actor, Attribution } from "./audit.ts";
import { invalidKeyField, type InvalidKeyField } from "./key-fields.ts";
import type { Clock, KeyChange, KeyStore, RateLimiter } from "./ports.ts";

export interface KeyManagementOptions {
  readonly keys: KeyStore;
  readonly clock: Pick<Clock, "now">;
  readonly environment: Environment;
  /** Who makes the changes, for the audit trail. */
  readonly actor: Actor;
  /** Ends a ban at once. Every server also ends it when it sees the change in the key store. */
  readonly rateLimiter?: Pick<RateLimiter, "unban">;
}

/** An expected failure. The message has no capital and no full stop: `key 7 does not exist`. */
export type KeyFailure =
  | InvalidKeyField
  | {
      readonly code: "key_not_found" | "key_revoked" | "key_expired" | "unknown_secret";
      readonly message: string;
    };

export function isKeyFailure(value: object): value is KeyFailure {
  return "code" in value;
}

export type KeyDraft = Omit<NewKey, "createdAt">;
/** Null removes the value. */
export type KeyEdit = Omit<KeyChange, "revokedAt" | "unbannedAt" | "disabledAt">;

/** The secret is shown once; only its hash is stored. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly secret: string;
}

export interface RotatedKey extends IssuedKey {
  /** From then on the previous secrets do not work. */
  readonly overlapEndsAt: number;
}

export const MAX_OVERLAP_MS = 30 * 24 * 3_600_000;

/** An edit of these needs a key that works; the other fields only describe the key. */
const ACTIVE_FIELDS = ["plan", "limits", "access", "expiresAt"] as const;

/** What operators do with keys, on the command line and through the admin API alike. */
export class KeyManagement {
  constructor(private readonly options: KeyManagementOptions) {}

  async create(draft: KeyDraft): Promise<IssuedKey | KeyFailure> {
    const { keys, environment } = this.options;
    const by = this.#attribution();
    const invalid = invalidKeyField(draft, { now: by.at });
    if (invalid) return invalid;
    const secret = generateSecret(environment);
    const key = await keys.createKey({ ...draft, createdAt: by.at }, toNewSecret(secret), by);
    return { key, secret };
  }

  /**
   * A revoked key keeps its plan, access and expiry; an expired key too, unless the edit moves the expiry. `change`
   * completes "the key cannot be …".
   */
  async update(id: number, edit: KeyEdit, change = "changed"): Promise<ApiKey | KeyFailure> {
    const by = this.#attribution();
    const key = await this.#find(id);
    if (isKeyFailure(key)) return key;
    const invalid = invalidKeyField(edit, { now: by.at, key });
    if (invalid) return invalid;
    if (ACTIVE_FIELDS.some((field) => edit[field] !== undefined)) {
      const { expiresAt = key.expiresAt } = edit;
      const inactive = inactiveKey({ ...key, expiresAt }, by.at, change);
      if (inactive) return inactive;
    }
    return this.options.keys.updateKey(id, edit, by);
  }

  /** The previous secrets work for `overlapMs` more. */
  async rotate(id: number, overlapMs: number): Promise<RotatedKey | KeyFailure> {
    const by = this.#attribution();
    const key = await this.#findActive(id, by.at, "rotated");
    if (isKeyFailure(key)) return key;
    const secret = generateSecret(this.options.environment);
    // 0 is in the past on every machine, also where the clock is behind.
    const overlapEndsAt = overlapMs === 0 ? 0 : by.at + overlapMs;
    await this.options.keys.addSecret(id, { ...toNewSecret(secret), overlapEndsAt }, by);
    return { key, secret, overlapEndsAt: by.at + overlapMs };
  }

  /** A key that is already revoked stays as it is. */
  async revoke(id: number): Promise<{ key: ApiKey; wasRevoked: boolean } | KeyFailure> {
    const by = this.#attribution();
    const key = await this.#find(id);
    if (isKeyFailure(key)) return key;
    if (key.revokedAt !== undefined) return { key, wasRevoked: true };
    return { key: await this.options.keys.updateKey(id, { revokedAt: by.at }, by), wasRevoked: false };
  }

  /** A key that is disabled, or enabled, already stays as it is. */
  async setDisabled(id: number, isDisabled: boolean): Promise<ApiKey | KeyFailure> {
    const by = this.#attribution();
    const key = await this.#findActive(id, by.at, isDisabled ? "disabled" : "enabled");
    if (isKeyFailure(key) || (key.disabledAt !== undefined) === isDisabled) return key;
    return this.options.keys.updateKey(id, { disabledAt: isDisabled ? by.at : null }, by);
  }

  async unban(id: number): Promise<ApiKey | KeyFailure> {
    const by = this.#attribution();
    const key = await this.#findActive(id, by.at, "unbanned");
    if (isKeyFailure(key)) return key;
    const unbanned = await this.options.keys.updateKey(id, { unbannedAt: by.at }, by);
    await this.options.rateLimiter?.unban({ kind: "key", id }, 0);
    return unbanned;
  }

  /** The key of a secret, also if the secret or the key no longer works. */
  async findBySecret(secret: string): Promise<Credential | KeyFailure> {
    const { keys, environment } = this.options;
    const home = ENVIRONMENTS.find((each) => isWellFormedSecret(secret, each));
    if (home === undefined) {
      return { code: "unknown_secret", message: "this is not an API key; it is mistyped or incomplete" };
    }
    const credential = home === environment ? await keys.findCredential(hashSecret(secret)) : undefined;
    if (credential) return credential;
    const message =
      home === environment ? `no key in ${environment} has this secret` : `this is an API key of ${home}`;
    return { code: "unknown_secret", message };
  }

  #attribution(): Attribution {
    return { actor: this.options.actor, at: this.options.clock.now() };
  }

  async #find(id: number): Promise<ApiKey | KeyFailure> {
    const key = await this.options.keys.getKey(id);
    return key ?? { code: "key_not_found", message: `key ${id} does not exist` };
  }

  async #findActive(id: number, now: number, change: string): Promise<ApiKey | KeyFailure> {
    const key = await this.#find(id);
    return isKeyFailure(key) ? key : (inactiveKey(key, now, change) ?? key);
  }
}

function inactiveKey(
  { id, revokedAt, expiresAt }: Omit<ApiKey, "expiresAt"> & { expiresAt?: number | null | undefined },
  now: number,
  change: string,
): KeyFailure | undefined {
  const rest = `and cannot be ${change}; create a new key`;
  if (revokedAt !== undefined) {
    return { code: "key_revoked", message: `key ${id} was revoked at ${formatTime(revokedAt)} ${rest}` };
  }
  if (expiresAt === undefined || expiresAt === null || now < expiresAt) return undefined;
  return { code: "key_expired", message: `key ${id} expired at ${formatTime(expiresAt)} ${rest}` };
}
