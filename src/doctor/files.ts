/* The data directory, the access log, and the limit of open files. */

import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type DataDirectory, existingParent, notWritable } from "../data-directory.ts";
import { maxConnectionsWithin } from "../http1/index.ts";
import { OTHER_USERS, statOf } from "../runtime/own-files.ts";
import { grouped } from "../text/formatting.ts";
import { check, type Finding, problemsOr } from "./finding.ts";

export function isAccessible(path: string, mode = constants.R_OK | constants.W_OK): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

const data = check("data directory");
const space = check("disk space");

const LOW_BYTES = 1e9;
const TOO_LOW_BYTES = 1e8;

export function checkDataDirectory(directory: DataDirectory): Finding[] {
  const { path } = directory;
  const stats = statSync(path, { throwIfNoEntry: false });
  const accessMode = constants.R_OK | constants.W_OK | constants.X_OK;
  if (stats === undefined) {
    const parent = existingParent(path);
    return [
      isAccessible(parent, accessMode)
        ? data.ok(`${path} does not exist yet; the server creates it`)
        : data.error(...notWritable(parent)),
      freeSpace(directory),
    ];
  }
  if (!stats.isDirectory())
    return [data.error(`${path} is not a directory`, "choose another --data, or move that file away")];
  if (!isAccessible(path, accessMode)) return [data.error(...notWritable(path))];
  const files = readdirSync(path).flatMap((name) => {
    const file = join(path, name);
    const stat = statOf(file);
    return stat && !stat.isSymbolicLink() ? { file, mode: stat.mode, uid: stat.uid } : [];
  });
  const open = files.filter(({ mode }) => (mode & OTHER_USERS) !== 0).map(({ file }) => file);
  // Root may have copied such files into the directory.
  const ofOtherUsers = files.filter(({ uid }) => uid !== stats.uid).map(({ file }) => file);
  return [
    ...problemsOr(data.ok(`${path} is writable, and only its owner has access`), [
      (stats.mode & OTHER_USERS) !== 0
        ? data.warning(`other users have access to ${path}`, `chmod 700 ${path}`)
        : open.length > 0 &&
          data.warning(`other users have access to ${open.join(", ")}`, `chmod go= ${open.join(" ")}`),
    ]),
    ...(ofOtherUsers.length === 0
      ? []
      : [
          data.warning(
            `${ofOtherUsers.join(", ")} ${ofOtherUsers.length === 1 ? "belongs" : "belong"} to another user than the directory`,
            `give them to the user of the server: chown --reference=${path} ${ofOtherUsers.join(" ")}`,
          ),
        ]),
    freeSpace(directory),
  ];
}

function freeSpace(directory: DataDirectory): Finding {
  const bytes = directory.freeBytes();
  const free = `${(bytes / 1e9).toFixed(1)} GB are free on the disk of ${existingParent(directory.path)}`;
  const remedy = "free space or enlarge the disk: without space, every write gets 503";
  if (bytes < TOO_LOW_BYTES) return space.error(free, remedy);
  return bytes < LOW_BYTES ? space.warning(free, remedy) : space.ok(free);
}

const accessLog = check("access log");

/** Checks the access log. The server creates the file, but not its directory. */
export function checkAccessLog(path: string | undefined): Finding[] {
  if (path === undefined || path === "-") return [];
  const stats = statSync(path, { throwIfNoEntry: false });
  const parent = dirname(resolve(path));
  if (stats === undefined && !statSync(parent, { throwIfNoEntry: false })?.isDirectory())
    return [accessLog.error(`the directory ${parent} does not exist`, `create it: mkdir -p ${parent}`)];
  if (stats?.isDirectory())
    return [accessLog.error(`${path} is a directory`, "choose another --access-log, such as a file in it")];
  const place = stats === undefined ? parent : path;
  const needed = stats === undefined ? constants.W_OK | constants.X_OK : constants.W_OK;
  if (!isAccessible(place, needed)) {
    const [problem] = notWritable(place);
    return [accessLog.error(problem, `run the command as the user of the server, or: chown USER ${place}`)];
  }
  return problemsOr(accessLog.ok(`lines can be appended to ${path}`), [
    stats?.isFile() === true &&
      (stats.mode & OTHER_USERS) !== 0 &&
      accessLog.warning(`other users have access to ${path}`, `chmod 600 ${path}`),
  ]);
}

const openFiles = check("open files");

/**
 * The number of connections that suffices if the operator has not set one. A server runs with fewer than the maximum.
 */
const ENOUGH_CONNECTIONS = 10_000;

export function checkOpenFiles(
  maxConnections: number | undefined,
  possible = maxConnectionsWithin(maxConnections),
): Finding {
  const wanted = maxConnections ?? ENOUGH_CONNECTIONS;
  if (possible >= wanted) return openFiles.ok(`the limit allows ${grouped(possible)} connections`);
  return openFiles.warning(
    `the limit allows ${grouped(possible)} of ${grouped(wanted)} connections`,
    "raise it: LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 in a shell",
  );
}
