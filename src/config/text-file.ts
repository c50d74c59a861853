import { readFileSync } from "node:fs";
import { quotedPath, UsageError } from "./usage-error.ts";

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "the file does not exist",
  ENOTDIR: "the file does not exist",
  EACCES: "permission denied",
  EISDIR: "it is a directory",
};

/** Reads a file that an option names. `name` is the flag or the variable. */
export function readTextFile(name: string, path: string): string | UsageError {
  try {
    return readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
    const reason = REASONS[String(code)] ?? String(error);
    return new UsageError(`${name} is ${quotedPath(path)}; it cannot be read: ${reason}`);
  }
}
