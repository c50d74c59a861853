import { ptr } from "bun:ffi";
import { openLibc } from "../runtime/libc.ts";

const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
/** The kernel takes the lower of this and its own maximum, net.core.somaxconn. */
const MAX_BACKLOG = 65_535;
/** The kernel doubles the size. A request is at most 32 KiB, so a larger buffer only holds more unread requests. */
const RECEIVE_BUFFER_BYTES = 32 * 1024;

/**
 * Sets what `Bun.listen` has no option for. On systems other than Linux the runtime's defaults stay.
 * - The backlog: the runtime's is 512. `listen` on a listening socket changes it.
 * - The receive buffer of accepted connections: the runtime reads up to 512 KiB at once, so 200 clients that pipeline
 *   without reading could make it copy 100 MB in one iteration of the event loop.
 */
export function tuneListenSocket(listener: object): void {
  withSocket(listener, (fd, { listen, setsockopt }) => {
    listen(fd, MAX_BACKLOG);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, new Int32Array([RECEIVE_BUFFER_BYTES]), 4);
  });
}

const SO_ATTACH_FILTER = 26;
/** Drops packets with the flag SYN in byte 13 of the TCP header: code, instructions to skip if false, and operand. */
const WITHOUT_SYN = [
  [0x30, 0, 13],
  [0x45, 1, 2],
  [0x06, 0, 0],
  [0x06, 0, 0xffff_ffff],
] as const;

/**
 * Stops new connections, while those whose handshake has begun are still accepted. When a listening socket closes, the
 * system resets connections that it has not accepted, and a load balancer does not repeat a write that it has sent. A
 * client that connects meanwhile tries again a second later. Works on Linux only.
 */
export function stopHandshakes(listener: object): void {
  withSocket(listener, (fd, { setsockopt }) => {
    // The length of the program and its address, followed by the program.
    const bytes = new Uint8Array(16 + 8 * WITHOUT_SYN.length);
    const program = new DataView(bytes.buffer);
    program.setUint16(0, WITHOUT_SYN.length, true);
    program.setBigUint64(8, BigInt(ptr(bytes) + 16), true);
    for (const [i, [code, ifFalse, operand]] of WITHOUT_SYN.entries()) {
      const at = 16 + 8 * i;
      program.setUint16(at, code, true);
      program.setUint8(at + 3, ifFalse);
      program.setUint32(at + 4, operand, true);
    }
    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, bytes, 16);
  });
}

/** Does nothing on systems other than Linux. */
function withSocket(listener: object, work: (fd: number, libc: Libc) => void): void {
  const fd = "fd" in listener ? listener.fd : undefined;
  if (process.platform !== "linux" || typeof fd !== "number") return;
  const libc = openLibc();
  if (libc) work(fd, libc.symbols);
}

type Libc = NonNullable<ReturnType<typeof openLibc>>["symbols"];
