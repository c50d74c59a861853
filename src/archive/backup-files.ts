/* Backups in a directory. Each is a database in one file, and next to it a file with its checksum. */

import { createHash } from "node:crypto";
import { closeSync, existsSync, fstatSync, readdirSync, readSync } from "node:fs";
import { basename, join } from "node:path";
import type { Environment } from "../domain/environments.ts";
import {
  createFileOfThisUser,
  inheritOwner,
  isLink,
  LINK_PROBLEM,
  openFoundFile,
  readOwnFile,
  removeFile,
  statOf,
  statOfNamed,
  writeNewFile,
} from "../runtime/own-files.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { readDescription } from "../store/sqlite/backup-tables.ts";
import type { DatabaseFacts } from "../store/sqlite/snapshot.ts";
import { formatTime } from "../text/formatting.ts";
import type { OnProgress } from "./progress.ts";
import { callInThread } from "./call-in-thread.ts";
import { writeAll } from "./files.ts";

/** A name such as production-2026-11-15T12-00-00Z. */
export function timedName(prefix: string, at: number): string {
  return `${prefix}-${formatTime(at).slice(0, 19).replaceAll(":", "-")}Z`;
}

const NAME = /^([a-z]+)-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\dZ)\.db$/;

/** The time in the name of a backup of the environment; NaN for another name. */
function timeIn(name: string, environment: Environment): number {
  const [, prefix, day, hour, minute, rest = ""] = NAME.exec(name) ?? [];
  return prefix === environment ? Date.parse(`${day}T${hour}:${minute}:${rest}`) : Number.NaN;
}

/** Lists the backups of an environment in a directory by the time in their names, the oldest first. */
export function listBackups(directory: string, environment: Environment): string[] {
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return names
    .map((name) => ({ path: join(directory, name), time: timeIn(name, environment) }))
    .filter(({ time }) => !Number.isNaN(time))
    .toSorted((a, b) => a.time - b.time)
    .map(({ path }) => path);
}

/** The path of a new backup. The time in its name is later than that of the last one, whatever the clock shows. */
export function newBackupPath(directory: string, environment: Environment, at: number): string {
  const last = listBackups(directory, environment).at(-1);
  const earliest = last === undefined ? at : timeIn(basename(last), environment) + 1_000;
  return join(directory, `${timedName(environment, Math.max(at, earliest))}.db`);
}

export function removeBackup(path: string): void {
  removeFile(path);
  removeFile(checksumFile(path));
}

/** The file that becomes a backup. */
export function partialBackup(directory: string, environment: Environment): string {
  return join(directory, `.${environment}.partial`);
}

/** Removes what an interrupted run has left: files of the partial backup, and a checksum without its backup. */
export function removeRemains(directory: string, environment: Environment): void {
  const partial = basename(partialBackup(directory, environment));
  for (const name of readdirSync(directory)) {
    const backup = name.replace(/\.sha256$/, "");
    const isLost = backup !== name && timeIn(backup, environment) > 0 && !existsSync(join(directory, backup));
    if (isLost || name.startsWith(partial)) removeFile(join(directory, name));
  }
}

/** The file with the checksum, in the format of sha256sum: `sha256sum --check` verifies a backup without Petstore. */
function checksumFile(path: string): string {
  return `${path}.sha256`;
}

/** Writes the checksum of a file that will be renamed to `path`. */
export async function writeChecksum(file: string, path: string, onProgress: OnProgress): Promise<void> {
  const checksum = await checksumOf(file, { step: "computing the checksum", onProgress });
  writeNewFile(checksumFile(path), `${checksum}  ${basename(path)}\n`);
}

/** Whether the path is that of one backup, and not of a directory of backups. */
export function isBackup(path: string): boolean {
  return statOfNamed(path)?.isFile() === true;
}

/** Whether a directory is or has a backup of a release before 1.3.0, which is a directory with a file of this name. */
export function isEarlierBackup(directory: string): boolean {
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return ["", ...names].some((name) => existsSync(join(directory, name, "SHA256SUMS")));
}

interface Verification {
  /** The file that the backup is copied to. Undefined if it is verified where it is. */
  readonly copy?: string;
  readonly onProgress: OnProgress;
}

/**
 * Reads all of a backup and verifies it, and returns the path of its database or of the copy. Throws if it is
 * incomplete, or has changed since it was made. The owner of the directory can replace a file at any time, so the copy
 * and the checksum are of the same bytes, and everything else is read from the copy.
 */
export async function verifyBackup(path: string, { copy, onProgress }: Verification) {
  const checksums = checksumFile(path);
  for (const file of [path, checksums]) {
    if (!existsSync(file)) throw new Error(`the backup ${path} is incomplete: ${basename(file)} is missing`);
  }
  if (isLink(path)) throw new Error(`${path}: ${LINK_PROBLEM}`);
  const lines = readOwnFile(checksums)?.split("\n") ?? [];
  const expected = lines.find((line) => basename(line.slice(66)) === basename(path))?.slice(0, 64);
  const check = (actual: string) => {
    if (expected === actual) return;
    throw new Error(`the backup ${path} is damaged: the checksum of ${basename(path)} is wrong`);
  };
  if (copy === undefined) check(await checksumOf(path, { step: "comparing the checksum", onProgress }));
  else await copyChecked(path, copy, { check, onProgress });
  const database = copy ?? path;
  const facts = await checkDatabase(database, `the backup ${path}`, {
    step: "checking the backup",
    onProgress,
  });
  return { path, database, description: readDescription(database, path), facts };
}

/** Copies a file. Nobody but this user can read the copy before `check` has accepted its checksum. */
async function copyChecked(
  from: string,
  to: string,
  { check, onProgress }: { readonly check: (checksum: string) => void; readonly onProgress: OnProgress },
): Promise<void> {
  const descriptor = createFileOfThisUser(to);
  try {
    const onPart = (part: Uint8Array) => writeAll(descriptor, part, `cannot write ${to}`);
    check(await checksumOf(from, { step: "copying", onProgress, onPart }));
    inheritOwner(descriptor, to);
  } finally {
    closeSync(descriptor);
  }
}

/** Checks all of a database, which `name` describes. Throws if it is damaged. */
export async function checkDatabase(
  database: string,
  name: string,
  { step, onProgress }: { readonly step: string; readonly onProgress: OnProgress },
): Promise<DatabaseFacts> {
  const facts = await callInThread("inspectDatabase", [database], () => onProgress({ step }));
  const [problem] = facts.problems;
  if (problem !== undefined) throw new Error(`${name} is not sound: ${problem}`);
  return facts;
}

/** The size of a file; 0 if it does not exist. */
export function bytesOf(path: string): number {
  return statOf(path)?.size ?? 0;
}

const PART_BYTES = 1024 * 1024;

interface Reading {
  readonly step: string;
  readonly onProgress: OnProgress;
  /** Called with each part of the file. */
  readonly onPart?: (part: Uint8Array) => void;
}

/** The SHA-256 of a file in hexadecimal digits. What is added to the file meanwhile is not read. */
async function checksumOf(path: string, { step, onProgress, onPart }: Reading): Promise<string> {
  const descriptor = openFoundFile(path);
  try {
    const { size } = fstatSync(descriptor);
    const hash = createHash("sha256");
    const buffer = new Uint8Array(PART_BYTES);
    for (let done = 0; done < size;) {
      const length = readSync(descriptor, buffer, 0, Math.min(PART_BYTES, size - done), done);
      if (length === 0) break;
      const part = buffer.subarray(0, length);
      hash.update(part);
      onPart?.(part);
      done += length;
      onProgress({ step, unit: "bytes", done, share: done / size });
      await scheduler.yield();
    }
    return hash.digest("hex");
  } finally {
    closeSync(descriptor);
  }
}
