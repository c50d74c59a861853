import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Attack, Target } from "./attack.ts";
import { worstBodies } from "./worst-bodies.ts";

const CONNECTIONS = 300;
/** Fewer than a server accepts from one address. The addresses are 127.0.0.2 and on. */
const PER_ADDRESS = 50;
const MAX_BODY_BYTES = 16_384;
const LOOPBACK = /^127\.\d+\.\d+\.\d+$/;

/** 300 bodies at once that cost much to parse, again and again. They need a key whose rate limit lets them through. */
export const jsonBodies: Attack = {
  name: "300 costly JSON bodies at once",
  bars: { p99Ms: 50, memoryMb: 200 },
  async run(target, signal) {
    if (!LOOPBACK.test(target.host)) throw new Error(`${target.host} is not a loopback address`);
    const sockets: Socket[] = [];
    const requests = [...worstBodies(MAX_BODY_BYTES).values()].map((body) => requestWith(body, target));
    const endAll = () => sockets.forEach((socket) => socket.destroy());
    signal.addEventListener("abort", endAll);
    for (let round = 0; !signal.aborted; round++) {
      // The server may end connections that get errors only.
      for (let number = 0; number < CONNECTIONS; number++) {
        if (sockets[number]?.destroyed !== false) sockets[number] = await open(target, number);
      }
      const request = requests[round % requests.length] ?? "";
      const responses = await Promise.all(sockets.map((socket) => exchange(socket, request)));
      const unread = responses.find((response) => /^HTTP\/1\.1 (?:401|413|429) /.test(response));
      if (unread !== undefined) {
        endAll();
        throw new Error(`the server did not read a body: ${unread.split("\r\n", 1)[0]}`);
      }
    }
    endAll();
  },
};

async function open({ host, port }: Target, number: number): Promise<Socket> {
  const socket = connect({ host, port, localAddress: `127.0.0.${2 + Math.floor(number / PER_ADDRESS)}` });
  await once(socket, "connect");
  socket.on("error", () => {});
  return socket;
}

function requestWith(body: string, { host, port, key }: Target): string {
  const length = Buffer.byteLength(body);
  const headers = [`Host: ${host}:${port}`, `Authorization: Bearer ${key}`, "Content-Type: application/json"];
  return `POST /v1/pets HTTP/1.1\r\n${headers.join("\r\n")}\r\nContent-Length: ${length}\r\n\r\n${body}`;
}

/** Resolves with the first bytes of the response, which are empty if the connection ends. */
function exchange(socket: Socket, request: string): Promise<string> {
  return new Promise((resolve) => {
    const done = (data?: unknown) => {
      socket.off("data", done);
      socket.off("close", done);
      resolve(Buffer.isBuffer(data) ? data.toString("latin1") : "");
    };
    if (socket.destroyed) return done();
    socket.on("data", done);
    socket.on("close", done);
    socket.write(request);
  });
}
