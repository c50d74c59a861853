/** A field of an error of the system or of the runtime: the code is such as ENOENT. */
export function systemErrorField(error: unknown, field: "code" | "path" | "syscall"): string | undefined {
  const value: unknown = error instanceof Error ? Reflect.get(error, field) : undefined;
  return typeof value === "string" ? value : undefined;
}
