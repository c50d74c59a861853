import { dlopen } from "bun:ffi";

const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
/** The kernel takes the lower of this and its own maximum, net.core.somaxconn. */
const MAX_BACKLOG = 65_535;
/** The kernel doubles it. A request is at most 32 KiB, so a larger buffer only holds more unread requests. */
const RECEIVE_BUFFER_BYTES = 32 * 1024;

/**
 * Sets what `Bun.listen` has no option for; on other systems than Linux the runtime's defaults stay.
 * - The backlog: the runtime's is 512. `listen` on a listening socket changes it.
 * - The receive buffer of accepted connections: the runtime reads up to 512 KiB at once, so 200 clients that pipeline
 *   without reading could make it copy 100 MB in one turn of the event loop.
 */
export function tuneListenSocket(listener: object): void {
  const fd = "fd" in listener ? listener.fd : undefined;
  if (process.platform !== "linux" || typeof fd !== "number") return;
  const libc = openLibc();
  if (libc === undefined) return;
  libc.symbols.listen(fd, MAX_BACKLOG);
  libc.symbols.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, new Int32Array([RECEIVE_BUFFER_BYTES]), 4);
}

function openLibc() {
  for (const name of ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
    try {
      return dlopen(name, {
        listen: { args: ["i32", "i32"], returns: "i32" },
        setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
      });
    } catch {
      // The next name, or the runtime's defaults.
    }
  }
  return undefined;
}
