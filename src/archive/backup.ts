import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import { formatTime } from "../api/formatting.ts";
import { renameDurably, syncToDisk } from "./durable-files.ts";
import { acquireLock } from "../store/sqlite/process-lock.ts";
import type { DatabaseFacts } from "../store/sqlite/transfer/snapshot.ts";
import { Steps, type WorkProgress } from "./steps.ts";
import {
  backupName,
  CHECKSUMS_FILE,
  checksumOf,
  DESCRIPTION_FILE,
  formatChecksums,
  listBackups,
  partialPath,
  removeBackup,
  removePartialBackups,
} from "./backup-folder.ts";
import { COSTS } from "./costs.ts";
import { DatabaseThread } from "./database-thread.ts";

export interface BackupOptions {
  readonly storage: StorageConfig;
  /** Holds any number of backups. */
  readonly directory: string;
  /** How many backups of the environment stay, this one included; undefined means all. */
  readonly keep: number | undefined;
  readonly at: number;
  readonly version: string;
  /** In bytes. */
  readonly onProgress: (progress: WorkProgress) => void;
}

export interface Backup {
  readonly path: string;
  readonly bytes: number;
  readonly files: readonly BackedUpFile[];
  /** Paths of earlier backups. */
  readonly removed: readonly string[];
}

export interface BackedUpFile extends Omit<DatabaseFacts, "problems"> {
  readonly name: string;
  readonly bytes: number;
}

/**
 * Copies the databases of an environment. A backup appears in the directory when it is complete, verified and on the
 * disk; until then it has another name. Throws if another process makes a backup there.
 */
export async function makeBackup(options: BackupOptions): Promise<Backup> {
  const { storage, directory, keep } = options;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = acquireLock(join(directory, `.${storage.environment}.lock`));
  if (lock === undefined)
    throw new Error(`another backup of ${storage.environment} to ${directory} is running`);
  try {
    removePartialBackups(directory, storage.environment);
    const path = join(directory, backupName(storage.environment, options.at));
    if (existsSync(path)) throw new Error(`${path} exists already`);
    const files = await writeBackup(path, options);
    const others = listBackups(directory, storage.environment).filter((other) => other !== path);
    const removed = keep === undefined ? [] : others.slice(0, Math.max(0, others.length + 1 - keep));
    for (const earlier of removed) removeBackup(earlier);
    return { path, files, removed, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
  } finally {
    lock.release();
  }
}

async function writeBackup(path: string, options: BackupOptions): Promise<BackedUpFile[]> {
  const partial = partialPath(path);
  mkdirSync(partial, { mode: 0o700 });
  const databases = databasesOf(options.storage);
  const bytes = databases.reduce((sum, database) => sum + statSync(database).size, 0);
  const steps = new Steps(bytes * (COSTS.snapshot + COSTS.check + COSTS.checksum), options.onProgress);
  const thread = new DatabaseThread();
  try {
    const files: BackedUpFile[] = [];
    for (const from of databases) files.push(await copyDatabase({ from, directory: partial, steps, thread }));
    writeDescription(partial, files, options);
    await writeChecksums(partial, [...files.map(({ name }) => name), DESCRIPTION_FILE], steps);
    syncToDisk(partial);
    renameDurably(partial, path);
    return files;
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  } finally {
    await thread.close();
  }
}

/**
 * The usage of keys is copied before the keys: it refers to no key that the copy of the keys lacks. Bans that an
 * operator ends in between are ended when a server starts on the backup, as after a crash.
 */
function databasesOf(storage: StorageConfig): string[] {
  const { store, usageStore } = pathsOf(storage);
  return existsSync(usageStore) ? [usageStore, store] : [store];
}

interface DatabaseCopy {
  readonly from: string;
  readonly directory: string;
  readonly steps: Steps;
  readonly thread: DatabaseThread;
}

/** Reads all of the copy, because a database that is damaged makes a damaged copy. */
async function copyDatabase({ from, directory, steps, thread }: DatabaseCopy): Promise<BackedUpFile> {
  const name = basename(from);
  const to = join(directory, name);
  const expectedBytes = Math.max(1, statSync(from).size);
  await steps.run({ name: "copying", cost: expectedBytes * COSTS.snapshot }, (report) =>
    thread.copy(from, to, () => {
      const copied = statSync(to, { throwIfNoEntry: false })?.size ?? 0;
      report(copied / expectedBytes, copied);
    }),
  );
  const check = { name: "checking", cost: expectedBytes * COSTS.check };
  const { problems, ...facts } = await steps.run(check, (report) => thread.inspect(to, () => report(0)));
  if (problems.length > 0) {
    throw new Error(
      `the copy of ${from} is damaged (${problems[0]}); check the original with petstore doctor`,
    );
  }
  syncToDisk(to);
  return { name, bytes: statSync(to).size, ...facts };
}

function writeDescription(
  directory: string,
  files: readonly BackedUpFile[],
  { storage, at, version }: BackupOptions,
): void {
  const description = { environment: storage.environment, createdAt: formatTime(at), version, files };
  writeDurably(join(directory, DESCRIPTION_FILE), `${JSON.stringify(description, null, 2)}\n`);
}

async function writeChecksums(directory: string, names: readonly string[], steps: Steps): Promise<void> {
  const checksums = new Map<string, string>();
  const paths = names.map((name) => join(directory, name));
  const size = paths.reduce((sum, path) => sum + statSync(path).size, 0);
  await steps.run({ name: "computing checksums", cost: size * COSTS.checksum }, async (report) => {
    let bytesBefore = 0;
    for (const path of paths) {
      const onBytes = (bytes: number) => report((bytesBefore + bytes) / size, bytesBefore + bytes);
      checksums.set(basename(path), await checksumOf(path, onBytes));
      bytesBefore += statSync(path).size;
    }
  });
  writeDurably(join(directory, CHECKSUMS_FILE), formatChecksums(checksums));
}

function writeDurably(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600, flag: "wx" });
  syncToDisk(path);
}
