import type { Socket } from "node:net";
import type { Attack, Target } from "./attack.ts";
import { holdConnections } from "./connections.ts";

/**
 * More requests at once than a server queues for Valkey, with a key whose limits let them through. The overflow gets
 * 503, and is no reason to count without Valkey: that would grant every key its limit once more.
 */
export const valkeyQueue: Attack = {
  name: "valkey-queue",
  title: "13,000 connections with a valid key",
  engines: ["shared"],
  firstServerOnly: true,
  openFiles: 16_000,
  isMeasuredWhenReady: true,
  logs: /the queue for Valkey is full/,
  bars: { p99Ms: 50 },
  run(target, signal, onReady) {
    let hasBegun = false;
    const onOpen = (socket: Socket) => {
      if (!hasBegun) onReady();
      hasBegun = true;
      sendOneAfterTheOther(socket, target);
    };
    const connections = { count: 13_000, perAddress: 200, reconnects: true, opensAllFirst: true, onOpen };
    return holdConnections(target, connections, signal);
  },
};

function sendOneAfterTheOther(socket: Socket, { key }: Target): void {
  const request = `GET /v1/pets?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  // Each response is one short segment.
  socket.on("data", () => socket.writable && socket.write(request));
  socket.write(request);
}
