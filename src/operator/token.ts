import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
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

/** `openssl rand -hex 20` and longer: too many possibilities to guess, however fast. */
const UNGUESSABLE_LENGTH = 40;

/** The secret that operators sign in with. It can be replaced while the server runs. */
export class AdminToken {
  #hash: Buffer;
  #sessionKey: Buffer;
  #length: number;
  readonly #onChange: (() => void)[] = [];

  constructor(token: string) {
    this.#hash = digest(token);
    this.#sessionKey = sessionKeyOf(token);
    this.#length = token.length;
  }

  get isUnguessable(): boolean {
    return this.#length >= UNGUESSABLE_LENGTH;
  }

  /** In constant time: the hashes have one length, and which of their bytes differ says nothing of the token. */
  matches(candidate: string): boolean {
    return timingSafeEqual(digest(candidate), this.#hash);
  }

  /** A signature that nobody can make without the token, in base64url. */
  sign(text: string): string {
    return createHmac("sha256", this.#sessionKey).update(text).digest("base64url");
  }

  replace(token: string): void {
    this.#hash = digest(token);
    this.#sessionKey = sessionKeyOf(token);
    this.#length = token.length;
    for (const listener of this.#onChange) listener();
  }

  onReplace(listener: () => void): void {
    this.#onChange.push(listener);
  }
}

function digest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

function sessionKeyOf(token: string): Buffer {
  return createHmac("sha256", token).update("petstore admin session").digest();
}

/** Throws if the file cannot be read, or if what it contains is not a token. */
export function readTokenFile(path: string): string {
  const token = adminToken.parse(readFileSync(path, "utf8").trim());
  if (token === undefined) throw new Error(`${path} does not contain an admin token: ${adminToken.expected}`);
  return token;
}

/** The token in the file, or a new one if there is none yet. Servers that start together get the same. */
export function openTokenFile(path: string): string {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined) return readTokenFile(path);
  const token = generateToken();
  return createPrivateFile(path, `${token}\n`) ? token : readTokenFile(path);
}

export function rollTokenFile(path: string): void {
  replacePrivateFile(path, `${generateToken()}\n`);
}

/** A rotation takes effect within a second. */
const FOLLOW_EVERY_MS = 250;

export interface OpenedToken {
  readonly token: AdminToken;
  /** The token itself, for the URL that is printed at the start. */
  readonly text: string;
  /** Where an operator finds it; undefined if it is in a variable, or in this process only. */
  readonly file: string | undefined;
  stopFollowing(): void;
}

/** The token of a variable or a file, or one that is made at the first start and kept in the data directory. */
export function openToken(storage: StorageConfig, admin: AdminConfig, log: Log): OpenedToken {
  const { text, file } = admin.token === undefined ? ownToken(storage, log) : givenToken(admin.token, admin);
  const token = new AdminToken(text);
  const stopFollowing =
    file === undefined
      ? () => {}
      : followFiles([file], {
          everyMs: FOLLOW_EVERY_MS,
          read: () => readTokenFile(file),
          onChange(changed) {
            token.replace(changed);
            log.event("admin.token-replaced");
          },
          onError: (error) => log.event("admin.token-unreadable", { file, error }),
        });
  return { token, text, file, stopFollowing };
}

interface TokenText {
  readonly text: string;
  readonly file: string | undefined;
}

/** A flag or variable can override the file, which then does not matter. */
function givenToken(text: string, { tokenFile }: AdminConfig): TokenText {
  const isFromFile = tokenFile !== undefined && readTokenFile(tokenFile) === text;
  return { text, file: isFromFile ? resolve(tokenFile) : undefined };
}

/** A server on PostgreSQL and Valkey may have no directory that it can write to. */
function ownToken(storage: StorageConfig, log: Log): TokenText {
  const file = resolve(pathsOf(storage).adminToken);
  try {
    return { text: openTokenFile(file), file };
  } catch (error) {
    if (storage.databaseUrl === undefined || storage.limitsUrls === undefined) throw error;
    log.event("admin.token-not-saved", { error });
    return { text: generateToken(), file: undefined };
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
