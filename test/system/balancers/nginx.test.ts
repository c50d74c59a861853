import { test } from "bun:test";
import { readFileSync } from "node:fs";
import { nginx } from "../../../trials/harness/load-balancer.ts";
import { expectNoErrors, expectNoErrorsWithoutRetries } from "./restart-under-load.ts";
import { until } from "../../timing.ts";
import { loadBalancerSuite } from "./suite.ts";

loadBalancerSuite(nginx, (setup) => {
  test("SIGTERM under load: no request fails, the server gets no requests, and gets some again when it is back", async () => {
    const { fleet, balancer } = setup();
    const [port = 0] = fleet.ports;
    await expectNoErrors(setup(), async () => {
      const disabled = balancer.logged(new RegExp(`temporarily disabled.*127\\.0\\.0\\.1:${port}/`));
      await fleet.stopServer(0);
      await disabled;
      await fleet.startServer(0);
      await until(() => openConnectionsTo(port) > 0);
    });
  });

  test("a server that is marked down, and stopped when it has no connections: no create is lost, with a key or without", async () => {
    const { fleet, balancer } = setup();
    const [, port = 0] = fleet.ports;
    const restart = async () => {
      balancer.reload((text) =>
        text.replace(new RegExp(`(server 127\\.0\\.0\\.1:${port} [^;]*);`), "$1 down;"),
      );
      await until(() => openConnectionsTo(port) === 0);
      await fleet.stopServer(1);
      await fleet.startServer(1);
      balancer.reload((text) => text);
      await until(() => openConnectionsTo(port) > 0);
    };
    // When nginx reads its file again, it closes the clients' keep-alive connections, even if a request is arriving.
    await expectNoErrorsWithoutRetries(setup(), restart, { newConnections: true });
  });
});

const ESTABLISHED = "01";

function openConnectionsTo(port: number): number {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync("/proc/net/tcp", "utf8").trim().split("\n");
  return lines.filter((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return local.endsWith(suffix) && state === ESTABLISHED;
  }).length;
}
