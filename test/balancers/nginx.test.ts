import { test } from "bun:test";
import { expectNoPlainCreateLost, expectUnnoticed, until } from "./departures.ts";
import { nginx } from "./kinds.ts";
import { openConnectionsTo } from "./sockets.ts";
import { balancerSuite } from "./suite.ts";

const TIMEOUT_MS = 20_000;

balancerSuite(nginx, (scene) => {
  test(
    "SIGTERM under load: nobody notices, the instance is left alone, and asked again when it is back",
    async () => {
      const { fleet, balancer } = scene();
      const [port = 0] = fleet.ports;
      await expectUnnoticed(scene(), async () => {
        const leftAlone = balancer.said(new RegExp(`temporarily disabled.*127\\.0\\.0\\.1:${port}/`));
        await fleet.stop(0);
        await leftAlone;
        await fleet.start(0);
        await until(() => openConnectionsTo(port) > 0);
      });
    },
    TIMEOUT_MS,
  );

  test(
    "an instance marked down, and stopped when its connections are gone: no create is lost, with a key or without",
    async () => {
      const { fleet, balancer } = scene();
      const [, port = 0] = fleet.ports;
      const happens = async () => {
        balancer.reload((text) =>
          text.replace(new RegExp(`(server 127\\.0\\.0\\.1:${port} [^;]*);`), "$1 down;"),
        );
        await until(() => openConnectionsTo(port) === 0);
        await fleet.stop(1);
        await fleet.start(1);
        balancer.reload((text) => text);
        await until(() => openConnectionsTo(port) > 0);
      };
      // On reading its file again this nginx closes kept connections of clients too, whatever is on its way on them.
      await expectNoPlainCreateLost(scene(), happens, { afresh: true });
    },
    TIMEOUT_MS,
  );
});
