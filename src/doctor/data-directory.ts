import { accessSync, constants, readdirSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import { check, type Finding } from "./finding.ts";

const directory = check("data directory");
const space = check("disk space");

const OTHER_USERS = 0o077;
const LOW_BYTES = 1e9;
const TOO_LOW_BYTES = 1e8;

export function checkDataDirectory(storage: StorageConfig): Finding[] {
  const { dataDir } = storage;
  const stats = statSync(dataDir, { throwIfNoEntry: false });
  if (stats === undefined) return [directory.ok(`${dataDir} does not exist yet; the server creates it`)];
  if (!stats.isDirectory()) {
    return [
      directory.error(`${dataDir} is not a directory`, "choose another --data, or move that file away"),
    ];
  }
  if (!isWritable(dataDir)) {
    return [
      directory.error(
        `${dataDir} is not writable for the user who runs this command`,
        `run the command as the user of the server, or give the directory to that user: chown -R USER ${dataDir}`,
      ),
    ];
  }
  return [
    ...openToOthers(dataDir, stats.mode),
    ...ofOtherUsers(dataDir, stats.uid),
    ...interrupted(storage),
    ...freeSpace(dataDir),
  ];
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Such as those that root has copied into the directory. */
function ofOtherUsers(dataDir: string, owner: number): Finding[] {
  const files = readdirSync(dataDir)
    .map((name) => join(dataDir, name))
    .filter((path) => (statSync(path, { throwIfNoEntry: false })?.uid ?? owner) !== owner);
  if (files.length === 0) return [];
  const names = files.join(" ");
  return [
    directory.warning(
      `${files.join(", ")} ${files.length === 1 ? "belongs" : "belong"} to another user than the directory`,
      `give them to the user of the server: chown --reference=${dataDir} ${names}`,
    ),
  ];
}

function openToOthers(dataDir: string, mode: number): Finding[] {
  if ((mode & OTHER_USERS) !== 0) {
    return [directory.warning(`other users have access to ${dataDir}`, `chmod 700 ${dataDir}`)];
  }
  const open = readdirSync(dataDir)
    .map((name) => join(dataDir, name))
    .filter((path) => ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & OTHER_USERS) !== 0);
  return open.length > 0
    ? [directory.warning(`other users have access to ${open.join(", ")}`, `chmod go= ${open.join(" ")}`)]
    : [directory.ok(`${dataDir} is writable, and only its owner has access`)];
}

function interrupted(storage: StorageConfig): Finding[] {
  return statSync(pathsOf(storage).restore, { throwIfNoEntry: false }) === undefined
    ? []
    : [directory.error("a restore was interrupted", "run the same petstore restore command again")];
}

function freeSpace(dataDir: string): Finding[] {
  const { bavail, bsize } = statfsSync(dataDir);
  const bytes = bavail * bsize;
  const free = `${(bytes / 1e9).toFixed(1)} GB are free on the disk of ${dataDir}`;
  const remedy = "free space or enlarge the disk: without space, every write gets 503";
  if (bytes < TOO_LOW_BYTES) return [space.error(free, remedy)];
  return [bytes < LOW_BYTES ? space.warning(free, remedy) : space.ok(free)];
}
