import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { messageOf } from "../api/errors.ts";
import type { DataDirectory } from "../data-directory.ts";
import type { Environment } from "../domain/api-keys.ts";
import type { Attribution } from "../domain/audit.ts";
import { type Migration, schemaState } from "../store/migrations.ts";
import {
  copyPrivately,
  inheritDirectoryOwner,
  makeDirectory,
  removeDirectory,
  renameDurably,
  syncDirectory,
  syncToDisk,
} from "../runtime/own-files.ts";
import { SQLITE_MIGRATIONS } from "../store/sqlite/migrations.ts";
import { isOpenElsewhere } from "../store/sqlite/process-lock.ts";
import {
  addAuditEntry,
  type KeyDifferences,
  keyDifferences,
  skipAssignedIds,
} from "../store/sqlite/snapshot.ts";
import { QUOTA_MIGRATIONS } from "../store/sqlite/quota-store.ts";
import {
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
import { callInThread, pollWhile } from "./database-thread.ts";

/** The reason why a backup cannot be restored, for the operator. */
export class RestoreRejection extends Error {}

export type RestorePlan = Awaited<ReturnType<typeof planRestore>>;

interface RestoreRequest {
  readonly directory: DataDirectory;
  /** A backup, or a directory of backups, whose newest one is restored. */
  readonly from: string;
  /** Whether the present databases may be moved away. */
  readonly replace: boolean;
  /** Whether an older backup may be restored if the newest is incomplete or damaged. */
  readonly allowOlder: boolean;
  readonly by: Attribution;
  /** Reports progress in bytes. */
  readonly onProgress: OnProgress;
}

/** Reads and verifies the backup, and plans the restore. It changes nothing. */
export async function planRestore(request: RestoreRequest) {
  const { directory, by } = request;
  const { environment } = directory;
  const { store, quotaStore, restore } = directory.files;
  const backup = await findBackup(request);
  const { path, description, facts, schema } = backup;
  const staged = readStagedRestore(directory);
  if (staged && staged.description.createdAt !== description.createdAt) {
    throw new RestoreRejection(
      `a restore of the backup of ${staged.description.createdAt} was interrupted; finish it first, with petstore restore and that backup`,
    );
  }
  const [present] = staged ? [] : directory.databaseFiles.filter(existsSync);
  const moved = join(directory.path, backupName(`${environment}-replaced`, by.at));
  const replaced = staged ? staged.replaced : present && moved;
  const isRestored = staged && !existsSync(join(restore, basename(store)));
  // The first candidate is the database from before the restore, which may have been moved away.
  const candidates = [replaced, isRestored ? undefined : directory.path, laterBackup(path, environment)];
  const stores = candidates.flatMap((place) => (place ? join(place, basename(store)) : []));
  const later = stores.find(existsSync);
  return {
    directory,
    ...backup,
    /** The names of the copies. */
    files: [quotaStore, store].map((file) => basename(file)).filter((name) => existsSync(join(path, name))),
    /** Whether a server will migrate the database when it starts. */
    needsMigration: schema.version < schema.supportedVersion,
    /** The directory to which the present databases move; undefined if there are none. */
    replaced,
    /** Why the restore is impossible, although it could be planned. */
    obstacle:
      present === undefined || request.replace
        ? undefined
        : `${present} exists, and a restore overwrites nothing; with --replace, the present databases are moved to another directory first`,
    /** Whether the backup has an audit trail, which early releases lacked. */
    hasAuditTrail: facts.rows["audit"] !== undefined,
    /** Whether this completes an interrupted restore. */
    isContinued: staged !== undefined,
    /** The path of a later state of the same data; undefined if none exists. */
    later,
    /** How the keys differ from the later state; undefined if none exists. */
    keys: later === undefined ? undefined : differencesOf(join(path, basename(store)), later, by.at),
  };
}

/** Finds the given backup, or the newest in a directory of backups. */
async function findBackup(request: RestoreRequest) {
  const { from, allowOlder } = request;
  const { environment } = request.directory;
  /** The reasons why newer backups are skipped. */
  const skipped: string[] = [];
  if (isBackup(from)) return { ...(await readAndVerify(from, request)), skipped };
  for (const path of listBackups(from, environment, () => true).toReversed()) {
    try {
      return { ...(await readAndVerify(path, request)), skipped };
    } catch (error) {
      if (error instanceof RestoreRejection) throw error;
      const problem = messageOf(error);
      if (!allowOlder)
        throw new RestoreRejection(
          `${problem}; with --allow-older, the newest one that is complete is restored`,
        );
      skipped.push(problem);
    }
  }
  throw new RestoreRejection(skipped[0] ?? `there is no backup of ${environment} in ${from}`);
}

/** Reads and verifies a backup completely. An error other than a rejection means that it is incomplete or damaged. */
async function readAndVerify(path: string, { directory, onProgress }: RestoreRequest) {
  const { environment, files } = directory;
  const bytes = directory.databaseFiles.reduce((sum, file) => sum + bytesOf(join(path, basename(file))), 0);
  const description = await readBackup(path, (done) =>
    onProgress({ step: "comparing checksums", done, share: done / Math.max(1, bytes) }),
  );
  const { environment: actual } = description;
  if (actual !== environment) {
    throw new RestoreRejection(
      `the backup ${path} is of ${actual}, not of ${environment}; use --env ${actual}`,
    );
  }
  const check = async (file: string, migrations: readonly Migration[]) => {
    const onPoll = () => onProgress({ step: "checking the backup" });
    const facts = await callInThread("inspectDatabase", [join(path, basename(file))], onPoll);
    const [problem] = facts.problems;
    if (problem !== undefined) throw new Error(`the backup ${path} is damaged: ${problem}`);
    const schema = schemaState(facts.steps, migrations);
    const { rejection } = schema;
    if (rejection !== undefined)
      throw new RestoreRejection(`the backup ${path} cannot be used: ${rejection}`);
    return { facts, schema };
  };
  if (existsSync(join(path, basename(files.quotaStore)))) await check(files.quotaStore, QUOTA_MIGRATIONS);
  /** The facts about the database with the keys. */
  const checked = await check(files.store, SQLITE_MIGRATIONS);
  return { path, description, ...checked };
}

/** The newest backup next to the given one; undefined if the given one is the newest. */
function laterBackup(path: string, environment: Environment): string | undefined {
  const newest = listBackups(dirname(path), environment).at(-1);
  return newest === undefined || basename(newest) === basename(path) ? undefined : newest;
}

/** Compares the keys. Returns undefined if the later database is damaged, which may be the reason for the restore. */
function differencesOf(earlier: string, later: string, now: number): KeyDifferences | undefined {
  try {
    return keyDifferences(earlier, later, now);
  } catch {
    return undefined;
  }
}

/**
 * Plans a restore, shows the plan, and executes it. It holds the lock of the data directory, so that no server runs. If
 * it is interrupted at any time, the same call finishes it: first the copies are staged, then the present databases are
 * moved away, then the copies take their places.
 */
export async function restoreBackup(
  request: RestoreRequest,
  show: (plan: RestorePlan) => Promise<void>,
): Promise<void> {
  const { directory } = request;
  const { store, quotaStore } = directory.files;
  directory.create();
  using lock = await directory.lock();
  if (lock === undefined)
    throw new RestoreRejection(`a server is running on ${directory.name}; stop it first`);
  const plan = await planRestore(request);
  if (plan.obstacle !== undefined) throw new RestoreRejection(plan.obstacle);
  // An import, for example, would continue in the file that is moved away, and report success.
  const rejectOthers = () => {
    if (![store, quotaStore].some(isOpenElsewhere)) return;
    throw new RestoreRejection(
      `another command uses the databases in ${directory.name}; run this one again when it is done`,
    );
  };
  rejectOthers();
  await show(plan);
  if (!plan.isContinued) await stage(plan, request);
  // From here on, no command can begin.
  rejectOthers();
  moveAway(plan);
  moveIntoPlace(plan);
}

const REPLACED_FILE = "replaced-directory";

/**
 * Reads the staged restore: the verified copies, in a directory next to the databases that they will replace. While the
 * directory exists, no server starts, because the databases may be partly replaced. An interrupted restore continues
 * from it. Returns undefined if no restore was interrupted after it had begun to replace databases.
 */
function readStagedRestore({ path, files: { restore } }: DataDirectory) {
  if (!existsSync(restore)) return undefined;
  const name = readFileSync(join(restore, REPLACED_FILE), "utf8").trim();
  /** The directory of the databases from before the restore; undefined if there were none. */
  const replaced = name === "" ? undefined : join(path, name);
  return { description: readDescription(restore), replaced };
}

/** Stages the restore in one step. The copies are checked, because they may be on another disk than the backup. */
async function stage(plan: RestorePlan, { by, onProgress }: RestoreRequest): Promise<void> {
  const { directory, path, description, files, replaced, later, keys } = plan;
  const { restore, store } = directory.files;
  const replacedName = replaced === undefined ? null : basename(replaced);
  await createDirectory(restore, `${restore}.partial`, async (partial) => {
    for (const name of files) {
      const [from, to] = [join(path, name), join(partial, name)];
      const size = Math.max(1, bytesOf(from));
      await pollWhile(copyPrivately(from, to), () =>
        onProgress({ step: "copying", done: bytesOf(to), share: bytesOf(to) / size }),
      );
    }
    const copy = join(partial, basename(store));
    // Identifiers are never assigned twice. If the later database is damaged, the assigned ones are unknown.
    if (later !== undefined && keys !== undefined) skipAssignedIds(copy, later);
    // The entry is written to the copy, so that a restore has its audit entry exactly if it takes effect.
    const backup = basename(resolve(path));
    const after = { backup, backupCreatedAt: description.createdAt, replaced: replacedName };
    if (plan.hasAuditTrail) addAuditEntry(copy, { ...by, action: "data.restored", after });
    for (const name of files) await checkCopy(join(partial, name), onProgress);
    writeDurably(join(partial, DESCRIPTION_FILE), readFileSync(join(path, DESCRIPTION_FILE), "utf8"));
    writeDurably(join(partial, REPLACED_FILE), `${replacedName ?? ""}\n`);
  });
}

async function checkCopy(path: string, onProgress: OnProgress): Promise<void> {
  const onPoll = () => onProgress({ step: "checking the copy" });
  const { problems } = await callInThread("inspectDatabase", [path], onPoll);
  if (problems.length > 0) throw new Error(`the copy ${path} is damaged: ${problems[0]}`);
  syncToDisk(path);
}

/**
 * Moves the present databases away. A database that is in place while its copy is still staged is from before the
 * restore.
 */
function moveAway({ directory, replaced, files }: RestorePlan): void {
  if (replaced === undefined) return;
  const { restore } = directory.files;
  makeDirectory(replaced);
  inheritDirectoryOwner(replaced);
  for (const file of directory.databaseFiles) {
    const copy = basename(file).replace(/-(?:wal|shm)$/, "");
    const isRestored = files.includes(copy) && !existsSync(join(restore, copy));
    if (existsSync(file) && !isRestored) renameDurably(file, join(replaced, basename(file)));
  }
}

function moveIntoPlace({ directory, files }: RestorePlan): void {
  const { restore } = directory.files;
  for (const name of files) {
    const copy = join(restore, name);
    if (!existsSync(copy)) continue;
    const location = join(directory.path, name);
    renameDurably(copy, location);
    inheritDirectoryOwner(location);
  }
  // The directory is renamed before it is removed, because a directory without a description could not be continued.
  const done = `${restore}.partial`;
  removeDirectory(done);
  renameDurably(restore, done);
  removeDirectory(done);
  syncDirectory(directory.path);
}
