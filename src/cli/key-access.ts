import { existsSync, mkdirSync } from "node:fs";
import { Unavailable } from "../contract/errors.ts";
import { pathsOf, type Place } from "../config.ts";
import type { ApiKey } from "../domain/keys.ts";
import { pardon, type Standing } from "../domain/limits.ts";
import type { KeyStore, Ledger } from "../domain/ports.ts";
import { Failure, type Outcome } from "./command.ts";

/** Loaded when it is needed: help, and every complaint about a command line, come without a database. */
const engine = () => import("../store/sqlite/index.ts");

/** Opens the keys of a place for the length of `work`, beside a server that may be running on it. */
export async function withKeys<T>(place: Place, work: (keys: KeyStore) => Promise<T>): Promise<T> {
  mkdirSync(place.dataDir, { recursive: true });
  const { openStore } = await engine();
  const { keys, close } = await openStore(pathsOf(place).store);
  try {
    return await work(keys);
  } finally {
    await close();
  }
}

/** Whether anything was ever kept there. Looking at a place makes no files in it. */
export function isInUse(place: Place): boolean {
  return existsSync(pathsOf(place).store);
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

function noSuchKey({ environment, dataDir }: Place, id: number): Failure {
  return new Failure(`no key ${id} exists in ${environment} at ${dataDir}; see petstore keys list`);
}

/**
 * Where keys stand with their limits, as the ledger has it. A running server writes it once a second, so this is at
 * most a second old.
 */
export async function standingsOf(
  place: Place,
  ids: readonly number[],
): Promise<ReadonlyMap<number, Standing>> {
  const standings = new Map<number, Standing>();
  if (ids.length === 0) return standings;
  await withLedger(place, (ledger) => {
    for (const id of ids) {
      const standing = ledger.find(`key:${id}`);
      if (standing) standings.set(id, standing);
    }
  });
  return standings;
}

/** For a server that starts later. One that runs follows the keys, and writes the same over this. */
export async function pardonInLedger(place: Place, id: number, at: number): Promise<void> {
  await withLedger(place, (ledger) => {
    const standing = ledger.find(`key:${id}`);
    if (standing === undefined) return;
    pardon(standing, at);
    ledger.save([[`key:${id}`, standing]]);
  }).catch((error: unknown) => {
    // Busy, so a server is running, and it is the one that counts.
    if (!(error instanceof Unavailable)) throw error;
  });
}

async function withLedger(place: Place, work: (ledger: Ledger) => void): Promise<void> {
  const { ledger: path } = pathsOf(place);
  if (!existsSync(path)) return;
  const { openLedger } = await engine();
  const ledger = openLedger(path);
  try {
    work(ledger);
  } finally {
    ledger.close();
  }
}
