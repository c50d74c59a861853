/** What the `keys` commands share. */
import { existsSync } from "node:fs";
import { openStores } from "../adapters.ts";
import { describeStorage, expectedUrl, pathsOf, type StorageConfig } from "../config/config.ts";
import type { ADDRESS_OPTIONS } from "../config/options.ts";
import type { Source, ValuesOf } from "../config/parse-options.ts";
import { UsageError } from "../config/usage-error.ts";
import type { ValueType } from "../config/value-types.ts";
import type { ApiKey, Environment } from "../domain/api-keys.ts";
import type { PlanName } from "../domain/plans.ts";
import type { KeyStore, SettingsStore } from "../domain/ports.ts";
import type { Limits } from "../domain/rate-limit.ts";
import { Failure, type Outcome, type SavedSettings } from "./command.ts";
import { formatTime } from "./output.ts";

const KEY_ID = /^[1-9]\d{0,15}$/;

/** A key's ID, never its secret: other users of the machine can read the arguments of a process. */
export const keyId: ValueType<number> = {
  placeholder: "ID",
  expected: "the ID of a key, as petstore keys list shows it",
  parse: (text) => (KEY_ID.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined),
  format: String,
};

interface KeyStores {
  readonly keys: KeyStore;
  readonly settings: SettingsStore;
}

/** Opens the key store for the duration of `work`. Servers may be running on it. */
export async function withKeyStore<T>(
  storage: StorageConfig,
  work: (stores: KeyStores) => Promise<T>,
): Promise<T> {
  const { keys, settings, close } = await openStores(storage);
  try {
    return await work({ keys, settings });
  } finally {
    await close();
  }
}

/** Commands that only read do not create a database. */
export function databaseExists(storage: StorageConfig): boolean {
  return storage.databaseUrl !== undefined || existsSync(pathsOf(storage).store);
}

/** Fails if there is no such key. */
export async function withKey(
  { storage, id }: { storage: StorageConfig; id: number },
  work: (key: ApiKey, stores: KeyStores) => Promise<Outcome>,
): Promise<Outcome> {
  if (!databaseExists(storage)) return noSuchKey(storage, id);
  return withKeyStore(storage, async (stores) => {
    const key = await stores.keys.getKey(id);
    return key ? work(key, stores) : noSuchKey(storage, id);
  });
}

export function noSuchKey(storage: StorageConfig, id: number): Failure {
  const { data } = describeStorage(storage);
  return new Failure(
    `key ${id} does not exist in ${storage.environment} (data: ${data}); see petstore keys list`,
  );
}

/** A revoked or expired key stays as it is. */
export function rejectInactive(key: ApiKey, now: number, change: string): Failure | undefined {
  const { id, revokedAt, expiresAt } = key;
  if (revokedAt !== undefined) {
    return new Failure(
      `key ${id} was revoked at ${formatTime(revokedAt)} and cannot be ${change}; create a new key`,
    );
  }
  if (expiresAt === undefined || now < expiresAt) return undefined;
  return new Failure(
    `key ${id} expired at ${formatTime(expiresAt)} and cannot be ${change}; create a new key`,
  );
}

type AddressValues = ValuesOf<typeof ADDRESS_OPTIONS> & { readonly env: Environment };

interface AddressInput {
  readonly values: AddressValues;
  source(flag: keyof typeof ADDRESS_OPTIONS): Source | undefined;
  valuesWith(saved: SavedSettings): AddressValues;
}

/**
 * The URL of the API for a new secret; undefined if it is not known. The variables of host and port do not override the
 * URL that the server saved: PETSTORE_PORT=0 does not say where it listens.
 */
export function urlOf(
  { values, source, valuesWith }: AddressInput,
  saved: SavedSettings,
): string | undefined {
  const isGiven =
    source("public-url") ?? [source("host"), source("port")].find((given) => given?.name.startsWith("--"));
  return expectedUrl(isGiven ? values : valuesWith(saved));
}

interface EnterpriseInput {
  readonly values: { readonly "per-minute": number | undefined; readonly "per-day": number | undefined };
  source(flag: "per-minute" | "per-day"): { readonly name: string } | undefined;
}

/** An Enterprise key must have both limits; a key of another plan has the limits of its plan. */
export function enterpriseLimits(
  plan: PlanName,
  { values, source }: EnterpriseInput,
): { limits?: Limits } | UsageError {
  const given = source("per-minute") ?? source("per-day");
  if (plan !== "enterprise") {
    return given ? new UsageError(`${given.name} is only for the enterprise plan; the plan is ${plan}`) : {};
  }
  const { "per-minute": perMinute, "per-day": perDay } = values;
  if (perMinute === undefined || perDay === undefined) {
    const missing = perMinute === undefined ? "--per-minute" : "--per-day";
    return new UsageError(`the enterprise plan needs ${missing}: each key has its own limits`);
  }
  return { limits: { perMinute, perDay } };
}
