/* A server on loopback that responds to every request as no server should. */

import { createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";

const HEAD = "HTTP/1.1 200 OK\r\n";
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;
const BLOCK = "a".repeat(65_536);
const DRIP_MS = 20;

interface Response {
  readonly write: (text: string | Uint8Array) => void;
  /** Writes texts for as long as the connection is open, as fast as they are read. */
  readonly endless: (text: (n: number) => string) => void;
  /** Writes a text every 20 ms for as long as the connection is open. */
  readonly drip: (text: (n: number) => string) => void;
  readonly close: () => void;
}

const headerLines = (n: number) =>
  Array.from({ length: 500 }, (_, i) => `X-${n}-${i}: ${"b".repeat(100)}\r\n`).join("");

/** The attacks. Those after which a client can only wait are `slow`. */
export const HOSTILE_RESPONSES = {
  "an endless body": { respond: ({ write, endless }) => (write(`${HEAD}\r\n`), endless(() => BLOCK)) },
  "an endless body in chunks": {
    respond: ({ write, endless }) => (write(CHUNKED), endless(() => `10000\r\n${BLOCK}\r\n`)),
  },
  "a line of a body that does not end": {
    respond: ({ write, drip }) => (write(`${HEAD}Content-Length: 1000000\r\n\r\n`), drip(() => "a")),
    isSlow: true,
  },
  "an endless chunk extension": {
    respond: ({ write, endless }) => (write(`${CHUNKED}1;`), endless(() => BLOCK)),
    isSlow: true,
  },
  "endless trailers": {
    respond: ({ write, endless }) => (write(`${CHUNKED}0\r\n`), endless(headerLines)),
    isSlow: true,
  },
  "endless header lines": { respond: ({ write, endless }) => (write(HEAD), endless(headerLines)) },
  "an endless header": { respond: ({ write, endless }) => (write(`${HEAD}X-A: `), endless(() => BLOCK)) },
  "headers one by one": {
    respond: ({ write, drip }) => (write(HEAD), drip((n) => `X-${n % 9}: 1\r\n`.slice(n % 2))),
    isSlow: true,
  },
  "endless interim responses": {
    respond: ({ endless }) => endless(() => "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(100)),
    isSlow: true,
  },
  "no response": { respond() {}, isSlow: true },
  "a body of 200 MB, compressed": {
    respond({ write, close }) {
      const bytes = gzipSync(Buffer.alloc(200_000_000));
      write(`${HEAD}Content-Encoding: gzip\r\nContent-Length: ${bytes.length}\r\n\r\n`);
      write(bytes);
      close();
    },
  },
  "a redirect": {
    respond({ write }, { port }) {
      const to = `http://127.0.0.1:${port}/redirected`;
      write(`HTTP/1.1 307 Temporary Redirect\r\nLocation: ${to}\r\nContent-Length: 0\r\n\r\n`);
    },
  },
  "something that is not HTTP": { respond: ({ endless }) => endless(() => BLOCK) },
  "a change of the protocol": {
    respond: ({ write }) => write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"),
  },
  "a closed connection": { respond: ({ close }) => close() },
} as const satisfies Record<
  string,
  {
    readonly respond: (response: Response, server: { readonly port: number }) => unknown;
    readonly isSlow?: true;
  }
>;

export type HostileResponse = keyof typeof HOSTILE_RESPONSES;

/** Starts the server. It responds to each connection once. */
export async function startHostileServer(name: HostileResponse) {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  const { promise: left, resolve: onLeft } = Promise.withResolvers<void>();
  let sentBytes = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      if (sockets.size === 0 && requests.length > 0) onLeft();
    });
    socket.once("data", (head) => {
      requests.push(head.toString().split("\r\n", 1).join());
      onAsked();
      HOSTILE_RESPONSES[name].respond(responseOn(socket), { port });
    });
  });
  const responseOn = (socket: Socket): Response => {
    const write = (text: string | Uint8Array) => {
      sentBytes += text.length;
      return socket.writable && socket.write(text);
    };
    let n = 0;
    const endless = (text: (n: number) => string) => {
      if (!socket.writable) return;
      // The client may read as fast as this process writes, which has other work to do.
      if (write(text(n++))) setImmediate(() => endless(text));
      else socket.once("drain", () => endless(text));
    };
    const drip = (text: (n: number) => string) => {
      const timer = setInterval(() => write(text(n++)), DRIP_MS);
      socket.on("close", () => clearInterval(timer));
    };
    return { write, endless, drip, close: () => socket.end() };
  };
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    port,
    /** The first lines of the requests. */
    requests,
    /** Resolves when a request has arrived. */
    asked,
    /** Resolves when the client has closed every connection. */
    left,
    sentBytes: () => sentBytes,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
