/* A backup is a directory: copies of the databases, a description, and the checksums of all of them. */

import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { formatTime } from "../text/formatting.ts";
import { parseJson } from "../api/json.ts";
import { dateTime, type Infer, Invalid, object, oneOf, text } from "../api/schema.ts";
import type { DataDirectory } from "../data-directory.ts";
import { type Environment, ENVIRONMENTS } from "../domain/api-keys.ts";
import {
  makeDirectory,
  makeNewDirectory,
  removeDirectory,
  rename,
  renameDurably,
  syncDirectory,
  syncToDisk,
  writeNewFile,
} from "../runtime/own-files.ts";
import { acquireLock } from "../store/sqlite/process-lock.ts";
import { assignedIds, type DatabaseFacts, recordBackup } from "../store/sqlite/snapshot.ts";
import type { OnProgress } from "./contents.ts";
import { callInThread } from "./database-thread.ts";

interface BackupOptions {
  /** The data to back up. */
  readonly source: DataDirectory;
  /** The directory of backups, which can hold any number of them. */
  readonly directory: string;
  /** How many backups of the environment are kept, this one included; undefined keeps all. */
  readonly keep: number | undefined;
  readonly at: number;
  readonly version: string;
  /** Reports progress in bytes. */
  readonly onProgress: OnProgress;
  /** Called if the backup is made, but its time cannot be recorded for the metrics. */
  readonly onUnrecorded: (error: unknown) => void;
}

export type Backup = Awaited<ReturnType<typeof makeBackup>>;

/**
 * Copies the databases of an environment. A backup appears in the directory when it is complete, verified and on the
 * disk; until then it has another name. Throws if another process is making a backup there.
 */
export async function makeBackup(options: BackupOptions) {
  const { source, directory, keep, at, version, onProgress, onUnrecorded } = options;
  const { environment } = source;
  makeDirectory(directory);
  using lock = acquireLock(join(directory, `.${environment}.lock`));
  if (lock === undefined) throw new Error(`another backup of ${environment} to ${directory} is running`);
  removePartialBackups(directory, environment);
  const path = join(directory, backupName(environment, at));
  if (existsSync(path)) throw new Error(`${path} exists already`);
  const files: BackedUpFile[] = [];
  await createDirectory(path, partialPath(path), async (partial) => {
    for (const from of databasesOf(source)) files.push(await copyDatabase(from, partial, onProgress));
    const description = { environment, createdAt: formatTime(at), version, files };
    writeDurably(join(partial, DESCRIPTION_FILE), `${JSON.stringify(description, null, 2)}\n`);
    await writeChecksums(partial, [...files.map(({ name }) => name), DESCRIPTION_FILE], onProgress);
  });
  try {
    recordBackup(source.files.store, at);
  } catch (error) {
    onUnrecorded(error);
  }
  const others = listBackups(directory, environment).filter((other) => other !== path);
  /** The paths of the earlier backups that were removed. */
  const removed = keep === undefined ? [] : others.slice(0, Math.max(0, others.length + 1 - keep));
  for (const earlier of removed) removeBackup(earlier);
  return { path, files, removed, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/** Creates a directory that appears when it is complete and on the disk; until then its name is `partial`. */
export async function createDirectory(
  path: string,
  partial: string,
  fill: (partial: string) => Promise<void>,
): Promise<void> {
  removeDirectory(partial);
  makeNewDirectory(partial);
  try {
    await fill(partial);
    syncDirectory(partial);
    renameDurably(partial, path);
  } catch (error) {
    removeDirectory(partial);
    throw error;
  }
}

/**
 * The databases in the order in which they are copied. Quotas come before the keys, so they refer to no key that the
 * copy lacks. Bans that an operator lifts in between are lifted again when a server starts on the backup, as after a
 * crash.
 */
function databasesOf({ files: { store, quotaStore } }: DataDirectory): string[] {
  return existsSync(quotaStore) ? [quotaStore, store] : [store];
}

interface BackedUpFile extends Omit<DatabaseFacts, "problems" | "steps"> {
  readonly name: string;
  readonly bytes: number;
}

/** Copies a database and reads the whole copy, because a damaged database makes a damaged copy. */
async function copyDatabase(from: string, directory: string, onProgress: OnProgress): Promise<BackedUpFile> {
  const name = basename(from);
  const to = join(directory, name);
  // The log can have most of the data.
  const expectedBytes = Math.max(1, bytesOf(from) + bytesOf(`${from}-wal`));
  await callInThread("copySnapshot", [from, to], () => {
    const done = bytesOf(to);
    onProgress({ step: "copying", done, share: done / expectedBytes });
  });
  const onPoll = () => onProgress({ step: "checking" });
  const { problems, steps: _, ...facts } = await callInThread("inspectDatabase", [to], onPoll);
  if (problems.length > 0) {
    throw new Error(
      `the copy of ${from} is damaged (${problems[0]}); check the original with petstore doctor`,
    );
  }
  syncToDisk(to);
  return { name, bytes: bytesOf(to), ...facts };
}

async function writeChecksums(
  directory: string,
  names: readonly string[],
  onProgress: OnProgress,
): Promise<void> {
  const size = names.reduce((sum, name) => sum + bytesOf(join(directory, name)), 0);
  let done = 0;
  let lines = "";
  for (const name of names) {
    const checksum = await checksumOf(join(directory, name), (bytes) => {
      done += bytes;
      onProgress({ step: "computing checksums", done, share: done / size });
    });
    lines += `${checksum}  ${name}\n`;
  }
  writeDurably(join(directory, CHECKSUMS_FILE), lines);
}

/** The size of a file; 0 if it does not exist. */
export function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Writes a new file that only its owner can read, and waits until it is on the disk. */
export function writeDurably(path: string, content: string): void {
  writeNewFile(path, content, { isDurable: true });
}

export const DESCRIPTION_FILE = "backup.json";
/** The checksums, in the format of sha256sum: `sha256sum --check SHA256SUMS` verifies a backup without Petstore. */
const CHECKSUMS_FILE = "SHA256SUMS";

/** The name of a backup, such as production-2026-11-15T120000.000Z. Names sort by time. */
export function backupName(prefix: string, at: number): string {
  return `${prefix}-${formatTime(at).replaceAll(":", "")}`;
}

/**
 * Lists the backups of an environment in a directory, oldest first. The contents determine the order, because the clock
 * may have been changed. The names determine it if the contents are equal. A backup with unreadable contents follows
 * the one before it by name.
 */
export function listBackups(
  directory: string,
  environment: Environment,
  isListed: (path: string) => boolean = isBackup,
): string[] {
  const pattern = new RegExp(`^${environment}-\\d{4}-\\d{2}-\\d{2}T[\\d.]+Z$`);
  const names = namesIn(directory).filter((name) => pattern.test(name) && isListed(join(directory, name)));
  let previous = 0;
  const backups = names.toSorted().map((name) => {
    const path = join(directory, name);
    return { path, assigned: (previous = assignedIn(join(path, `${environment}.db`)) ?? previous) };
  });
  return backups.toSorted((a, b) => a.assigned - b.assigned).map(({ path }) => path);
}

/** The number of identifiers that a database has assigned; undefined if it does not exist or is damaged. */
function assignedIn(path: string): number | undefined {
  try {
    return existsSync(path) ? assignedIds(path) : undefined;
  } catch {
    return undefined;
  }
}

export function isBackup(path: string): boolean {
  return existsSync(join(path, CHECKSUMS_FILE));
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}

const PARTIAL = ".partial";

/** The path of a backup until it is complete. */
function partialPath(path: string): string {
  return join(path, "..", `.${basename(path)}${PARTIAL}`);
}

/** Removes the remains of an interrupted run. */
function removePartialBackups(directory: string, environment: Environment): void {
  for (const name of namesIn(directory)) {
    if (!name.startsWith(`.${environment}-`) || !name.endsWith(PARTIAL)) continue;
    removeDirectory(join(directory, name));
  }
}

/** Removes a backup in one step from the view of `listBackups`, which never lists half of one. */
function removeBackup(path: string): void {
  rename(path, partialPath(path));
  removeDirectory(partialPath(path));
}

/** Reads and verifies a backup. Throws if it is unreadable, or has changed since it was made. */
export async function readBackup(
  path: string,
  onBytes: (bytes: number) => void = () => {},
): Promise<BackupDescription> {
  const incomplete = (missing: string) =>
    new Error(`the backup ${path} is incomplete: ${missing} is missing`);
  const damaged = (what: string) => new Error(`the backup ${path} is damaged: ${what}; use another backup`);
  if (!isBackup(path)) throw incomplete(CHECKSUMS_FILE);
  const sums = readFileSync(join(path, CHECKSUMS_FILE), "utf8");
  const lines = sums.matchAll(/^([\da-f]{64}) {2}([\w.-]+)$/gm);
  const expected = new Map(Array.from(lines, ([, checksum = "", name = ""]) => [name, checksum]));
  const databases = readdirSync(path).filter((name) => name.endsWith(".db"));
  const unlisted = [DESCRIPTION_FILE, ...databases].find((name) => !expected.has(name));
  if (unlisted !== undefined) throw damaged(`${CHECKSUMS_FILE} has no checksum of ${unlisted}`);
  // This comes before the databases are read, which can take minutes.
  const missing = expected.keys().find((name) => !existsSync(join(path, name)));
  if (missing !== undefined) throw incomplete(missing);
  let done = 0;
  for (const [name, checksum] of expected) {
    const actual = await checksumOf(join(path, name), (bytes) => onBytes((done += bytes)));
    if (actual !== checksum) throw damaged(`the checksum of ${name} is wrong`);
  }
  return readDescription(path);
}

const Description = object({
  environment: oneOf(ENVIRONMENTS),
  createdAt: dateTime(),
  /** The release that made the backup. */
  version: text(100),
});

type BackupDescription = Infer<typeof Description>;

export function readDescription(path: string): BackupDescription {
  const file = join(path, DESCRIPTION_FILE);
  const description = Description.read(parseJson(readFileSync(file, "utf8")));
  if (description instanceof Invalid) throw new Error(`${file} does not describe a backup`);
  return description;
}

const CHUNK_BYTES = 1024 * 1024;

/** The SHA-256 of a file in hexadecimal digits. `onBytes` gets the length of each piece that was read. */
async function checksumOf(path: string, onBytes: (bytes: number) => void): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    hash.update(chunk);
    onBytes(chunk.length);
  }
  return hash.digest("hex");
}
