import { constants, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { chmod, copyFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import type { Environment } from "../domain/api-keys.ts";
import type { Attribution, NewAuditEntry } from "../domain/audit.ts";
import { latestVersion } from "../store/migrations.ts";
import { giveToDirectoryOwner, renameDurably, syncToDisk } from "../store/sqlite/durable-files.ts";
import { SQLITE_MIGRATIONS } from "../store/sqlite/migrations.ts";
import { acquireLock, isOpenElsewhere } from "../store/sqlite/process-lock.ts";
import {
  addAuditEntry,
  type DatabaseFacts,
  type KeyDifferences,
  keyDifferences,
  skipAssignedIds,
} from "../store/sqlite/snapshot.ts";
import {
  type BackupDescription,
  backupName,
  bytesOf,
  createDirectory,
  DESCRIPTION_FILE,
  isBackup,
  listBackups,
  readBackup,
  readDescription,
  writeDurably,
} from "./backup.ts";
import type { OnProgress } from "./contents.ts";
import { callInThread, polled } from "./database-thread.ts";

/** Why a backup cannot be restored, for the operator. */
export class RestoreRejection {
  constructor(readonly message: string) {}
}

export interface RestorePlan {
  readonly storage: StorageConfig;
  /** The directory of the backup. */
  readonly path: string;
  /** Why newer backups are not restored. */
  readonly skipped: readonly string[];
  readonly description: BackupDescription;
  /** Of the copy of the database with the keys. */
  readonly facts: DatabaseFacts;
  /** The names of the copies, without the directory. */
  readonly files: readonly string[];
  /** Whether a server will migrate the database when it starts. */
  readonly needsMigration: boolean;
  /** The directory to which the present databases move; undefined if there are none. */
  readonly replaced: string | undefined;
  /** Why the restore is not possible, although its plan is. */
  readonly obstacle: RestoreRejection | undefined;
  /** Whether the backup has an audit trail; early releases had none. */
  readonly hasAuditTrail: boolean;
  /** Whether this finishes a restore that was interrupted. */
  readonly isContinued: boolean;
  /** A later state of the same data; undefined if there is none. */
  readonly later: string | undefined;
  /** Undefined if nothing is known of what came after the backup. */
  readonly keys: KeyDifferences | undefined;
}

interface RestoreRequest {
  readonly storage: StorageConfig;
  /** A backup, or a directory of backups, of which the newest is meant. */
  readonly from: string;
  /** Whether the present databases may be moved away. */
  readonly replace: boolean;
  /** Whether an older backup may be restored if the newest is incomplete or damaged. */
  readonly allowOlder: boolean;
  readonly by: Attribution;
  /** In bytes. */
  readonly onProgress: OnProgress;
}

/** Reads and verifies the backup, and decides what a restore would do. Changes nothing. */
export async function planRestore(request: RestoreRequest): Promise<RestorePlan | RestoreRejection> {
  const { storage, by } = request;
  const { environment } = storage;
  const backup = await findBackup(request);
  if (backup instanceof RestoreRejection) return backup;
  const { path, description } = backup;
  const staged = readStagedRestore(storage);
  const present = databaseFiles(storage).filter(existsSync);
  if (staged && staged.description.createdAt !== description.createdAt) {
    return new RestoreRejection(
      `a restore of the backup of ${staged.description.createdAt} was interrupted; finish it first, with petstore restore and that backup`,
    );
  }
  const isReplacing = !staged && present.length > 0;
  const { store, usageStore } = pathsOf(storage);
  const copies = [usageStore, store].map((file) => basename(file));
  const moved = join(
    dirname(store),
    backupName(environment, by.at).replace(environment, `${environment}-replaced`),
  );
  const replaced = staged ? staged.replaced : isReplacing ? moved : undefined;
  const later = laterDatabase(staged?.replacedStore ?? store, path, environment);
  return {
    storage,
    ...backup,
    files: copies.filter((name) => existsSync(join(path, name))),
    needsMigration: backup.facts.schemaVersion < latestVersion(SQLITE_MIGRATIONS),
    replaced,
    obstacle:
      isReplacing && !request.replace
        ? new RestoreRejection(
            `${present[0]} exists, and a restore overwrites nothing; with --replace, the present databases are moved to another directory first`,
          )
        : undefined,
    hasAuditTrail: backup.facts.rows["audit"] !== undefined,
    isContinued: staged !== undefined,
    later,
    keys: later === undefined ? undefined : differencesOf(join(path, basename(store)), later),
  };
}

type FoundBackup = Pick<RestorePlan, "path" | "description" | "facts" | "skipped">;

/** The given backup, or the newest in a directory of them. */
async function findBackup(request: RestoreRequest): Promise<FoundBackup | RestoreRejection> {
  const { from, allowOlder } = request;
  const { environment } = request.storage;
  if (isBackup(from)) return readAndVerify(from, request);
  const skipped: string[] = [];
  for (const path of listBackups(from, environment, () => true).toReversed()) {
    try {
      const found = await readAndVerify(path, request);
      return found instanceof RestoreRejection ? found : { ...found, skipped };
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (!allowOlder)
        return new RestoreRejection(
          `${problem}; with --allow-older, the newest one that is complete is restored`,
        );
      skipped.push(problem);
    }
  }
  const [none = `there is no backup of ${environment} in ${from}`] = skipped;
  return new RestoreRejection(none);
}

/** Verifies all of it. Throws if it is incomplete or damaged. */
async function readAndVerify(
  path: string,
  { storage, onProgress }: RestoreRequest,
): Promise<FoundBackup | RestoreRejection> {
  const { environment } = storage;
  const store = join(path, basename(pathsOf(storage).store));
  const bytes = databaseFiles(storage).reduce((sum, file) => sum + bytesOf(join(path, basename(file))), 0);
  const description = await readBackup(path, (done) =>
    onProgress({ step: "comparing checksums", done, share: done / Math.max(1, bytes) }),
  );
  const { environment: actual } = description;
  if (actual !== environment) {
    return new RestoreRejection(
      `the backup ${path} is of ${actual}, not of ${environment}; use --env ${actual}`,
    );
  }
  const onPoll = () => onProgress({ step: "checking the backup" });
  const facts = await callInThread("inspectDatabase", [store], onPoll);
  const [problem] = facts.problems;
  if (problem !== undefined) throw new Error(`the backup ${path} is damaged: ${problem}`);
  const supported = latestVersion(SQLITE_MIGRATIONS);
  if (facts.schemaVersion > supported) {
    return new RestoreRejection(
      `the backup has schema version ${facts.schemaVersion}, and this petstore supports versions up to ${supported}; upgrade petstore`,
    );
  }
  return { path, description, facts, skipped: [] };
}

/** The databases with the files that SQLite keeps beside them. */
function databaseFiles(storage: StorageConfig): string[] {
  const { store, usageStore } = pathsOf(storage);
  return [store, usageStore].flatMap((path) => [path, `${path}-wal`, `${path}-shm`]);
}

/** The present database, or else the newest backup beside the given one. */
function laterDatabase(present: string, path: string, environment: Environment): string | undefined {
  if (existsSync(present)) return present;
  const newest = listBackups(dirname(path), environment).at(-1);
  if (newest === undefined || basename(newest) === basename(path)) return undefined;
  return join(newest, basename(present));
}

/** Undefined if the later database is damaged, which may be why a backup is restored. */
function differencesOf(earlier: string, later: string): KeyDifferences | undefined {
  try {
    return keyDifferences(earlier, later);
  } catch {
    return undefined;
  }
}

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
  try {
    const plan = await planRestore(request);
    if (plan instanceof RestoreRejection) return plan;
    if (plan.obstacle) return plan.obstacle;
    // Such as an import, which would go on in the file that moves away, and report success.
    const inUse = new RestoreRejection(
      `another command uses the databases in ${storage.dataDir} (${storage.environment}); run this one again when it is done`,
    );
    const isInUse = () => [store, usageStore].some(isOpenElsewhere);
    if (isInUse()) return inUse;
    await show(plan);
    if (!plan.isContinued) await stage(plan, request);
    // From now on no command begins.
    if (isInUse()) return inUse;
    moveAway(plan);
    moveIntoPlace(plan);
    return undefined;
  } finally {
    lock.release();
  }
}

const REPLACED_FILE = "replaced-directory";

/**
 * The copies that a restore has verified, in a directory beside the databases that they will replace. While the
 * directory exists, no server starts: the databases may be partly replaced. An interrupted restore continues from it.
 */
interface StagedRestore {
  readonly description: BackupDescription;
  /** Where the databases before the restore are or go; undefined if there were none. */
  readonly replaced: string | undefined;
  /** Where the store before the restore is, if it has been moved away. */
  readonly replacedStore: string | undefined;
}

/** Undefined if no restore was interrupted after it had begun to replace databases. */
function readStagedRestore(storage: StorageConfig): StagedRestore | undefined {
  const { restore, store } = pathsOf(storage);
  if (!existsSync(restore)) return undefined;
  const name = readFileSync(join(restore, REPLACED_FILE), "utf8").trim();
  const replaced = name === "" ? undefined : join(storage.dataDir, name);
  const isStoreReplaced = !existsSync(store) || !existsSync(join(restore, basename(store)));
  return {
    description: readDescription(restore),
    replaced,
    replacedStore: isStoreReplaced && replaced !== undefined ? join(replaced, basename(store)) : undefined,
  };
}

/** Makes the staged restore, all at once. The copies are checked: they may be on another disk than the backup. */
async function stage(plan: RestorePlan, request: RestoreRequest): Promise<void> {
  const { storage, path, replaced } = plan;
  const { restore } = pathsOf(storage);
  await createDirectory(restore, `${restore}.partial`, async (partial) => {
    await copyDatabases(plan, partial, request);
    for (const name of plan.files) await checkCopy(join(partial, name), request);
    writeDurably(join(partial, DESCRIPTION_FILE), readFileSync(join(path, DESCRIPTION_FILE), "utf8"));
    writeDurably(join(partial, REPLACED_FILE), replaced === undefined ? "\n" : `${basename(replaced)}\n`);
  });
}

async function copyDatabases(
  plan: RestorePlan,
  directory: string,
  { by, onProgress }: RestoreRequest,
): Promise<void> {
  const { path, later, keys } = plan;
  for (const name of plan.files) {
    const to = join(directory, name);
    const size = Math.max(1, bytesOf(join(path, name)));
    const copied = copyFile(join(path, name), to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    await polled(copied, () => onProgress({ step: "copying", done: bytesOf(to), share: bytesOf(to) / size }));
    await chmod(to, 0o600);
  }
  const store = join(directory, basename(pathsOf(plan.storage).store));
  // Identifiers are never assigned twice. A later database that is damaged cannot tell which were assigned.
  if (later !== undefined && keys !== undefined) skipAssignedIds(store, later);
  if (plan.hasAuditTrail) addAuditEntry(store, entryOf(plan, by));
}

async function checkCopy(path: string, { onProgress }: RestoreRequest): Promise<void> {
  const onPoll = () => onProgress({ step: "checking the copy" });
  const { problems } = await callInThread("inspectDatabase", [path], onPoll);
  if (problems.length > 0) throw new Error(`the copy ${path} is damaged: ${problems[0]}`);
  syncToDisk(path);
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
    const location = join(dirname(store), name);
    renameDurably(copy, location);
    giveToDirectoryOwner(location);
  }
  // The description goes with the directory: a directory without one could not be continued.
  const done = `${restore}.partial`;
  rmSync(done, { recursive: true, force: true });
  renameDurably(restore, done);
  rmSync(done, { recursive: true, force: true });
  syncToDisk(storage.dataDir);
}
