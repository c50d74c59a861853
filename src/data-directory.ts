import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathsOf, readDatabaseUrl, type StorageConfig, valkeyOf } from "./config/config.ts";
import type { HighestTimeline } from "./store/postgres/primary.ts";
import { giveToDirectoryOwner } from "./store/sqlite/durable-files.ts";

export const OTHER_USERS = 0o077;

/** What is wrong with a directory, and what to do, as a server and petstore doctor say it. */
export function notWritable(path: string): readonly [problem: string, remedy: string] {
  return [
    `${path} is not writable for the user who runs this command`,
    `run the command as the user of the server, or give the directory to that user: chown -R USER ${path}`,
  ];
}

/** The directory, or the one in which it will be created. */
export function existingParent(path: string): string {
  return existsSync(path) ? path : existingParent(dirname(resolve(path)));
}

/** Other errors, such as a read-only file system, are those of the first file that is written. */
export function rejectUnwritable(path: string, access = accessSync): void {
  let code: unknown;
  try {
    access(`${path}/.`, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    code = Reflect.get(Object(error), "code");
  }
  if (code === "EACCES") throw new Error(notWritable(path).join("; "));
}

/**
 * Creates the directory if it is missing, and makes the files of earlier versions private: they hold the names and
 * hashes of keys, and whoever can read a file can lock it. Returns the files that were not private.
 */
export function prepareDataDirectory(storage: StorageConfig): readonly string[] {
  rejectUnwritable(existingParent(storage.dataDir));
  mkdirSync(storage.dataDir, { recursive: true, mode: 0o700 });
  rejectInterruptedRestore(storage);
  const { lock, adminToken, adminUrl } = pathsOf(storage);
  const files = [...databaseFiles(storage), lock, adminToken, adminUrl];
  const open = files.filter((path) => isOpenToOthers(statOf(path)));
  for (const path of open) chmodSync(path, 0o600);
  return open;
}

/** Without this, a server would create an empty database where the restored one is about to be. */
export function rejectInterruptedRestore(storage: StorageConfig): void {
  if (!existsSync(pathsOf(storage).restore)) return;
  throw new Error(
    `a restore to ${storage.dataDir} (${storage.environment}) was interrupted; run the same petstore restore command again`,
  );
}

/** For one server or one command that replaces databases. Undefined while another process has it. */
export async function lockDataDirectory(storage: StorageConfig) {
  const { acquireLock } = await import("./store/sqlite/process-lock.ts");
  const { lock, store, usageStore } = pathsOf(storage);
  return acquireLock(lock, [store, usageStore]);
}

/** For processes of this user, on the disk of the directory. */
export function freeBytes(dataDir: string): number {
  const { bavail, bsize } = statfsSync(dataDir);
  return bavail * bsize;
}

/** That there was a database of SQLite which is not here any more, and what to do about it. */
export function findLostDatabase(storage: StorageConfig) {
  const { dataDir, environment } = storage;
  const { store, rescued, usageStore, adminToken } = pathsOf(storage);
  if (existsSync(rescued)) {
    return {
      message: `${store} was deleted or replaced while a server used it; the server saved everything to ${rescued}`,
      remedy: `run rm -f ${store}* && mv ${rescued} ${store} to go on with it, or move it away`,
      isRescued: true,
    };
  }
  // Without its file, SQLite deletes the log.
  const names = existsSync(dataDir) && !statOf(store)?.size ? readdirSync(dataDir) : [];
  const left = names
    .map((name) => join(dataDir, name))
    .filter(
      (path) =>
        path === usageStore ||
        path === adminToken ||
        path.startsWith(join(dataDir, `${environment}-replaced-`)),
    );
  if (left.length === 0) return undefined;
  return {
    message: `${store} is missing or empty, but there was a database: see ${left.join(", ")}`,
    remedy: "restore a backup with petstore restore, or run petstore serve --new-database to begin anew",
    isRescued: false,
  };
}

/** Without this, a server would create an empty database where the lost one was. */
export function rejectLostDatabase(storage: StorageConfig): void {
  const lost = findLostDatabase(storage);
  if (lost === undefined || (storage.allowsNewDatabase && !lost.isRescued)) return;
  throw new Error(`${lost.message}; ${lost.remedy}`);
}

/** Replaces the file, so that it has neither the mode nor the target of what was there. The server can read root's. */
export function writePrivateFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  writeFileSync(path, text, { mode: 0o600, flag: "wx" });
  giveToDirectoryOwner(path);
}

/** Replaces the file in one step: whoever reads it gets all of the old text or all of the new. */
export function replacePrivateFile(path: string, text: string): void {
  const temporary = `${path}.${process.pid}`;
  try {
    writePrivateFile(temporary, text);
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** The mode of a data directory that is open to others: they can see its files, or even replace them. */
export function modeIfOpenToOthers({ dataDir }: StorageConfig): string | undefined {
  const mode = (statOf(dataDir)?.mode ?? 0) & 0o777;
  return (mode & OTHER_USERS) === 0 ? undefined : mode.toString(8).padStart(4, "0");
}

/** The databases with the files that SQLite keeps beside them. */
export function databaseFiles(storage: StorageConfig): string[] {
  const { store, usageStore } = pathsOf(storage);
  return [store, usageStore].flatMap((path) => [path, `${path}-wal`, `${path}-shm`]);
}

/** A file of another user is left as it is. */
function isOpenToOthers(stats: Stats | undefined): boolean {
  return stats !== undefined && (stats.mode & OTHER_USERS) !== 0 && stats.uid === process.getuid?.();
}

export function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** The database in PostgreSQL of an environment, and how its primary is found. */
export function postgresOf(storage: StorageConfig) {
  const { databaseUrl: url = "", environment: schema, acceptsPrimary: acceptsAny } = storage;
  const readUrl = () => readDatabaseUrl(storage) ?? url;
  return { url, readUrl, schema, acceptsAny, highestTimeline: highestTimelineOf(storage) };
}

/**
 * It is stored in the data directory and, if there is one, in Valkey, where the processes of all machines find it. One
 * that cannot be used is left out: an outage of Valkey prevents no start.
 */
function highestTimelineOf(storage: StorageConfig): HighestTimeline {
  const places = [fileTimeline(storage), ...(storage.limitsUrls ? [valkeyTimeline(storage)] : [])];
  return {
    async raise(timeline) {
      const stored = await Promise.allSettled(places.map((place) => place.raise(timeline)));
      return Math.max(...stored.map((each) => (each.status === "fulfilled" ? each.value : 0)));
    },
    async replace(timeline) {
      await Promise.allSettled(places.map((place) => place.replace(timeline)));
    },
  };
}

/** A command creates no directory for it. */
function fileTimeline(storage: StorageConfig): HighestTimeline {
  const { timeline: path } = pathsOf(storage);
  const replace = async (timeline: number) => {
    if (existsSync(storage.dataDir)) replacePrivateFile(path, `${timeline}\n`);
  };
  return {
    async raise(timeline) {
      const stored = existsSync(path) ? Number.parseInt(readFileSync(path, "utf8"), 10) || 0 : 0;
      if (timeline > stored) await replace(timeline);
      return Math.max(timeline, stored);
    },
    replace,
  };
}

function valkeyTimeline(storage: StorageConfig): HighestTimeline {
  const store = async (timeline: number, condition: "if higher" | "always") =>
    (await import("./rate-limit/valkey/maintenance.ts")).storeTimeline(
      valkeyOf(storage),
      timeline,
      condition,
    );
  return {
    raise: (timeline) => store(timeline, "if higher"),
    async replace(timeline) {
      await store(timeline, "always");
    },
  };
}
