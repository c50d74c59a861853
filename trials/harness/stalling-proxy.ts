import { connect, createServer, type Socket } from "node:net";
import { once } from "node:events";

/** A proxy of a database, which can delay responses, and stop forwarding, on one of its connections or on all. */
export async function startStallingProxy(database: URL) {
  const sockets = new Set<Socket>();
  let isCut = false;
  let delayMs = 0;
  let stall: { readonly text: string; readonly resolve: () => void } | undefined;
  const server = createServer((client) => {
    const target = connect(Number(database.port), database.hostname);
    let isStalled = false;
    client.on("data", (data) => {
      if (stall !== undefined && data.includes(stall.text)) {
        isStalled = true;
        stall.resolve();
        stall = undefined;
      }
      if (!isStalled && !isCut) target.write(data);
    });
    target.on("data", (data) => {
      if (isStalled || isCut) return;
      if (delayMs === 0) client.write(data);
      else setTimeout(() => client.write(data), delayMs);
    });
    for (const [socket, other] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => other.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const url = new URL(database);
  url.port = `${typeof address === "object" ? address?.port : ""}`;
  return {
    url: url.href,
    /** Resolves when a connection is about to send this text. Nothing passes on that connection from then on. */
    stallAt: (text: string) => new Promise<void>((resolve) => (stall = { text, resolve })),
    /** Each response comes so much later from now on, so that round trips can be told apart. */
    delay: (ms: number) => void (delayMs = ms),
    /** Nothing passes on any connection from now on, until `mend`. */
    cut: () => void (isCut = true),
    /** Ends all connections, because what they have lost is missing. New ones work. */
    mend() {
      isCut = false;
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
