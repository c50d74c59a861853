import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Attack, Target } from "./attack.ts";
import { addressOf } from "./connections.ts";
import { worstBodies } from "./worst-bodies.ts";

const CONNECTIONS = 300;
const PER_ADDRESS = 100;
const MAX_BODY_BYTES = 16_384;

/** 300 bodies at once that cost much to parse, again and again. They need a key whose rate limit lets them through. */
export const jsonBodies: Attack = {
  name: "json-bodies",
  title: "300 costly JSON bodies at once",
  bars: { p99Ms: 50, memoryMb: 200 },
  async run(target, signal) {
    const sockets: Socket[] = [];
    const requests = [...worstBodies(MAX_BODY_BYTES).values()].map((body) => requestWith(body, target));
    const endAll = () => sockets.forEach((socket) => socket.destroy());
    signal.addEventListener("abort", endAll);
    for (let round = 0; !signal.aborted; round++) {
      // The server ends connections that get errors only.
      for (let number = 0; number < CONNECTIONS; number++) {
        if (sockets[number]?.destroyed !== false) sockets[number] = await open(target, number);
      }
      const request = requests[round % requests.length] ?? "";
      await Promise.all(sockets.map((socket) => respondsTo(socket, request)));
    }
    endAll();
  },
};

async function open({ host, port }: Target, number: number): Promise<Socket> {
  const socket = connect({ host, port, localAddress: addressOf(Math.floor(number / PER_ADDRESS)) });
  await once(socket, "connect");
  socket.on("error", () => {});
  return socket;
}

function requestWith(body: string, { host, port, key }: Target): string {
  const length = Buffer.byteLength(body);
  const headers = [`Host: ${host}:${port}`, `Authorization: Bearer ${key}`, "Content-Type: application/json"];
  return `POST /v1/pets HTTP/1.1\r\n${headers.join("\r\n")}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

/** Resolves with the first bytes of the response, or when the connection ends. */
function respondsTo(socket: Socket, request: string): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      socket.off("data", done);
      socket.off("close", done);
      resolve();
    };
    if (socket.destroyed) return resolve();
    socket.once("data", done);
    socket.once("close", done);
    socket.write(request);
  });
}
