import type { Awaitable } from "../../runtime/awaitable.ts";
import type { ApiKey, Credential, KeyChange, KeySecret, NewKey } from "../api-keys.ts";
import type { KeyList, KeyListQuery } from "../key-lists.ts";
import type { NewSecret } from "../secrets.ts";
import type { Attribution } from "../audit.ts";

/**
 * API keys. Every change increments the revision. Revisions become visible in ascending order, so a reader that asks
 * for the changes since the last revision it saw misses none. A change and its audit entry are one transaction.
 */
export interface KeyStore {
  /** Looks up the SHA-256 (hex) of a secret; secrets are not stored. Expired and revoked keys are returned as well. */
  findCredential(secretHash: string): Awaitable<Credential | undefined>;
  /** Returns what changed after the given revision. Servers poll it several times a second. */
  changesSince(revision: number): Awaitable<StoredChanges>;

  createKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey>;
  /** Creates a key if there has never been one. Of concurrent calls, one creates it. */
  createFirstKey(key: NewKey, secret: NewSecret, by: Attribution): Promise<ApiKey | undefined>;
  listKeys(query: KeyListQuery): Awaitable<KeyList>;
  getKey(id: number): Awaitable<ApiKey | undefined>;
  /** Returns the keys that exist, in any order. */
  getKeys(ids: readonly number[]): Awaitable<readonly ApiKey[]>;
  /** Returns all secrets of each key, newest first, including those that no longer work. */
  listSecrets(keyIds: readonly number[]): Awaitable<ReadonlyMap<number, readonly KeySecret[]>>;
  /** Adds a secret. The earlier secrets stop working at `overlapEndsAt`. */
  addSecret(id: number, secret: NewSecret & { overlapEndsAt: number }, by: Attribution): Promise<void>;
  /**
   * Changes the given fields and returns the key. A key of a plan other than Enterprise has no limits of its own, and a
   * revoked key keeps the time of its revocation, whatever the change says. A change that leaves every field as it is
   * has no audit entry.
   */
  updateKey(id: number, change: KeyChange, by: Attribution): Promise<ApiKey>;
  /**
   * Adds an audit entry for some of the keys that expire before `until`, once for each expiry, and returns whether
   * there may be more. Keys that are revoked or have expired have none. Of concurrent calls, one adds it.
   */
  announceExpiries(until: number, by: Attribution): Promise<boolean>;
}

export interface StoredChanges {
  /** The current revision. */
  readonly revision: number;
  /** A text that changes when another copy of the database has taken over, which may lack the last changes. */
  readonly timeline: string;
  /** Each key once, in the order of the changes. */
  readonly changed: readonly ChangedKey[];
  /** Whether there are questions to servers: one statement shows both, several times a second. */
  readonly hasQuestions: boolean;
}

export interface ChangedKey {
  readonly key: ApiKey;
  /** `unban` if the key was unbanned after the revision, with or without other changes. */
  readonly kind: "key" | "unban";
}
