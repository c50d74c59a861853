import { printable } from "../config/problem.ts";

/** What the system calls it → what it means for an operator. */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "no space is left on the device",
  ENOTDIR: "a part of the path is a file, not a folder",
  EEXIST: "a part of the path is a file, not a folder",
  ENOENT: "a part of the path does not exist",
};

/** Errors of the program itself, which no operator can mend. */
const FAULTS: ReadonlySet<string> = new Set(["TypeError", "RangeError", "ReferenceError", "SyntaxError"]);

/** Anything thrown, as one line without a stack. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return printable(String(error));
  const reason = REASONS[textOf(error, "code") ?? ""];
  const path = textOf(error, "path");
  if (reason !== undefined) return printable(path === undefined ? reason : `${path}: ${reason}`);
  const line = printable(error.message.split("\n")[0] ?? "");
  if (FAULTS.has(error.name)) return `this is a fault in petstore itself: ${line}`;
  const cause = error.cause === undefined ? "" : explain(error.cause);
  return line.includes(cause) ? line : `${line}: ${cause}`;
}

/** A property that system errors carry, if this one does. */
export function textOf(error: unknown, property: "code" | "path" | "syscall"): string | undefined {
  const value: unknown = error instanceof Error ? Reflect.get(error, property) : undefined;
  return typeof value === "string" ? value : undefined;
}
