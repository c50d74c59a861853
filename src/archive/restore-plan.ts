import { existsSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import type { Attribution } from "../domain/audit.ts";
import { type KeyDifferences, keyDifferences } from "../store/sqlite/transfer/earlier-copy.ts";
import { MIGRATIONS } from "../store/sqlite/migrations.ts";
import type { DatabaseFacts } from "../store/sqlite/transfer/snapshot.ts";
import { Steps, type WorkProgress } from "./steps.ts";
import { latestVersion } from "../store/migrations.ts";
import { type BackupDescription, backupName, isBackup, listBackups, readBackup } from "./backup-folder.ts";
import { COSTS } from "./costs.ts";
import type { DatabaseThread } from "./database-thread.ts";
import { readStagedRestore, type StagedRestore } from "./staged-restore.ts";

/** Why a backup cannot be restored, for the operator. */
export class RestoreRejection {
  constructor(readonly message: string) {}
}

export interface RestorePlan {
  readonly storage: StorageConfig;
  /** The directory of the backup. */
  readonly path: string;
  readonly description: BackupDescription;
  /** Of the copy of the database with the keys. */
  readonly facts: DatabaseFacts;
  /** The names of the copies, without the directory. */
  readonly files: readonly string[];
  /** Whether a server will migrate the database when it starts. */
  readonly needsMigration: boolean;
  /** The directory to which the present databases move; undefined if there are none. */
  readonly replaced: string | undefined;
  /** Whether the backup has an audit trail; early releases had none. */
  readonly hasAuditTrail: boolean;
  /** Whether this finishes a restore that was interrupted. */
  readonly isContinued: boolean;
  /** A later state of the same data; undefined if there is none. */
  readonly later: string | undefined;
  /** Undefined if nothing is known of what came after the backup. */
  readonly keys: KeyDifferences | undefined;
}

export interface RestoreRequest {
  readonly storage: StorageConfig;
  /** A backup, or a directory of backups, of which the newest is meant. */
  readonly from: string;
  /** Whether the present databases may be moved away. */
  readonly replace: boolean;
  readonly by: Attribution;
  /** In bytes. Once for the verification of the backup, and once for what follows. */
  readonly onProgress: (progress: WorkProgress) => void;
}

/** Reads and verifies the backup, and decides what a restore would do. Changes nothing. */
export async function planRestore(
  request: RestoreRequest,
  thread: DatabaseThread,
): Promise<RestorePlan | RestoreRejection> {
  const { storage, by } = request;
  const { environment } = storage;
  const backup = await findBackup(request, thread);
  if (backup instanceof RestoreRejection) return backup;
  const { path, description, facts } = backup;
  const staged = readStagedRestore(storage);
  const present = databaseFiles(storage).filter(existsSync);
  const rejection = conflictOf({ request, description, staged, present });
  if (rejection) return rejection;
  const { store, usageStore } = pathsOf(storage);
  const copies = [usageStore, store].map((file) => basename(file));
  const moved = join(
    dirname(store),
    backupName(environment, by.at).replace(environment, `${environment}-replaced`),
  );
  const replaced = staged ? staged.replaced : present.length > 0 ? moved : undefined;
  const later = laterDatabase({ storage, path, replaced, isStoreReplaced: staged?.isStoreReplaced === true });
  return {
    storage,
    path,
    description,
    facts,
    files: copies.filter((name) => existsSync(join(path, name))),
    needsMigration: facts.schemaVersion < latestVersion(MIGRATIONS),
    replaced,
    hasAuditTrail: facts.rows["audit"] !== undefined,
    isContinued: staged !== undefined,
    later,
    keys: later === undefined ? undefined : differencesOf(join(path, basename(store)), later),
  };
}

type FoundBackup = Pick<RestorePlan, "path" | "description" | "facts">;

/** Verifies all of it. */
async function findBackup(
  { storage, from, onProgress }: RestoreRequest,
  thread: DatabaseThread,
): Promise<FoundBackup | RestoreRejection> {
  const { environment } = storage;
  const path = isBackup(from) ? from : listBackups(from, environment).at(-1);
  if (path === undefined) return new RestoreRejection(`there is no backup of ${environment} in ${from}`);
  const store = join(path, basename(pathsOf(storage).store));
  const bytes = databaseFiles(storage).reduce((sum, file) => sum + bytesOf(join(path, basename(file))), 0);
  const steps = new Steps(bytes * COSTS.checksum + bytesOf(store) * COSTS.check, onProgress);
  const description = await steps.run(
    { name: "comparing checksums", cost: bytes * COSTS.checksum },
    (report) => readBackup(path, (done) => report(done / Math.max(1, bytes), done)),
  );
  const { environment: actual } = description;
  if (actual !== environment) {
    return new RestoreRejection(
      `the backup ${path} is of ${actual}, not of ${environment}; use --env ${actual}`,
    );
  }
  const facts = await steps.run(
    { name: "checking the backup", cost: bytesOf(store) * COSTS.check },
    (report) => thread.inspect(store, () => report(0)),
  );
  const [problem] = facts.problems;
  if (problem !== undefined) return new RestoreRejection(`the backup ${path} is damaged: ${problem}`);
  const supported = latestVersion(MIGRATIONS);
  if (facts.schemaVersion > supported) {
    return new RestoreRejection(
      `the backup has schema version ${facts.schemaVersion}, and this petstore supports versions up to ${supported}; upgrade petstore`,
    );
  }
  return { path, description, facts };
}

/** 0 if there is no such file. */
export function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

interface ConflictOptions {
  readonly request: RestoreRequest;
  readonly description: BackupDescription;
  readonly staged: StagedRestore | undefined;
  readonly present: readonly string[];
}

function conflictOf({
  request,
  description,
  staged,
  present,
}: ConflictOptions): RestoreRejection | undefined {
  if (staged && staged.description.createdAt !== description.createdAt) {
    return new RestoreRejection(
      `a restore of the backup of ${staged.description.createdAt} was interrupted; finish it first, with petstore restore and that backup`,
    );
  }
  if (staged || request.replace || present.length === 0) return undefined;
  return new RestoreRejection(
    `${present[0]} exists, and a restore overwrites nothing; with --replace, the present databases are moved to another directory first`,
  );
}

/** The databases with the files that SQLite keeps beside them. */
export function databaseFiles(storage: StorageConfig): string[] {
  const { store, usageStore } = pathsOf(storage);
  return [store, usageStore].flatMap((path) => [path, `${path}-wal`, `${path}-shm`]);
}

interface LaterOptions {
  readonly storage: StorageConfig;
  readonly path: string;
  readonly replaced: string | undefined;
  /** Whether an interrupted restore has moved the present database away. */
  readonly isStoreReplaced: boolean;
}

/** The present database, or else the newest backup beside the given one if it is a later one. */
function laterDatabase({ storage, path, replaced, isStoreReplaced }: LaterOptions): string | undefined {
  const { store } = pathsOf(storage);
  const name = basename(store);
  const present = isStoreReplaced && replaced !== undefined ? join(replaced, name) : store;
  if (existsSync(present)) return present;
  const newest = listBackups(dirname(path), storage.environment).at(-1);
  return newest === undefined || basename(newest) <= basename(path) ? undefined : join(newest, name);
}

/** Undefined if the later database is damaged, which may be why a backup is restored. */
function differencesOf(earlier: string, later: string): KeyDifferences | undefined {
  try {
    return keyDifferences(earlier, later);
  } catch {
    return undefined;
  }
}
