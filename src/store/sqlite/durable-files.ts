import { existsSync } from "node:fs";
import { removeFile, renameDurably, syncToDisk } from "../../runtime/own-files.ts";

/** Renames a closed database to its final name, in the same directory. */
export function publishDatabase(from: string, to: string): void {
  syncToDisk(from);
  removeLog(from);
  // SQLite would apply the log of a database that somebody has moved away or deleted to this one.
  if (!existsSync(to)) moveAway(to);
  renameDurably(from, to);
}

/** Gives a database and the files that SQLite keeps next to it other names, as far as they exist. */
function moveAway(path: string): void {
  const time = new Date().toISOString().replaceAll(":", "");
  for (const suffix of ["-wal", "-shm", "-journal", ""]) {
    const from = path + suffix;
    if (existsSync(from)) renameDurably(from, `${path}.before-${time}${suffix}`);
  }
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
