import { readFileSync, statSync } from "node:fs";
import { adminToken } from "../config/value-types.ts";
import { createPrivateFile, replacePrivateFile } from "../data-directory.ts";
import { generateToken } from "./token.ts";

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

export interface FollowTokenOptions {
  readonly onChange: (token: string) => void;
  /** The file has changed and cannot be used. It is read again when it changes again. */
  readonly onError: (error: unknown) => void;
}

/** A roll takes effect within a second. */
const FOLLOW_EVERY_MS = 250;

/** Reads the file again when it has changed. Returns a function that stops it. */
export function followTokenFile(path: string, { onChange, onError }: FollowTokenOptions): () => void {
  let version = fileVersion(path);
  const timer = setInterval(() => {
    const current = fileVersion(path);
    if (current === version) return;
    version = current;
    try {
      onChange(readTokenFile(path));
    } catch (error) {
      onError(error);
    }
  }, FOLLOW_EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

function fileVersion(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? "none" : `${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}`;
}
