import { SQLiteError } from "bun:sqlite";
import { accessSync, constants, statfsSync } from "node:fs";
import { dirname } from "node:path";
import { Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import { isLink, LINK_PROBLEM } from "../../runtime/own-files.ts";
import { systemErrorField } from "../../runtime/system-error.ts";

/** Error codes after which the same call can succeed later, by itself or after an operator has freed space. */
const TRANSIENT = {
  BUSY: 5,
  LOCKED: 6,
  NOMEM: 7,
  /** The disk was remounted after errors, or its permissions changed. */
  READONLY: 8,
  IOERR: 10,
  FULL: 13,
  /** No file descriptors are left. */
  CANTOPEN: 14,
  /** Too many processes compete for a lock. */
  PROTOCOL: 15,
} as const;
const TRANSIENT_ERRORS: ReadonlySet<number | undefined> = new Set(Object.values(TRANSIENT));
const { BUSY, READONLY, IOERR, FULL, CANTOPEN } = TRANSIENT;
/** The transient errors that a full disk or a read-only file system can cause. */
const DISK_ERRORS: ReadonlySet<number | undefined> = new Set([READONLY, IOERR, CANTOPEN]);
/** With less free space, not even the files next to a database can be created. */
const LITTLE_SPACE_BYTES = 128 * 1024;

const DISK = {
  access: (directory: string) => accessSync(directory, constants.W_OK),
  free(directory: string) {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize;
  },
};

/** The low byte of the extended error code. */
function primaryCode(error: unknown): number | undefined {
  return error instanceof SQLiteError ? error.errno & 0xff : undefined;
}

/** Turns a transient error of SQLite into Unavailable; returns every other error as it is. */
export function sqliteUnavailable(error: unknown, path?: string): unknown {
  if (!TRANSIENT_ERRORS.has(primaryCode(error))) return error;
  return new Unavailable(`SQLite: ${describeSqliteError(error, path)}`, { cause: error });
}

/** Names a full disk and a read-only file system, which SQLite often reports as "disk I/O error". */
function describeSqliteError(error: unknown, path?: string, disk = DISK): string {
  const code = primaryCode(error);
  if (code === FULL) return "the disk is full";
  const problem = path !== undefined && DISK_ERRORS.has(code) ? diskProblem(dirname(path), disk) : undefined;
  return problem ?? messageOf(error);
}

/** Makes an error that names the file. It omits the error of SQLite if the disk is full or read-only. */
export function failureOf(task: string, path: string, failure: unknown, disk = DISK): Error {
  if (isLink(path)) return new Error(`cannot ${task} ${path}: ${LINK_PROBLEM}`);
  const error = failure instanceof Unavailable ? failure.cause : failure;
  const reason = describeSqliteError(error, path, disk);
  const isNamed = reason !== messageOf(error);
  return new Error(`cannot ${task} ${path}: ${reason}`, isNamed ? {} : { cause: error });
}

function diskProblem(directory: string, { access, free }: typeof DISK): string | undefined {
  try {
    access(directory);
    return free(directory) < LITTLE_SPACE_BYTES ? "the disk is full" : undefined;
  } catch (error) {
    return systemErrorField(error, "code") === "EROFS"
      ? `the file system of ${directory} is read-only`
      : undefined;
  }
}

/** Whether another process held the lock. Nothing has been written in that case. */
export function isBusy(error: unknown): boolean {
  return primaryCode(error instanceof Unavailable ? error.cause : error) === BUSY;
}

/** The extended codes of a sync that has failed, of a file and of a directory. */
const SYNC_ERRORS: ReadonlySet<number | undefined> = new Set([1034, 1290]);

/** Whether the disk has not confirmed what was written, so that nobody knows what is on it. */
export function isSyncFailure(error: unknown): boolean {
  const cause = error instanceof Unavailable ? error.cause : error;
  return cause instanceof SQLiteError && SYNC_ERRORS.has(cause.errno);
}
