import { constants, existsSync, mkdirSync, rmSync } from "node:fs";
import { chmod, copyFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import type { Attribution, NewAuditEntry } from "../domain/audit.ts";
import { giveToDirectoryOwner, renameDurably, syncToDisk } from "./durable-files.ts";
import { addAuditEntry, skipAssignedIds } from "../store/sqlite/transfer/earlier-copy.ts";
import { acquireLock, isOpenElsewhere } from "../store/sqlite/process-lock.ts";
import { withDatabase } from "../store/sqlite/transfer/snapshot.ts";
import { Steps } from "./steps.ts";
import { COSTS } from "./costs.ts";
import { DatabaseThread } from "./database-thread.ts";
import {
  bytesOf,
  databaseFiles,
  planRestore,
  type RestorePlan,
  RestoreRejection,
  type RestoreRequest,
} from "./restore-plan.ts";
import { stageRestore } from "./staged-restore.ts";

/**
 * Plans a restore, shows the plan, and carries it out. Holds the lock of the data directory, so that no server runs.
 * Whenever it is interrupted, the same call finishes it: first the copies are staged, then the present databases move
 * away, then the copies take their places.
 */
export async function restoreBackup(
  request: RestoreRequest,
  show: (plan: RestorePlan) => Promise<void>,
): Promise<RestoreRejection | undefined> {
  const { storage } = request;
  const { lock: lockFile, store, usageStore } = pathsOf(storage);
  mkdirSync(storage.dataDir, { recursive: true, mode: 0o700 });
  const lock = acquireLock(lockFile, [store, usageStore]);
  if (lock === undefined) {
    return new RestoreRejection(
      `a server is running on ${storage.dataDir} (${storage.environment}); stop it first`,
    );
  }
  giveToDirectoryOwner(lockFile);
  const thread = new DatabaseThread();
  try {
    const plan = await planRestore(request, thread);
    if (plan instanceof RestoreRejection) return plan;
    // Such as an import, which would go on in the file that moves away, and report success.
    const inUse = new RestoreRejection(
      `another command uses the databases in ${storage.dataDir} (${storage.environment}); run this one again when it is done`,
    );
    const isInUse = () => [store, usageStore].some(isOpenElsewhere);
    if (isInUse()) return inUse;
    await show(plan);
    if (!plan.isContinued) await stage(plan, request, thread);
    // From now on no command begins.
    if (isInUse()) return inUse;
    moveAway(plan);
    moveIntoPlace(plan);
    return undefined;
  } finally {
    await thread.close();
    lock.release();
  }
}

/** As restoreBackup, without a change. */
export async function rehearseRestore(request: RestoreRequest): Promise<RestorePlan | RestoreRejection> {
  const thread = new DatabaseThread();
  return planRestore(request, thread).finally(() => thread.close());
}

/** Copies the databases and checks the copies: they may be on another disk than the backup. */
async function stage(
  plan: RestorePlan,
  { by, onProgress }: RestoreRequest,
  thread: DatabaseThread,
): Promise<void> {
  const { storage, path, files, replaced, later, keys } = plan;
  const { store } = pathsOf(storage);
  // Closing the last connection moves what is in the write-ahead log into the file.
  if (replaced !== undefined) closeCleanly(store);
  const sizes = new Map(files.map((name) => [name, bytesOf(join(path, name))] as const));
  const bytes = sizes.values().reduce((sum, size) => sum + size, 0);
  const steps = new Steps(bytes * (COSTS.copy + COSTS.check), onProgress);
  await stageRestore(storage, { backup: path, replaced }, async (directory) => {
    for (const [name, size] of sizes) {
      await steps.run({ name: "copying", cost: size * COSTS.copy }, (report) =>
        copyPrivately(join(path, name), join(directory, name), (copied) => report(copied / size, copied)),
      );
    }
    // Identifiers are never assigned twice. A later database that is damaged cannot tell which were assigned.
    if (later !== undefined && keys !== undefined) skipAssignedIds(join(directory, basename(store)), later);
    if (plan.hasAuditTrail) addAuditEntry(join(directory, basename(store)), entryOf(plan, by));
    for (const [name, size] of sizes) {
      const copy = join(directory, name);
      const check = { name: "checking the copy", cost: size * COSTS.check };
      const [problem] = (await steps.run(check, (report) => thread.inspect(copy, () => report(0)))).problems;
      if (problem !== undefined) throw new Error(`the copy ${copy} is damaged: ${problem}`);
      syncToDisk(copy);
    }
  });
}

/** In the staged copy: a restore that is interrupted before has no effect, and one that is interrupted later has it. */
function entryOf({ path, description, replaced }: RestorePlan, by: Attribution): NewAuditEntry {
  const after = {
    backup: basename(resolve(path)),
    backupCreatedAt: description.createdAt,
    replaced: replaced === undefined ? null : basename(replaced),
  };
  return { ...by, action: "data.restored", after };
}

async function copyPrivately(from: string, to: string, onBytes: (bytes: number) => void): Promise<void> {
  const timer = setInterval(() => onBytes(bytesOf(to)), 100);
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  } finally {
    clearInterval(timer);
  }
  await chmod(to, 0o600);
}

function closeCleanly(path: string): void {
  try {
    withDatabase(path, (connection) => connection.value("PRAGMA wal_checkpoint(TRUNCATE)"));
  } catch {
    // It is missing or damaged; it moves away as it is.
  }
}

/** Databases that are in place although their copies are still staged are those from before the restore. */
function moveAway({ storage, replaced, files }: RestorePlan): void {
  if (replaced === undefined) return;
  const { restore } = pathsOf(storage);
  mkdirSync(replaced, { recursive: true, mode: 0o700 });
  giveToDirectoryOwner(replaced);
  for (const file of databaseFiles(storage)) {
    const copy = basename(file).replace(/-(?:wal|shm)$/, "");
    const isRestored = files.includes(copy) && !existsSync(join(restore, copy));
    if (existsSync(file) && !isRestored) renameDurably(file, join(replaced, basename(file)));
  }
}

function moveIntoPlace({ storage, files }: RestorePlan): void {
  const { restore, store } = pathsOf(storage);
  for (const name of files) {
    const copy = join(restore, name);
    if (!existsSync(copy)) continue;
    const place = join(dirname(store), name);
    renameDurably(copy, place);
    giveToDirectoryOwner(place);
  }
  removeStaged(storage, restore);
}

function removeStaged(storage: StorageConfig, restore: string): void {
  // The description goes with the directory: a directory without one could not be continued.
  const done = `${restore}.partial`;
  rmSync(done, { recursive: true, force: true });
  renameDurably(restore, done);
  rmSync(done, { recursive: true, force: true });
  syncToDisk(storage.dataDir);
}
