/*
 * The files that this program makes for itself, and everything that changes a file's mode, owner or name. A directory
 * can belong to another user than the one who runs a command, often root, and its names can be links to any file of the
 * machine. So no function follows a link that has the name of a file: modes and owners change on a descriptor. Only the
 * directory may be a link. The exceptions, at the end, open what the user names.
 */

import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fdatasync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants;
/** The permissions of other users. */
export const OTHER_USERS = 0o077;
const PRIVATE_FILE = 0o600;
const PRIVATE_DIRECTORY = 0o700;
const MAX_TEXT_BYTES = 1024 * 1024;

/** Returns what has the name, which can be a link. Undefined if nothing has it. */
export function statOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** Returns the state of a directory, which a link can lead to. */
export function statDirectory(path: string): Stats {
  return statSync(path);
}

/** Opens a regular file. A pipe would otherwise stop the program until somebody writes to it. */
function openRegular(path: string, flags: number): number {
  const descriptor = openNamed(path, flags);
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw new Error(`${path} is not a regular file`);
}

function openNamed(path: string, flags: number): number {
  try {
    return openSync(path, flags | O_NOFOLLOW | O_NONBLOCK, PRIVATE_FILE);
  } catch (error) {
    if (isLink(path)) throw new Error(`${path}: ${LINK_PROBLEM}`, { cause: error });
    throw error;
  }
}

export const LINK_PROBLEM = "it is a symbolic link; only its directory may be one";

export function isLink(path: string): boolean {
  return statOf(path)?.isSymbolicLink() === true;
}

/** Runs `work` with a descriptor, and closes it. */
function withDescriptor<T>(descriptor: number, work: (descriptor: number) => T): T {
  try {
    return work(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Opens a file that exists, to wait for the disk. The caller closes the descriptor with `closeOwnFile`. */
export function openToSync(path: string): number {
  return openRegular(path, O_RDONLY);
}

export const closeOwnFile = closeSync;

/** Opens a file to read and write, which it creates if it is missing. */
export function openOwnFile(path: string): number {
  return openRegular(path, O_RDWR | O_CREAT);
}

/**
 * Creates a file that only its owner can read, and opens it. In a directory of another user, a file of root belongs to
 * that user, so that the server can read it. Throws if the name is taken.
 */
export function createFile(path: string): number {
  const descriptor = createFileOfThisUser(path);
  try {
    inheritOwner(descriptor, path);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/**
 * Creates a file that belongs to this user, also in a directory of another user, until `inheritOwner`: the other user
 * may not be meant to read what is written to it.
 */
export function createFileOfThisUser(path: string): number {
  return openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, PRIVATE_FILE);
}

/** Creates a file with a text, which is on the disk afterwards. Its name is when `renameDurably` has named another. */
export function writeNewFile(path: string, text: string): void {
  withDescriptor(createFile(path), (descriptor) => {
    writeFileSync(descriptor, text);
    disk.sync(descriptor);
  });
}

/**
 * Replaces the file in one step, or the link in its place. Readers get all of the old text or all of the new, also
 * after a power failure.
 */
export function replaceFile(path: string, text: string): void {
  makeDirectory(dirname(path));
  const temporary = `${path}.${process.pid}`;
  try {
    removeFile(temporary);
    writeNewFile(temporary, text);
    renameDurably(temporary, path);
  } finally {
    removeFile(temporary);
  }
}

/** Reads a short text. Undefined if the file does not exist. */
export function readOwnFile(path: string): string | undefined {
  if (statOf(path) === undefined) return undefined;
  return withDescriptor(openRegular(path, O_RDONLY), (descriptor) => {
    if (fstatSync(descriptor).size > MAX_TEXT_BYTES) throw new Error(`${path} is too large`);
    return readFileSync(descriptor, "utf8");
  });
}

/** Opens a file with a name that was found in a directory to read it. */
export function openFoundFile(path: string): number {
  return openRegular(path, O_RDONLY);
}

/**
 * Takes the permissions of other users from a file of this user. Returns whether they had any. Root changes nothing in
 * a directory of another user.
 */
export function makePrivate(path: string): boolean {
  if (!isOpenToOthers(statOf(path))) return false;
  if (process.getuid?.() === 0 && statSync(dirname(path)).uid !== 0) return false;
  return withDescriptor(openRegular(path, O_RDONLY), (descriptor) => {
    if (!isOpenToOthers(fstatSync(descriptor))) return false;
    fchmodSync(descriptor, PRIVATE_FILE);
    return true;
  });
}

function isOpenToOthers(stats: Stats | undefined): boolean {
  return stats?.isFile() === true && (stats.mode & OTHER_USERS) !== 0 && stats.uid === process.getuid?.();
}

/** Gives a file of root to whom its directory belongs. */
export function inheritOwner(descriptor: number, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  fchownSync(descriptor, uid, gid);
}

/**
 * Creates the directory, and those above it, if it is missing. It may be a link to one. A power failure does not remove
 * it, and with it what is stored there later.
 */
export function makeDirectory(path: string): void {
  const last = resolve(path);
  const first = mkdirSync(last, { recursive: true, mode: PRIVATE_DIRECTORY });
  if (first === undefined) return;
  for (let made = last; made.length >= first.length; made = dirname(made)) syncDirectory(dirname(made));
}

/** Creates a directory of which nobody knows the name. */
export function makeTemporaryDirectory(prefix: string): string {
  return mkdtempSync(join(tmpdir(), prefix));
}

/** Removes the file, or the link with its name, if it exists. */
export function removeFile(path: string): void {
  rmSync(path, { force: true });
}

/** Removes the directory with everything in it, or the link with its name, if it exists. */
export function removeDirectory(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

/**
 * What decides which files a power failure leaves. Whatever gets its name when it is complete is written, waits for the
 * disk, is renamed, and its directory waits for the disk. Tests record these calls.
 */
export const disk = {
  sync: fsyncSync,
  rename: renameSync,
  link: linkSync,
  /** Waits in the thread pool until what is in a file is on the disk. */
  syncContents: promisify(fdatasync),
};

/** Waits until a file is on the disk. This process must have no database open in it. */
export function syncToDisk(path: string): void {
  withDescriptor(openNamed(path, O_RDONLY), (descriptor) => disk.sync(descriptor));
}

/**
 * Renames a file or a directory, and replaces a file or a link with the new name. After a power failure it has either
 * its old or its new name.
 */
export function renameDurably(from: string, to: string): void {
  disk.rename(from, to);
  syncDirectory(dirname(to));
  if (dirname(from) !== dirname(to)) syncDirectory(dirname(from));
}

/** Gives a file another name in addition, durably. */
export function link(path: string, name: string): void {
  disk.link(path, name);
  syncDirectory(dirname(name));
}

/** Waits until the names in a directory, which may be a link to one, are on the disk. */
export function syncDirectory(path: string): void {
  syncToDisk(realpathSync(path));
}

/** The path with the directory to which its links lead. Without such a directory, opening the path says so. */
export function withoutLinks(path: string): string {
  const directory = dirname(path);
  return existsSync(directory) ? join(realpathSync(directory), basename(path)) : path;
}

/** Returns what a path leads to that the user names. It may be a link. Undefined if there is nothing. */
export function statOfNamed(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** Opens a file that the user names to read it. It may be a link. */
export function openToRead(path: string): number {
  return openSync(path, O_RDONLY | O_NONBLOCK);
}

/**
 * Opens a file that the user names to append to it. Only its owner can read a new file; an existing one keeps its mode.
 * It may be a link, such as /dev/stdout.
 */
export function openToAppend(path: string): Promise<FileHandle> {
  return open(path, O_APPEND | O_CREAT | O_WRONLY, PRIVATE_FILE);
}
