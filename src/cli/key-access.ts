import { existsSync } from "node:fs";
import { pathsOf, type Place, whereIs } from "../config.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import type { KeyStore } from "../domain/ports.ts";
import { openStores } from "../adapters.ts";
import { Failure, type Outcome } from "./command.ts";
import { rfc3339 } from "./key-view.ts";

/** Opens the keys of a place for the length of `work`, beside servers that may be running on it. */
export async function withKeys<T>(place: Place, work: (keys: KeyStore) => Promise<T>): Promise<T> {
  const { keys, close } = await openStores(place);
  try {
    return await work(keys);
  } finally {
    await close();
  }
}

/** Whether anything was ever kept there. Looking at a place makes no files in it. */
export function isInUse(place: Place): boolean {
  return place.databaseUrl !== undefined || existsSync(pathsOf(place).store);
}

/** As withKeys, for one key that has to exist. */
export async function withKey(
  { place, id }: { place: Place; id: number },
  work: (key: ApiKey, keys: KeyStore) => Promise<Outcome>,
): Promise<Outcome> {
  if (!isInUse(place)) return noSuchKey(place, id);
  return withKeys(place, async (keys) => {
    const key = await keys.getKey(id);
    return key ? work(key, keys) : noSuchKey(place, id);
  });
}

function noSuchKey(place: Place, id: number): Failure {
  const { data } = whereIs(place);
  return new Failure(`no key ${id} exists in ${place.environment} at ${data}; see petstore keys list`);
}

/** A change to a key that no longer opens anything, and never will again, would be lost on everybody. */
export function endOf({ id, revokedAt, expiresAt }: ApiKey, now: number, fate: string): Failure | undefined {
  if (revokedAt !== undefined) {
    return new Failure(
      `key ${id} was revoked at ${rfc3339(revokedAt)} and cannot be ${fate}; make a new one`,
    );
  }
  if (expiresAt === undefined || now < expiresAt) return undefined;
  return new Failure(`key ${id} expired at ${rfc3339(expiresAt)} and cannot be ${fate}; make a new one`);
}
