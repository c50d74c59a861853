import { printable } from "../config/usage-error.ts";

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "no space is left on the device",
  ENOTDIR: "a part of the path is a file, not a directory",
  EEXIST: "a part of the path is a file, not a directory",
  ENOENT: "a part of the path does not exist",
};

/** Errors that are bugs. */
const BUGS: ReadonlySet<string> = new Set(["TypeError", "RangeError", "ReferenceError", "SyntaxError"]);

/** Anything thrown, as one line without a stack. */
export function errorMessage(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error));
  const reason = REASONS[systemErrorField(error, "code") ?? ""];
  const path = systemErrorField(error, "path");
  if (reason !== undefined) return printable(path === undefined ? reason : `${path}: ${reason}`);
  const line = printable(error.message.split("\n")[0] ?? "");
  if (BUGS.has(error.name)) return `this is a bug in petstore: ${line}`;
  const cause = error.cause === undefined ? "" : errorMessage(error.cause);
  return line.includes(cause) ? line : `${line}: ${cause}`;
}

export function systemErrorField(error: unknown, field: "code" | "path" | "syscall"): string | undefined {
  const value: unknown = error instanceof Error ? Reflect.get(error, field) : undefined;
  return typeof value === "string" ? value : undefined;
}
