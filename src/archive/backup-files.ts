/*
 * Backups in a directory. Each is a database in one file, and next to it a file with its checksum. A backup of release
 * 1.2.0 or an earlier one is a directory.
 */

import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { parseJson } from "../api/json.ts";
import { type Environment, ENVIRONMENTS } from "../domain/environments.ts";
import { removeDirectory, removeFile, writeNewFile } from "../runtime/own-files.ts";
import { type DatabaseFacts, descriptionOf, readDescription } from "../store/sqlite/snapshot.ts";
import { formatTime } from "../text/formatting.ts";
import type { OnProgress } from "./progress.ts";
import { callInThread } from "./call-in-thread.ts";

/** A name such as production-2026-11-15T12-00-00Z. */
export function timedName(prefix: string, at: number): string {
  return `${prefix}-${formatTime(at).slice(0, 19).replaceAll(":", "-")}Z`;
}

/** The name of a backup, with `.db` at its end if it is not a directory, whose time has milliseconds. */
const NAME = /^([a-z]+)-(\d{4}-\d\d-\d\d)T(\d\d)-?(\d\d)-?(\d\d(?:\.\d{3}Z|Z\.db))$/;

/** The time in the name of a backup of the environment; NaN for another name. */
function timeIn(name: string, environment: Environment): number {
  const [, prefix, day, hour, minute, rest = ""] = NAME.exec(name) ?? [];
  return prefix === environment
    ? Date.parse(`${day}T${hour}:${minute}:${rest.replace(".db", "")}`)
    : Number.NaN;
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
  removeDirectory(path);
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
  const checksum = await checksumOf(file, "computing the checksum", onProgress);
  writeNewFile(checksumFile(path), `${checksum}  ${basename(path)}\n`);
}

/** What release 1.2.0 and earlier ones put into the directory of a backup. */
const CHECKSUMS = "SHA256SUMS";
const DESCRIPTION = "backup.json";

/** Whether the path is that of one backup, and not of a directory of backups. */
export function isBackup(path: string): boolean {
  return databaseOf(path) !== path || statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/** The file with the database of a backup. */
export function databaseOf(path: string): string {
  if (!existsSync(join(path, CHECKSUMS))) return path;
  const names = ENVIRONMENTS.map((environment) => join(path, `${environment}.db`));
  return names.find(existsSync) ?? join(path, "production.db");
}

/** Reads all of a backup and verifies it. Throws if it is incomplete, or has changed since it was made. */
export async function verifyBackup(path: string, onProgress: OnProgress) {
  const database = databaseOf(path);
  const isFile = database === path;
  const checksums = isFile ? checksumFile(path) : join(path, CHECKSUMS);
  for (const file of [database, checksums]) {
    if (!existsSync(file)) throw new Error(`the backup ${path} is incomplete: ${basename(file)} is missing`);
  }
  const lines = readFileSync(checksums, "utf8").split("\n");
  const expected = lines.find((line) => basename(line.slice(66)) === basename(database))?.slice(0, 64);
  if (expected !== (await checksumOf(database, "comparing the checksum", onProgress)))
    throw new Error(`the backup ${path} is damaged: the checksum of ${basename(database)} is wrong`);
  const facts = await checkDatabase(database, `the backup ${path}`, {
    step: "checking the backup",
    onProgress,
  });
  const file = join(path, DESCRIPTION);
  const description = isFile
    ? readDescription(path)
    : descriptionOf(parseJson(readFileSync(file, "utf8")), file);
  return { path, database, description, facts };
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
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

const CHUNK_BYTES = 1024 * 1024;

/** The SHA-256 of a file in hexadecimal digits. */
async function checksumOf(path: string, step: string, onProgress: OnProgress): Promise<string> {
  const size = bytesOf(path);
  const hash = createHash("sha256");
  let done = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    hash.update(chunk);
    done += chunk.length;
    onProgress({ step, unit: "bytes", done, share: done / size });
  }
  return hash.digest("hex");
}
