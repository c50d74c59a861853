import type { Attack } from "./attack.ts";
import { holdConnections, repeatText } from "./connections.ts";

const REQUESTS = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);

/** The largest response that needs no key, as often as the server sends it. */
export const pipelinedPages: Attack = {
  name: "pages",
  title: "200 connections pipeline /openapi.json",
  bars: { p99Ms: 50 },
  run: (target, signal) =>
    holdConnections(
      target,
      {
        count: 200,
        perAddress: 100,
        reconnects: true,
        opensAllFirst: true,
        onOpen: (socket) => repeatText(socket, REQUESTS),
      },
      signal,
    ),
};
