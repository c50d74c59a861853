import { statSync } from "node:fs";
import { scheduler } from "../runtime/scheduler.ts";

export interface FollowOptions<T> {
  readonly everyMs?: number;
  /** Reads the files. If it throws, they are read again when they next change. */
  readonly read: () => T;
  readonly onChange: (contents: T) => void;
  readonly onError: (error: unknown) => void;
}

const EVERY_MS = 1_000;

/**
 * Reads files again when they have changed. It waits until they stay the same from one check to the next, because
 * programs that renew a certificate write one file after the other. Returns a function that stops it.
 */
export function followFiles<T>(paths: readonly string[], options: FollowOptions<T>): () => void {
  const { everyMs = EVERY_MS, read, onChange, onError } = options;
  const version = () => paths.map(fileVersion).join();
  let used = version();
  let seen = used;
  const timer = scheduler.setInterval(() => {
    const current = version();
    const isStable = current === seen;
    seen = current;
    if (current === used || !isStable) return;
    used = current;
    try {
      if (current.split(",").includes(NO_FILE)) throw new Error(`${paths.join(" or ")} is no regular file`);
      onChange(read());
    } catch (error) {
      onError(error);
    }
  }, everyMs);
  timer.unref();
  return () => void timer.close();
}

const NO_FILE = "no file";

/**
 * A text that changes with the file. Symbolic links are followed, because some programs renew certificates by changing
 * a link. What can be read once only, such as a pipe, never changes.
 */
function fileVersion(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return "none";
  return stat.isFile() ? `${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs} ${stat.size}` : NO_FILE;
}

/** What a server reports about a file of settings. */
export interface SettingFileReports {
  onChange(details: { readonly setting: string; readonly file: string }): void;
  /** The contents that were usable stay in effect. */
  onInvalid(details: { readonly setting: string; readonly file: string; readonly error: unknown }): void;
}

export interface FollowedSetting<T> {
  /** The last value that was usable. */
  readonly current: T;
  close(): void;
}

interface SettingFile<T> {
  /** The option that names the file. */
  readonly setting: string;
  /** Without a file, the value stays. */
  readonly file: string | undefined;
  readonly first: T;
}

/** Follows the file of a setting. */
export function followSetting<T>(
  { setting, file, first }: SettingFile<T>,
  read: (file: string) => T,
  { onChange, onInvalid }: SettingFileReports,
): FollowedSetting<T> {
  if (file === undefined) return { current: first, close() {} };
  let current = first;
  const close = followFiles([file], {
    read: () => read(file),
    onChange(value) {
      current = value;
      onChange({ setting, file });
    },
    onError: (error) => onInvalid({ setting, file, error }),
  });
  return {
    get current() {
      return current;
    },
    close,
  };
}
