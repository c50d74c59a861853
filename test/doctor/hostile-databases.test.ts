import { expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { cleanUpAfterAll, InProcessCli } from "../cli/cli.ts";

cleanUpAfterAll();

const SECRET = "s3cret";

/** What answers the first bytes of a connection, although it is not PostgreSQL. */
const ANSWERS: Readonly<Record<string, (socket: Socket) => unknown>> = {
  nothing: () => {},
  "the end of the connection": (socket) => socket.destroy(),
  "a message of 2 GB for PostgreSQL, without its bytes": (socket) => socket.write("N\x7f\x7f\x7f\x7f"),
  "a byte now and then": (socket) => {
    const dripping = setInterval(() => socket.write("a"), 20);
    socket.once("close", () => clearInterval(dripping));
  },
};

/** Something at an address, which closes all connections in the end. */
async function startPeer(answer: (socket: Socket) => unknown) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {}).once("data", () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: Object(server.address()).port as unknown,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

// The bound is that of a connection to PostgreSQL.
test.each([
  ["PostgreSQL", (address: string) => `--database-url postgres://shop:${SECRET}@${address}`, "after 5s"],
] as const)(
  "what responds in the place of %s is given up in time, and no message has the password",
  async (name, flags, bound) => {
    const checked = Object.entries(ANSWERS).map(async ([answer, respond]) => {
      using peer = await startPeer(respond);
      const { code, out, err } = await new InProcessCli().run(`doctor ${flags(`127.0.0.1:${peer.port}/0`)}`);
      expect([answer, code]).toEqual([answer, 1]);
      expect(out).toContain(`${name} at 127.0.0.1:${peer.port}/0 cannot be used: `);
      expect(out + err).not.toContain(SECRET);
      if (answer === "nothing") expect(out).toContain(bound);
    });
    await Promise.all(checked);
  },
);
