import type { Attack } from "./attack.ts";
import { holdConnections } from "./connections.ts";

/** More connections than a server with 256 file descriptors can hold, none of which ever sends a byte. */
export const silentConnections: Attack = {
  name: "silent",
  title: "400 silent connections, 256 open files",
  openFiles: 256,
  bars: { p99Ms: 50 },
  run: (target, signal) =>
    holdConnections(target, { count: 400, perAddress: 100, reconnects: true, onOpen() {} }, signal),
};
