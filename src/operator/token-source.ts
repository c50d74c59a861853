import { existsSync, readFileSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { type AdminConfig, pathsOf, type StorageConfig } from "../config/config.ts";
import { replacePrivateFile } from "../data-directory.ts";
import type { Log } from "../observe/log.ts";
import { AdminToken, generateToken } from "./token.ts";
import { followTokenFile, openTokenFile, readTokenFile } from "./token-file.ts";

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
      : followTokenFile(file, {
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
