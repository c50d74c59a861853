import { closeSync, fsyncSync, lchownSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** Waits until a file, or the names in a directory, are on the disk. No database of this process may be in the file. */
export function syncToDisk(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Renames a file or a directory. After a power failure it has one of its two names. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  syncToDisk(dirname(to));
  if (dirname(from) !== dirname(to)) syncToDisk(dirname(from));
}

/**
 * A command that root runs leaves its files to the user of the server, who owns their directory. A link of that user
 * does not get them the file of somebody else.
 */
export function inheritDirectoryOwner(path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  lchownSync(path, uid, gid);
}

/** Gives a database that is closed its name. */
export function publishDatabase(from: string, to: string): void {
  syncToDisk(from);
  removeLog(from);
  renameDurably(from, to);
  inheritDirectoryOwner(to);
}

/** Removes a database with the files that SQLite keeps beside it. */
export function removeDatabase(path: string): void {
  rmSync(path, { force: true });
  removeLog(path);
}

/** Removes what SQLite keeps beside a database. */
export function removeLog(path: string): void {
  for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
}
