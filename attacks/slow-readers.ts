import type { Attack } from "./attack.ts";
import { holdConnections } from "./connections.ts";

const REQUESTS = 200;

/** Requests large responses and never reads them. */
export const slowReaders: Attack = {
  name: "slow-readers",
  title: "500 connections that do not read responses",
  bars: { p99Ms: 50, memoryMb: 200 },
  run: (target, signal) =>
    holdConnections(
      target,
      {
        count: 500,
        perAddress: 100,
        reconnects: true,
        onOpen(socket) {
          socket.pause();
          const request = `GET /v1/pets?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${target.key}\r\n\r\n`;
          socket.write(request.repeat(REQUESTS));
        },
      },
      signal,
    ),
};
