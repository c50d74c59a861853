/**
 * The copies that a restore has verified, in a directory beside the databases that they will replace. While the
 * directory exists, no server starts: the databases may be partly replaced. An interrupted restore continues from it.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import { renameDurably, syncToDisk } from "./durable-files.ts";
import { type BackupDescription, DESCRIPTION_FILE, readDescription } from "./backup-folder.ts";

const REPLACED_FILE = "replaced-directory";

export interface StagedRestore {
  readonly description: BackupDescription;
  /** Where the databases before the restore are or go; undefined if there were none. */
  readonly replaced: string | undefined;
  readonly isStoreReplaced: boolean;
}

/** Undefined if no restore was interrupted after it had begun to replace databases. */
export function readStagedRestore(storage: StorageConfig): StagedRestore | undefined {
  const { restore, store } = pathsOf(storage);
  if (!existsSync(restore)) return undefined;
  const replaced = readFileSync(join(restore, REPLACED_FILE), "utf8").trim();
  return {
    description: readDescription(restore),
    replaced: replaced === "" ? undefined : join(storage.dataDir, replaced),
    isStoreReplaced: !existsSync(store) || !existsSync(join(restore, basename(store))),
  };
}

/** Fills a new directory with `copy` and makes it the staged restore, all at once. */
export async function stageRestore(
  storage: StorageConfig,
  { backup, replaced }: { readonly backup: string; readonly replaced: string | undefined },
  copy: (directory: string) => Promise<void>,
): Promise<void> {
  const { restore } = pathsOf(storage);
  const partial = `${restore}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true, mode: 0o700 });
  try {
    await copy(partial);
    const description = readFileSync(join(backup, DESCRIPTION_FILE), "utf8");
    writePrivate(join(partial, DESCRIPTION_FILE), description);
    writePrivate(join(partial, REPLACED_FILE), replaced === undefined ? "\n" : `${basename(replaced)}\n`);
    syncToDisk(partial);
    renameDurably(partial, restore);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  }
}

function writePrivate(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600, flag: "wx" });
  syncToDisk(path);
}
