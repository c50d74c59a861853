import type { Socket } from "node:net";
import { generateSecret } from "../src/domain/api-keys.ts";
import type { Attack } from "./attack.ts";
import { holdConnections } from "./connections.ts";

const BATCH = 20;

/** Keys with the right prefix and checksum, each another, so that the server has to look them up. */
export const unknownKeys: Attack = {
  name: "unknown-keys",
  title: "200 connections pipeline plausible unknown keys",
  engines: ["sqlite", "shared"],
  bars: { p99Ms: 50, transactionsPerSecond: 2_000 },
  run: (target, signal) =>
    holdConnections(
      target,
      { count: 200, perAddress: 10, reconnects: true, onOpen: sendUnknownKeys },
      signal,
    ),
};

function sendUnknownKeys(socket: Socket): void {
  const write = () => {
    while (socket.writable && socket.write(Array.from({ length: BATCH }, requestWithUnknownKey).join("")));
  };
  socket.on("data", () => {});
  socket.on("drain", write);
  write();
}

export function requestWithUnknownKey(): string {
  return `GET /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${generateSecret("production")}\r\n\r\n`;
}
