/** What the `keys` commands share. */
import { statSync } from "node:fs";
import { openStores } from "../../adapters.ts";
import { describeStorage, expectedUrl, pathsOf, type StorageConfig } from "../../config/config.ts";
import type { ADDRESS_OPTIONS } from "../../config/options.ts";
import type { Source, ValuesOf } from "../../config/parse-options.ts";
import { UsageError } from "../../config/usage-error.ts";
import type { ApiKey, Environment } from "../../domain/api-keys.ts";
import { rejectInterruptedRestore } from "../../data-directory.ts";
import { type KeyFailure, KeyManagement } from "../../domain/key-management.ts";
import type { ViewOptions } from "../../domain/key-view.ts";
import type { PlanName } from "../../domain/plans.ts";
import type { AuditStore, KeyStore, SettingsStore, UsageHistoryStore } from "../../domain/ports.ts";
import type { Limits } from "../../domain/rate-limit.ts";
import { type Context, Failure, type Outcome, type SavedSettings } from "../command.ts";

interface KeyStores {
  readonly keys: KeyStore;
  readonly audit: AuditStore;
  readonly settings: SettingsStore;
  readonly usageHistory: UsageHistoryStore;
}

/** Opens the key store for the duration of `work`. Servers may be running on it. */
export async function withKeyStore<T>(
  storage: StorageConfig,
  work: (stores: KeyStores) => Promise<T>,
): Promise<T> {
  const { close, ...stores } = await openStores(storage);
  try {
    return await work(stores);
  } finally {
    await close();
  }
}

/**
 * Commands that only read do not create a database. Throws while a restore is replacing it, and if this user may not
 * see it: without that, the answer would be that there are no keys.
 */
export function databaseExists(storage: StorageConfig): boolean {
  if (storage.databaseUrl !== undefined) return true;
  rejectInterruptedRestore(storage);
  return statSync(pathsOf(storage).store, { throwIfNoEntry: false }) !== undefined;
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

/** Changes keys in the name of the user who runs the command. */
export function keyManagement(
  { keys }: Pick<KeyStores, "keys">,
  environment: Environment,
  { clock, user }: Pick<Context, "clock" | "user">,
): KeyManagement {
  const actor = { kind: "command line", ...(user !== undefined && { name: user }) } as const;
  return new KeyManagement({ keys, clock, environment, actor });
}

export function failureOf(failure: KeyFailure): Failure | UsageError {
  return failure.code === "invalid_field" ? new UsageError(failure.message) : new Failure(failure.message);
}

/** What the view of a key shows beside the key and its usage. */
export async function keyDetails(
  { keys, usageHistory }: KeyStores,
  ids?: readonly number[],
): Promise<Pick<ViewOptions, "secrets" | "lastUsed">> {
  return { secrets: await keys.listSecrets(ids), lastUsed: await usageHistory.lastUsed(ids) };
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
