import { createServer } from "node:net";

/** A server that is healthy for the load balancer, and records what it receives. */
export interface FakeServer {
  readonly port: number;
  /** The request lines, except those for /healthz. */
  readonly received: readonly string[];
  /** The number of connections that carried them. */
  readonly connections: number;
  stop(): void;
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** One that closes does so instead of a response, like a server that is killed. */
export async function startFakeServer(behaviour: "responds" | "closes"): Promise<FakeServer> {
  const received: string[] = [];
  const connections = new Set<object>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      const [line = ""] = bytes.toString("latin1").split("\r\n");
      if (line.includes(" /healthz ")) return void socket.write(OK);
      received.push(line);
      connections.add(socket);
      if (behaviour === "responds") socket.write(OK);
      else socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("there is no port");
  return {
    port: address.port,
    received,
    get connections() {
      return connections.size;
    },
    stop: () => void server.close(),
  };
}
