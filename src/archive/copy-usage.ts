/** Moves the counts and bans of keys between the usage store of a server process and Valkey. */
import { existsSync, rmSync } from "node:fs";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import { readTextFile, UsageError } from "../config/usage-error.ts";
import type { Subject, Usage } from "../domain/rate-limit.ts";
import { UsageCopy } from "../rate-limit/valkey/maintenance.ts";
import { openUsageStore } from "../store/sqlite/usage-store.ts";
import { type TableReader, TABLES } from "../store/tables.ts";
import { giveToDirectoryOwner, renameDurably, syncToDisk } from "./durable-files.ts";

/** Returns the number of keys. */
export async function copyUsageToValkey(storage: StorageConfig): Promise<number> {
  const { usageStore } = pathsOf(storage);
  if (!existsSync(usageStore)) return 0;
  return withValkey(storage, (valkey) => valkey.write(keyUsages(usageStore)));
}

/** Addresses are counted in each server process, with Valkey too. */
function keyUsages(path: string): (readonly [Subject, Usage])[] {
  const store = openUsageStore(path);
  try {
    return [...store.load()].filter(([subject]) => subject.kind === "key");
  } finally {
    store.close();
  }
}

/** Reads the usage of all keys of the source. Returns the number of keys that have any. */
export async function copyUsageFromValkey(storage: StorageConfig, source: TableReader): Promise<number> {
  const { usageStore } = pathsOf(storage);
  const entries = await withValkey(storage, async (valkey) => valkey.read(await keyIds(source)));
  const copy = `${usageStore}.copy`;
  removeDatabase(copy);
  const store = openUsageStore(copy);
  store.save(entries);
  store.close();
  syncToDisk(copy);
  removeDatabase(usageStore);
  renameDurably(copy, usageStore);
  giveToDirectoryOwner(usageStore);
  return entries.length;
}

function removeDatabase(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

async function keyIds(source: TableReader): Promise<number[]> {
  const ids: number[] = [];
  for (const table of TABLES.filter(({ name }) => name === "api_keys")) {
    for await (const rows of source.rows(table)) ids.push(...rows.map(([id]) => Number(id)));
  }
  return ids;
}

async function withValkey<T>(
  { limitsUrls = [], limitsCaFile, environment }: StorageConfig,
  work: (valkey: UsageCopy) => Promise<T>,
): Promise<T> {
  const [only = ""] = limitsUrls;
  const ca = limitsCaFile === undefined ? undefined : readTextFile("--limits-ca", limitsCaFile);
  if (ca instanceof UsageError) throw new Error(ca.message);
  const valkey = await UsageCopy.open({
    url: limitsUrls.length === 1 ? only : limitsUrls,
    ...(ca !== undefined && { ca }),
    prefix: `petstore:${environment}:`,
  });
  try {
    return await work(valkey);
  } finally {
    valkey.close();
  }
}
