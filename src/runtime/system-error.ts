/** A field of an error of the system or of the runtime: the code is such as ENOENT. */
export function systemErrorField(error: unknown, field: "code" | "path" | "syscall"): string | undefined {
  const value: unknown = error instanceof Error ? Reflect.get(error, field) : undefined;
  return typeof value === "string" ? value : undefined;
}

/** Reasons of errors of the file system, by their code. */
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
  EISDIR: "it is a directory",
  ELOOP: "it is a symbolic link, which is not followed",
};

/** Why the file system rejects an operation, in words. */
export function systemErrorReason(error: unknown): string | undefined {
  return REASONS[systemErrorField(error, "code") ?? ""];
}
