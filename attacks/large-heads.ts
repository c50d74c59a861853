import type { Attack } from "./attack.ts";
import { holdConnections } from "./connections.ts";

/** Just under 16 KiB in 120 header fields. */
const HEADERS = Array.from({ length: 120 }, (_, i) => `X-Header-${i}: ${"x".repeat(115)}\r\n`).join("");

const COUNT = 10_000;

/** Every connection sends one large request, each with other header fields, gets its response, and then does nothing. */
export const largeHeads: Attack = {
  name: "large-heads",
  title: "10,000 idle connections after heads of 16 KiB",
  openFiles: 12_000,
  bars: { p99Ms: 50, memoryMb: 250 },
  isMeasuredWhenReady: true,
  run(target, signal, onReady) {
    let sent = 0;
    let answered = 0;
    return holdConnections(
      target,
      {
        count: COUNT,
        perAddress: 200,
        reconnects: false,
        onOpen(socket) {
          socket.on("data", () => {});
          socket.once("data", () => {
            if (++answered === COUNT) onReady();
          });
          socket.write(`GET /v1/pets HTTP/1.1\r\nHost: x\r\nX-Number: ${sent++}\r\n${HEADERS}\r\n`);
        },
      },
      signal,
    );
  },
};
