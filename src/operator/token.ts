import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { type AdminConfig, pathsOf, type StorageConfig } from "../config/config.ts";
import { followFiles } from "../config/follow-files.ts";
import { adminToken } from "../config/value-types.ts";
import { createPrivateFile, replacePrivateFile } from "../data-directory.ts";
import type { Log } from "../observe/log.ts";

/** 256 random bits, in characters that a URL needs not escape. */
export function generateToken(): string {
  return `pet_admin_${randomBytes(32).toString("base64url")}`;
}

/** Throws if the file cannot be read, or if what it contains is not a token. */
function readTokenFile(path: string): string {
  const token = adminToken.parse(readFileSync(path, "utf8").trim());
  if (token === undefined) throw new Error(`${path} does not contain an admin token: ${adminToken.expected}`);
  return token;
}

/** The token in the file, or a new one if there is none yet. Servers that start together get the same. */
function openTokenFile(path: string): string {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return readTokenFile(path);
  const token = generateToken();
  return createPrivateFile(path, `${token}\n`) ? token : readTokenFile(path);
}

/** Returns the new token. */
export function rotateTokenFile(path: string): string {
  const token = generateToken();
  replacePrivateFile(path, `${token}\n`);
  return token;
}

/** A rotation takes effect within a second. */
const FOLLOW_EVERY_MS = 250;

/** Reads the file again when it has changed. Returns a function that stops it. */
export function followTokenFile(file: string, onChange: (token: string) => void, log: Log): () => void {
  return followFiles([file], {
    everyMs: FOLLOW_EVERY_MS,
    read: () => readTokenFile(file),
    onChange(token) {
      onChange(token);
      log.event("admin.token-replaced");
    },
    onError: (error) => log.event("admin.token-unreadable", { file, error }),
  });
}

interface OpenedToken {
  readonly token: string;
  /** Where an operator finds it; undefined if it is in a variable, or in this process only. */
  readonly file: string | undefined;
}

/** The token of a variable or a file, or one that is made at the first start and kept in the data directory. */
export function openToken(storage: StorageConfig, admin: AdminConfig, log: Log): OpenedToken {
  return admin.token === undefined ? ownToken(storage, log) : givenToken(admin.token, admin);
}

/** A flag or variable can override the file, which then does not matter. */
function givenToken(token: string, { tokenFile }: AdminConfig): OpenedToken {
  const isFromFile = tokenFile !== undefined && readTokenFile(tokenFile) === token;
  return { token, file: isFromFile ? resolve(tokenFile) : undefined };
}

/** A server on PostgreSQL and Valkey may have no directory that it can write to. */
function ownToken(storage: StorageConfig, log: Log): OpenedToken {
  const file = resolve(pathsOf(storage).adminToken);
  try {
    return { token: openTokenFile(file), file };
  } catch (error) {
    if (storage.databaseUrl === undefined || storage.limitsUrls === undefined) throw error;
    log.event("admin.token-not-saved", { error });
    return { token: generateToken(), file: undefined };
  }
}

/** For `petstore admin-url`. Returns a function that removes it, unless another server has replaced it since. */
export function saveAdminUrl(storage: StorageConfig, url: string): () => void {
  const { adminUrl } = pathsOf(storage);
  const text = `${url}\n`;
  try {
    replacePrivateFile(adminUrl, text);
  } catch {
    return () => {};
  }
  return () => {
    if (existsSync(adminUrl) && readFileSync(adminUrl, "utf8") === text) rmSync(adminUrl, { force: true });
  };
}
