import { closeSync, fsyncSync, lchownSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Waits until a file, or the names in a directory, are on the disk. This process must have no database open in the
 * file.
 */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Renames a file or a directory. After a power failure it has either its old or its new name. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  syncToDisk(dirname(to));
  if (dirname(from) !== dirname(to)) syncToDisk(dirname(from));
}

/**
 * Makes the owner of the directory the owner of a file, so that files of commands that root runs belong to the user of
 * the server. A symbolic link is not followed: that user could have it point to somebody else's file.
 */
export function inheritDirectoryOwner(path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  lchownSync(path, uid, gid);
}

/** Renames a closed database to its final name, in the same directory. */
export function publishDatabase(from: string, to: string): void {
  syncToDisk(from);
  removeLog(from);
  renameDurably(from, to);
}

/** Removes a database and the files that SQLite keeps next to it. */
export function removeDatabase(path: string): void {
  rmSync(path, { force: true });
  removeLog(path);
}

/** Removes the files that SQLite keeps next to a database. */
export function removeLog(path: string): void {
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
}
