import { printable, withoutSecrets } from "../config/usage-error.ts";

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "no space is left on the device",
  EDQUOT: "the disk quota is used up",
  EFBIG: "the file would be larger than the limit for files",
  ENOTDIR: "a part of the path is a file, not a directory",
  EEXIST: "a part of the path is a file, not a directory",
  ENOENT: "a part of the path does not exist",
};

const BUGS: ReadonlySet<string> = new Set(["TypeError", "RangeError", "ReferenceError", "SyntaxError"]);

export function isBug(error: unknown): boolean {
  return error instanceof Error && BUGS.has(error.name);
}

/** A chain of causes can be a cycle. */
const MAX_CAUSES = 5;

/** Anything thrown, as one line without a stack and without secrets. */
export function errorMessage(error: unknown, maxCauses = MAX_CAUSES): string {
  if (!(error instanceof Error)) return onOneLine(String(error));
  const reason = REASONS[systemErrorField(error, "code") ?? ""];
  const path = systemErrorField(error, "path");
  if (reason !== undefined) return onOneLine(path === undefined ? reason : `${path}: ${reason}`);
  const line = onOneLine(error.message.split("\n")[0] ?? "");
  if (isBug(error)) return `this is a bug in petstore: ${line}`;
  const cause = error.cause === undefined || maxCauses === 0 ? "" : errorMessage(error.cause, maxCauses - 1);
  return line.includes(cause) ? line : `${line}: ${cause}`;
}

function onOneLine(text: string): string {
  return printable(withoutSecrets(text));
}

export function systemErrorField(error: unknown, field: "code" | "path" | "syscall"): string | undefined {
  const value: unknown = error instanceof Error ? Reflect.get(error, field) : undefined;
  return typeof value === "string" ? value : undefined;
}
