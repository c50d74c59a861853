import { dlopen } from "bun:ffi";

/** Functions of the C library that the runtime does not offer; undefined on systems other than Linux. */
export function openLibc() {
  for (const name of ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
    try {
      return dlopen(name, {
        quick_exit: { args: ["i32"], returns: "void" },
        listen: { args: ["i32", "i32"], returns: "i32" },
        setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
      });
    } catch {
      // The next name is tried, or the runtime's defaults stay.
    }
  }
  return undefined;
}

/**
 * Makes the process end without closing its databases, as the runtime otherwise does: SQLite would copy the log to the
 * database. Where that cannot be had, the process kills itself, and has no exit status.
 */
export function leaveDatabasesAtExit(): void {
  process.once("exit", (status) => {
    openLibc()?.symbols.quick_exit(status);
    process.kill(process.pid, "SIGKILL");
  });
}
