import { closeSync, fsyncSync, lchownSync, openSync, renameSync, statSync } from "node:fs";
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
export function giveToDirectoryOwner(path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  lchownSync(path, uid, gid);
}
