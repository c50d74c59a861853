/** A backup is a directory: copies of the databases, a description, and the checksums of all of them. */
import { createHash } from "node:crypto";
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { formatTime } from "../api/formatting.ts";
import { parseJson } from "../api/json.ts";
import { dateTime, type Infer, Invalid, object, oneOf, text } from "../api/schema.ts";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import { type Environment, ENVIRONMENTS } from "../domain/api-keys.ts";
import { renameDurably, syncToDisk } from "../store/sqlite/durable-files.ts";
import { acquireLock } from "../store/sqlite/process-lock.ts";
import { assignedIds, type DatabaseFacts } from "../store/sqlite/snapshot.ts";
import type { OnProgress } from "./contents.ts";
import { callInThread } from "./database-thread.ts";

interface BackupOptions {
  readonly storage: StorageConfig;
  /** Holds any number of backups. */
  readonly directory: string;
  /** How many backups of the environment stay, this one included; undefined means all. */
  readonly keep: number | undefined;
  readonly at: number;
  readonly version: string;
  /** In bytes. */
  readonly onProgress: OnProgress;
}

export interface Backup {
  readonly path: string;
  readonly bytes: number;
  readonly files: readonly BackedUpFile[];
  /** Paths of earlier backups. */
  readonly removed: readonly string[];
}

interface BackedUpFile extends Omit<DatabaseFacts, "problems"> {
  readonly name: string;
  readonly bytes: number;
}

/**
 * Copies the databases of an environment. A backup appears in the directory when it is complete, verified and on the
 * disk; until then it has another name. Throws if another process makes a backup there.
 */
export async function makeBackup(options: BackupOptions): Promise<Backup> {
  const { storage, directory, keep } = options;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = acquireLock(join(directory, `.${storage.environment}.lock`));
  if (lock === undefined)
    throw new Error(`another backup of ${storage.environment} to ${directory} is running`);
  try {
    removePartialBackups(directory, storage.environment);
    const path = join(directory, backupName(storage.environment, options.at));
    if (existsSync(path)) throw new Error(`${path} exists already`);
    const files = await writeBackup(path, options);
    const others = listBackups(directory, storage.environment).filter((other) => other !== path);
    const removed = keep === undefined ? [] : others.slice(0, Math.max(0, others.length + 1 - keep));
    for (const earlier of removed) removeBackup(earlier);
    return { path, files, removed, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
  } finally {
    lock.release();
  }
}

async function writeBackup(path: string, options: BackupOptions): Promise<BackedUpFile[]> {
  const { storage, at, version, onProgress } = options;
  const { environment } = storage;
  const files: BackedUpFile[] = [];
  await createDirectory(path, partialPath(path), async (partial) => {
    for (const from of databasesOf(storage)) files.push(await copyDatabase(from, partial, onProgress));
    const description = { environment, createdAt: formatTime(at), version, files };
    writeDurably(join(partial, DESCRIPTION_FILE), `${JSON.stringify(description, null, 2)}\n`);
    await writeChecksums(partial, [...files.map(({ name }) => name), DESCRIPTION_FILE], onProgress);
  });
  return files;
}

/** A directory that appears when it is complete and on the disk; until then its name is `partial`. */
export async function createDirectory(
  path: string,
  partial: string,
  fill: (partial: string) => Promise<void>,
): Promise<void> {
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true, mode: 0o700 });
  try {
    await fill(partial);
    syncToDisk(partial);
    renameDurably(partial, path);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  }
}

/**
 * The usage of keys is copied before the keys: it refers to no key that the copy of the keys lacks. Bans that an
 * operator ends in between are ended when a server starts on the backup, as after a crash.
 */
function databasesOf(storage: StorageConfig): string[] {
  const { store, usageStore } = pathsOf(storage);
  return existsSync(usageStore) ? [usageStore, store] : [store];
}

/** Reads all of the copy, because a database that is damaged makes a damaged copy. */
async function copyDatabase(from: string, directory: string, onProgress: OnProgress): Promise<BackedUpFile> {
  const name = basename(from);
  const to = join(directory, name);
  const expectedBytes = Math.max(1, statSync(from).size);
  await callInThread("copySnapshot", [from, to], () => {
    const done = bytesOf(to);
    onProgress({ step: "copying", done, share: done / expectedBytes });
  });
  const onPoll = () => onProgress({ step: "checking" });
  const { problems, ...facts } = await callInThread("inspectDatabase", [to], onPoll);
  if (problems.length > 0) {
    throw new Error(
      `the copy of ${from} is damaged (${problems[0]}); check the original with petstore doctor`,
    );
  }
  syncToDisk(to);
  return { name, bytes: statSync(to).size, ...facts };
}

async function writeChecksums(
  directory: string,
  names: readonly string[],
  onProgress: OnProgress,
): Promise<void> {
  const size = names.reduce((sum, name) => sum + bytesOf(join(directory, name)), 0);
  const onBytes = (done: number) => onProgress({ step: "computing checksums", done, share: done / size });
  let lines = "";
  for await (const [name, checksum] of checksumsOf(directory, names, onBytes)) {
    lines += `${checksum}  ${name}\n`;
  }
  writeDurably(join(directory, CHECKSUMS_FILE), lines);
}

/** 0 if there is no such file. */
export function bytesOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** A new file that is on the disk, for its owner only. */
export function writeDurably(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600, flag: "wx" });
  syncToDisk(path);
}

export const DESCRIPTION_FILE = "backup.json";
/** In the format of sha256sum: `sha256sum --check SHA256SUMS` verifies a backup without Petstore. */
const CHECKSUMS_FILE = "SHA256SUMS";

/** `createdAt` is RFC 3339; `version` is the release that made the backup. */
export type BackupDescription = Infer<typeof Description>;

/** Names in the order of time, such as production-2026-11-15T120000.000Z. */
export function backupName(environment: Environment, at: number): string {
  return `${environment}-${formatTime(at).replaceAll(":", "")}`;
}

/**
 * The backups of an environment in a directory, oldest first. Their contents tell the order, because the clock may have
 * been set. A name tells it where contents are the same, or cannot be read: such a backup follows the one before it.
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

/** Undefined if there is no such database, or it is damaged. */
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

/** Where a backup is until it is complete. */
function partialPath(path: string): string {
  return join(path, "..", `.${basename(path)}${PARTIAL}`);
}

/** Removes what an interrupted run has left behind. */
function removePartialBackups(directory: string, environment: Environment): void {
  for (const name of namesIn(directory)) {
    if (!name.startsWith(`.${environment}-`) || !name.endsWith(PARTIAL)) continue;
    rmSync(join(directory, name), { recursive: true, force: true });
  }
}

/** In one step as far as `listBackups` is concerned: half of a backup is never in the list. */
function removeBackup(path: string): void {
  renameSync(path, partialPath(path));
  rmSync(partialPath(path), { recursive: true, force: true });
}

/** Throws if the backup cannot be read or is not what it was when it was made. */
export async function readBackup(
  path: string,
  onBytes: (bytes: number) => void = () => {},
): Promise<BackupDescription> {
  if (!isBackup(path)) throw new Error(`the backup ${path} is incomplete: ${CHECKSUMS_FILE} is missing`);
  const sums = readFileSync(join(path, CHECKSUMS_FILE), "utf8");
  const lines = sums.matchAll(/^([\da-f]{64}) {2}([\w.-]+)$/gm);
  const expected = new Map(Array.from(lines, ([, checksum = "", name = ""]) => [name, checksum]));
  const names = [DESCRIPTION_FILE, ...readdirSync(path).filter((name) => name.endsWith(".db"))];
  const unlisted = names.find((name) => !expected.has(name));
  if (unlisted !== undefined) {
    throw new Error(
      `the backup ${path} is damaged: ${CHECKSUMS_FILE} has no checksum of ${unlisted}; use another backup`,
    );
  }
  const missing = [...expected.keys()].find((name) => !existsSync(join(path, name)));
  if (missing !== undefined) throw new Error(`the backup ${path} is incomplete: ${missing} is missing`);
  for await (const [name, checksum] of checksumsOf(path, [...expected.keys()], onBytes)) {
    if (checksum === expected.get(name)) continue;
    throw new Error(`the backup ${path} is damaged: the checksum of ${name} is wrong; use another backup`);
  }
  return readDescription(path);
}

const Description = object({
  environment: oneOf(ENVIRONMENTS),
  createdAt: dateTime(),
  version: text(100),
});

export function readDescription(path: string): BackupDescription {
  const file = join(path, DESCRIPTION_FILE);
  const description = Description.read(parseJson(readFileSync(file, "utf8")));
  if (description instanceof Invalid) throw new Error(`${file} does not describe a backup`);
  return description;
}

const CHUNK_BYTES = 1024 * 1024;

/** The SHA-256 of each file, in hexadecimal digits. `onBytes` gets the bytes of all files that were read so far. */
async function* checksumsOf(
  directory: string,
  names: readonly string[],
  onBytes: (bytes: number) => void,
): AsyncGenerator<readonly [name: string, checksum: string]> {
  let bytes = 0;
  for (const name of names) {
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(join(directory, name), { highWaterMark: CHUNK_BYTES })) {
      hash.update(chunk);
      onBytes((bytes += chunk.length));
    }
    yield [name, hash.digest("hex")];
  }
}
