import type { Attack } from "./attack.ts";
import { holdConnections, repeatText } from "./connections.ts";

const REQUESTS = "GET /v1/pets HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);

/** Requests without a key: 401 at first, then 429. */
export const pipelinedRejections: Attack = {
  name: "rejections",
  title: "2,000 connections pipeline rejected requests",
  engines: ["sqlite", "shared"],
  bars: { p99Ms: 50 },
  preparesFirst: true,
  run: (target, signal, onReady) =>
    holdConnections(
      target,
      {
        count: 2_000,
        perAddress: 100,
        reconnects: true,
        opensAllFirst: true,
        onBegin: onReady,
        onOpen: (socket) => repeatText(socket, REQUESTS),
      },
      signal,
    ),
};
