/* A restore copies a backup, verifies the copy, adds an audit entry and renames it. Until then nothing has changed. */

import { basename, dirname, resolve } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { messageOf } from "../runtime/message-of.ts";
import type { DataLocation } from "../data-location.ts";
import type { Attribution } from "../domain/audit.ts";
import { schemaState } from "../store/sql/migrations.ts";
import { removeDatabase } from "../store/sqlite/durable-files.ts";
import { SQLITE_MIGRATIONS } from "../store/sql/migration-steps.ts";
import { readBackupQuotas } from "../store/sqlite/backup-tables.ts";
import { completeRestoredCopy } from "../store/sqlite/snapshot.ts";
import { isBackup, isEarlierBackup, listBackups, verifyBackup } from "./backup-files.ts";
import type { OnProgress } from "./progress.ts";
import { compareFiles, type RestoreTarget, RestoreRejection, targetOf } from "./restore-target.ts";

export type RestorePlan = Awaited<ReturnType<typeof planFor>>;

interface RestoreRequest {
  readonly location: DataLocation;
  /** A backup, or a directory of backups, whose newest one is restored. */
  readonly from: string;
  /** Whether the present database may get another name. */
  readonly replace: boolean;
  /** Whether an older backup may be restored if the newest is incomplete or damaged. */
  readonly allowOlder: boolean;
  readonly by: Attribution;
  readonly onProgress: OnProgress;
}

/** A request, and the file that the backup is copied to before it is read. Undefined if nothing may change. */
interface Reading extends RestoreRequest {
  readonly copy?: string;
}

/** Reads and verifies the backup, and plans the restore. It changes nothing. */
export function planRestore(request: RestoreRequest): Promise<RestorePlan> {
  return planFor(request, targetOf(request.location));
}

async function planFor(request: Reading, target: RestoreTarget) {
  const { by } = request;
  const backup = await findBackup(request);
  const { path, database, schema } = backup;
  const isPresent = await target.exists();
  const later = laterBackup(path, request);
  const comparison = isPresent
    ? await target.compare(database, by.at)
    : later === undefined
      ? undefined
      : compareFiles(database, later, by.at);
  return {
    ...backup,
    /** The name of the database that the backup is restored to. */
    to: target.name,
    /** Whether a server will migrate the database when it starts. */
    needsMigration: !target.isMigrated && schema.version < schema.supportedVersion,
    /** The name that the present database gets; undefined if there is none. */
    replaced: isPresent ? await target.nameReplaced(by.at) : undefined,
    /** Why the restore is impossible, although it could be planned. */
    obstacle: isPresent && !request.replace ? overwrites(target) : undefined,
    /** How the keys differ from a later state of the same data; undefined if none is known. */
    comparison,
  };
}

const overwrites = ({ name }: RestoreTarget): string =>
  `${name} has data, and a restore overwrites nothing; with --replace, that gets another name first`;

/** Finds the given backup, or the newest in a directory of backups. */
async function findBackup(request: Reading) {
  const { from, allowOlder, location } = request;
  const { environment } = location;
  /** The reasons why newer backups are skipped. */
  const skipped: string[] = [];
  if (isBackup(from)) return { ...(await verifiedBackupOf(from, request)), skipped };
  for (const path of listBackups(from, environment).toReversed()) {
    try {
      return { ...(await verifiedBackupOf(path, request)), skipped };
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
  throw new RestoreRejection(
    skipped[0] ??
      (isEarlierBackup(from)
        ? `${from} has a backup of a release before 1.3; restore it with petstore 1.3, and upgrade then`
        : `there is no backup of ${environment} in ${from}`),
  );
}

/** A backup that can be restored here. An error other than a rejection means that it is incomplete or damaged. */
async function verifiedBackupOf(path: string, { location, copy, onProgress }: Reading) {
  const { environment } = location;
  // That of a newer backup, which is damaged.
  if (copy !== undefined) removeDatabase(copy);
  const backup = await verifyBackup(path, { ...(copy !== undefined && { copy }), onProgress });
  const { environment: actual } = backup.description;
  if (actual !== environment) {
    throw new RestoreRejection(
      `the backup ${path} is of ${actual}, not of ${environment}; use --env ${actual}`,
    );
  }
  const schema = schemaState(backup.facts.steps, SQLITE_MIGRATIONS);
  const isNewer = schema.version > schema.supportedVersion;
  const loss =
    isNewer && location.postgres !== undefined
      ? `a restore to PostgreSQL by petstore ${packageJson.version} would lack what is new in its tables; restore it with the release that made it`
      : undefined;
  const obstacle = schema.rejection ?? loss;
  if (obstacle !== undefined) throw new RestoreRejection(`the backup ${path} cannot be used: ${obstacle}`);
  return { ...backup, schema };
}

/** The newest backup next to the given one; undefined if the given one is the newest. */
function laterBackup(path: string, { location }: RestoreRequest): string | undefined {
  const newest = listBackups(dirname(path), location.environment).at(-1);
  return newest === undefined || basename(newest) === basename(path) ? undefined : newest;
}

/**
 * Plans a restore, shows the plan, and executes it. It holds the locks of the data directory and of the data, so that
 * no server runs there. The copy takes the place of the present database in one step.
 */
export async function restoreBackup(
  request: RestoreRequest,
  show: (plan: RestorePlan) => Promise<void>,
): Promise<void> {
  const { location, by, onProgress } = request;
  const { directory } = location;
  directory.create();
  using lock = await directory.lock();
  if (lock === undefined)
    throw new RestoreRejection(`a server is running on ${directory.name}; stop it first`);
  const target = targetOf(location);
  if (!request.replace && (await target.exists())) throw new RestoreRejection(overwrites(target));
  // From here on nobody gets an identifier that the restored data would assign again.
  await using dataLock = await target.lock();
  const copy = directory.files.restoredCopy;
  try {
    const plan = await planFor({ ...request, copy }, target);
    if (plan.obstacle !== undefined) throw new RestoreRejection(plan.obstacle);
    await show(plan);
    const quotas = readBackupQuotas(copy);
    completeCopy(plan, by);
    await target.publish(copy, { replaced: plan.replaced, quotas, lock: dataLock, by, onProgress });
  } finally {
    removeDatabase(copy);
  }
}

/** Adds the audit entry of a restore to the copy, so that the restore has it exactly if it takes effect. */
function completeCopy(plan: RestorePlan, by: Attribution): void {
  const { path, database, description, replaced, comparison } = plan;
  const after = {
    backup: basename(resolve(path)),
    backupCreatedAt: description.createdAt,
    replaced: replaced === undefined ? null : basename(replaced),
  };
  const entry = { ...by, action: "data.restored", after } as const;
  completeRestoredCopy(database, { assigned: comparison?.assigned ?? [], entry });
}
