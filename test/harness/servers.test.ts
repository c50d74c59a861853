import { RedisClient } from "bun";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { isRunning } from "../../harness/processes.ts";
import { type Program, provide } from "../../harness/programs.ts";
import { startValkeyCluster } from "../../harness/valkey-cluster.ts";
import { startValkey, valkeyUrl } from "../../harness/valkey.ts";

const START_TIMEOUT_MS = 60_000;

function program(found: (string | undefined)[]): Program {
  return { name: "Some Server", packages: ["some-server", "other-server"], find: () => found.shift() };
}

test("a program that is present is used, and nothing is installed", () => {
  const install = () => {
    throw new Error("installed");
  };
  expect(provide(program(["/opt/server"]), install)).toBe("/opt/server");
});

test("a program that is missing is installed", () => {
  expect(provide(program([undefined, "/opt/server"]), () => undefined)).toBe("/opt/server");
});

test("if it cannot be installed, one line says what to install and why it was not", () => {
  expect(() => provide(program([]), () => "only root can")).toThrow(
    /^Some Server is missing: install the package some-server or other-server \(only root can\)\.$/,
  );
});

test("nothing is installed unless PETSTORE_TEST_INSTALL=1 is set; the failure names the package and the variable", () => {
  const script = `
    import { provide } from ${JSON.stringify(join(import.meta.dir, "../../harness/programs.ts"))};
    provide({ name: "Some Server", packages: ["some-server"], find: () => undefined });
  `;
  const env = { PATH: process.env["PATH"] };
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, "-e", script], { env, stderr: "pipe" });
  expect(exitCode).toBe(1);
  expect(stderr.toString()).toContain(
    "Some Server is missing: install the package some-server (or set PETSTORE_TEST_INSTALL=1, and root's tests install it with apt-get).",
  );
});

test(
  "servers end with the process that started them, even if that is killed and they are frozen",
  async () => {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "orphaned-servers.ts")], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { value } = await child.stdout.getReader().read();
    const pids: number[] = JSON.parse(new TextDecoder().decode(value));
    expect(pids.map(isRunning)).toEqual([true, true, true]);
    child.kill("SIGKILL");
    // The cleanup process keeps this open until it is done.
    await new Response(child.stderr).text();
    expect(pids.map(isRunning)).toEqual([false, false, false]);
  },
  START_TIMEOUT_MS,
);

test(
  "each logical database is empty and separate from the others",
  async () => {
    const clients = [new RedisClient(await valkeyUrl()), new RedisClient(await valkeyUrl())];
    await clients[0]?.set("a", "1");
    expect(await Promise.all(clients.map((client) => client.get("a")))).toEqual(["1", null]);
    for (const client of clients) client.close();
  },
  START_TIMEOUT_MS,
);

test(
  "a durable Valkey that is killed has its keys again after the restart, at the same address",
  async () => {
    const server = await startValkey({ durable: true });
    const client = new RedisClient(server.url);
    await client.set("a", "1");
    await server.kill();
    expect(server.isRunning).toBe(false);
    await server.restart();
    const again = new RedisClient(server.url);
    expect(await again.get("a")).toBe("1");
    client.close();
    again.close();
    await server.stop();
  },
  START_TIMEOUT_MS,
);

test(
  "three nodes form a cluster: each serves its slots and redirects for the others",
  async () => {
    const { nodes, stop } = await startValkeyCluster();
    const clients = nodes.map(({ url }) => new RedisClient(url));
    for (const key of ["a", "b", "c", "d", "e", "f"]) {
      const results = await Promise.allSettled(clients.map((client) => client.get(key)));
      const moved = results.flatMap((result) => (result.status === "rejected" ? String(result.reason) : []));
      expect(moved).toHaveLength(2);
      for (const reason of moved) expect(reason).toContain("MOVED");
    }
    for (const client of clients) client.close();
    await stop();
  },
  START_TIMEOUT_MS,
);
