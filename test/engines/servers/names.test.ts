import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { storePolicy, UNLIMITED } from "../../../trials/harness/policy.ts";
import { startPetstore } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { freePort } from "../../../trials/harness/server.ts";
import { bearer } from "../../bearer.ts";
import { until } from "../../timing.ts";

/** Another address of the server at `to`. */
function forward(hostname: string, to: { hostname: string; port: number }, port = freePort()) {
  let connections = 0;
  const listener = Bun.listen<{ peer: Promise<Bun.Socket> }>({
    hostname,
    port,
    socket: {
      open(socket) {
        connections++;
        const peer = Bun.connect({
          ...to,
          socket: { data: (_, bytes) => void socket.write(bytes), close: () => void socket.end() },
        });
        socket.data = { peer };
      },
      data: async ({ data }, bytes) => void (await data.peer).write(bytes),
      close: async ({ data }) => void (await data.peer).end(),
    },
  });
  return { port, stop: () => listener.stop(true), isUsed: () => connections > 0 };
}

test("a server follows the name of PostgreSQL to another address within seconds", async () => {
  const url = new URL(await postgresUrl());
  await storePolicy(["--database-url", url.href], UNLIMITED);
  const to = { hostname: url.hostname, port: Number(url.port) };
  const first = forward("127.0.0.2", to);
  const second = forward("127.0.0.3", to, first.port);
  const hosts = join(temporaryDirectory("hosts"), "hosts");
  writeFileSync(hosts, "127.0.0.2 database\n");
  url.host = `database:${first.port}`;
  const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];
  const withHosts = ["unshare", "--mount", ...asRoot, "sh", "-c"];
  const mount = [...withHosts, 'mount --bind "$0" /etc/hosts && exec "$@"', hosts];
  const flags = ["--database-url", url.href, "--port", "0", "--admin-address", "off"];
  const server = await startPetstore(flags, mount);
  const headers = bearer(server.key);
  const status = async () => (await fetch(`${server.url}/pets`, { headers })).status;
  expect(await status()).toBe(200);

  writeFileSync(hosts, "127.0.0.3 database\n");
  first.stop();
  // The runtime alone would use the old address for 30 seconds.
  await until(async () => (await status()) === 200 && second.isUsed(), 15_000);
  await server.stop();
  second.stop();
}, 60_000);
