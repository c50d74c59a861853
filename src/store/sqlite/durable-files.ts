import { removeFile, renameDurably, syncToDisk } from "../../runtime/own-files.ts";

/** Renames a closed database to its final name, in the same directory. */
export function publishDatabase(from: string, to: string): void {
  syncToDisk(from);
  removeLog(from);
  renameDurably(from, to);
}

/** Removes a database and the files that SQLite keeps next to it. */
export function removeDatabase(path: string): void {
  removeFile(path);
  removeLog(path);
}

/** Removes the files that SQLite keeps next to a database. */
export function removeLog(path: string): void {
  for (const suffix of ["-wal", "-shm", "-journal"]) removeFile(path + suffix);
}
