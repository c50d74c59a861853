import { createServer } from "node:net";

/** Stands where an instance should, looks healthy, and keeps account of what it is sent. */
export interface Impostor {
  readonly port: number;
  /** First lines of the requests, those for /healthz aside. */
  readonly taken: readonly string[];
  /** Connections on which they came. */
  readonly connections: number;
  end(): void;
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/** `closes`: the connection, in place of an answer, as an instance does that is killed. */
export async function startImpostor(behaviour: "answers" | "closes"): Promise<Impostor> {
  const taken: string[] = [];
  const connections = new Set<object>();
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      const [line = ""] = bytes.toString("latin1").split("\r\n");
      if (line.includes(" /healthz ")) return void socket.write(OK);
      taken.push(line);
      connections.add(socket);
      if (behaviour === "answers") socket.write(OK);
      else socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("there is no port");
  return {
    port: address.port,
    taken,
    get connections() {
      return connections.size;
    },
    end: () => void server.close(),
  };
}
