import { closeSync, openSync } from "node:fs";
import { giveToDirectoryOwner } from "../../archive/durable-files.ts";

/**
 * Creates an empty file that only its owner can read, unless the file exists. SQLite fills it, and gives its -wal and
 * -shm files the same mode and owner. An existing file is not even opened: closing it would drop the locks of this
 * process on it.
 */
export function createPrivateFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
    giveToDirectoryOwner(path);
  } catch {
    // It exists, or SQLite reports why it cannot be opened.
  }
}
