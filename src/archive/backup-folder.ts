/** A backup is a directory: copies of the databases, a description, and the checksums of all of them. */
import { createHash } from "node:crypto";
import {
  createReadStream,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, join } from "node:path";
import { type Environment, ENVIRONMENTS } from "../domain/api-keys.ts";
import { formatTime } from "../api/formatting.ts";

export const DESCRIPTION_FILE = "backup.json";
/** In the format of sha256sum: `sha256sum --check SHA256SUMS` verifies a backup without Petstore. */
export const CHECKSUMS_FILE = "SHA256SUMS";

export interface BackupDescription {
  readonly environment: Environment;
  /** RFC 3339. */
  readonly createdAt: string;
  /** The release that made the backup. */
  readonly version: string;
}

/** Names in the order of time, such as production-2026-11-15T120000.000Z. */
export function backupName(environment: Environment, at: number): string {
  return `${environment}-${formatTime(at).replaceAll(":", "")}`;
}

/** The complete backups of an environment in a directory, oldest first. */
export function listBackups(directory: string, environment: Environment): string[] {
  const pattern = new RegExp(`^${environment}-\\d{4}-\\d{2}-\\d{2}T[\\d.]+Z$`);
  return namesIn(directory)
    .filter((name) => pattern.test(name) && isBackup(join(directory, name)))
    .toSorted()
    .map((name) => join(directory, name));
}

export function isBackup(path: string): boolean {
  return existsSync(join(path, CHECKSUMS_FILE));
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}

const PARTIAL = ".partial";

/** Where a backup is until it is complete. */
export function partialPath(path: string): string {
  return join(path, "..", `.${basename(path)}${PARTIAL}`);
}

/** Removes what an interrupted run has left behind. */
export function removePartialBackups(directory: string, environment: Environment): void {
  for (const name of namesIn(directory)) {
    if (!name.startsWith(`.${environment}-`) || !name.endsWith(PARTIAL)) continue;
    rmSync(join(directory, name), { recursive: true, force: true });
  }
}

/** In one step as far as `listBackups` is concerned: half of a backup is never in the list. */
export function removeBackup(path: string): void {
  renameSync(path, partialPath(path));
  rmSync(partialPath(path), { recursive: true, force: true });
}

/** Throws if the backup cannot be read or is not what it was when it was made. */
export async function readBackup(
  path: string,
  onBytes?: (bytes: number) => void,
): Promise<BackupDescription> {
  const checksums = parseChecksums(readFileSync(join(path, CHECKSUMS_FILE), "utf8"));
  const names = [DESCRIPTION_FILE, ...readdirSync(path).filter((name) => name.endsWith(".db"))];
  const unlisted = names.find((name) => !checksums.has(name));
  if (unlisted !== undefined) {
    throw new Error(
      `the backup ${path} is damaged: ${CHECKSUMS_FILE} has no checksum of ${unlisted}; use another backup`,
    );
  }
  let bytesBefore = 0;
  for (const [name, checksum] of checksums) {
    const file = join(path, name);
    if (!existsSync(file)) throw new Error(`the backup ${path} is incomplete: ${name} is missing`);
    if ((await checksumOf(file, (bytes) => onBytes?.(bytesBefore + bytes))) !== checksum) {
      throw new Error(`the backup ${path} is damaged: the checksum of ${name} is wrong; use another backup`);
    }
    bytesBefore += statSync(file).size;
  }
  return readDescription(path);
}

export function readDescription(path: string): BackupDescription {
  const description = parseDescription(readFileSync(join(path, DESCRIPTION_FILE), "utf8"));
  if (description === undefined)
    throw new Error(`${join(path, DESCRIPTION_FILE)} does not describe a backup`);
  return description;
}

function parseDescription(text: string): BackupDescription | undefined {
  const value = parseJson(text);
  if (typeof value !== "object" || value === null) return undefined;
  const field = (name: string): unknown => Reflect.get(value, name);
  const environment = ENVIRONMENTS.find((name) => name === field("environment"));
  const [createdAt, version] = [field("createdAt"), field("version")];
  if (environment === undefined || typeof createdAt !== "string" || typeof version !== "string")
    return undefined;
  return { environment, createdAt, version };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parseChecksums(text: string): Map<string, string> {
  const lines = [...text.matchAll(/^([\da-f]{64}) {2}([\w.-]+)$/gm)];
  return new Map(lines.map(([, checksum = "", name = ""]) => [name, checksum]));
}

export function formatChecksums(checksums: ReadonlyMap<string, string>): string {
  return [...checksums].map(([name, checksum]) => `${checksum}  ${name}\n`).join("");
}

const CHUNK_BYTES = 1024 * 1024;

/** SHA-256, in hexadecimal digits. */
export async function checksumOf(path: string, onBytes?: (bytes: number) => void): Promise<string> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    hash.update(chunk);
    onBytes?.((bytes += chunk.length));
  }
  return hash.digest("hex");
}
