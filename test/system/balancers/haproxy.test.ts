import { test } from "bun:test";
import { haproxy } from "../../../trials/harness/load-balancer.ts";
import { haproxyCommand } from "./haproxy-command.ts";
import { expectNoErrors, expectNoErrorsWithoutRetries } from "./restart-under-load.ts";
import { until } from "../../timing.ts";
import { loadBalancerSuite, type Setup } from "./suite.ts";

loadBalancerSuite(haproxy, (setup) => {
  test("SIGTERM under load: no request fails, the server is taken out, and put back when /healthz responds again", async () => {
    const { fleet, balancer } = setup();
    await expectNoErrors(setup(), async () => {
      const out = balancer.logged(/Server petstore\/a is DOWN/);
      await fleet.stopServer(0);
      await out;
      const back = balancer.logged(/Server petstore\/a is UP/);
      await fleet.startServer(0);
      await back;
    });
  });

  test("a server that is drained by hand, and stopped when it is idle: no create is lost, with a key or without", async () => {
    const { fleet } = setup();
    await expectNoErrorsWithoutRetries(setup(), async () => {
      await haproxyCommand(setup().balancer, "set server petstore/b state drain");
      await until(async () => (await sessionsOf(setup(), "b")) === 0);
      await fleet.stopServer(1);
      await fleet.startServer(1);
      await haproxyCommand(setup().balancer, "set server petstore/b state ready");
      await until(async () => (await sessionsOf(setup(), "b")) > 0);
    });
  });
});

async function sessionsOf(setup: Setup, server: string): Promise<number> {
  const [header = "", ...rows] = (await haproxyCommand(setup.balancer, "show stat petstore 4 -1")).split(
    "\n",
  );
  const column = header.replace(/^# /, "").split(",").indexOf("scur");
  return Number(rows.find((row) => row.startsWith(`petstore,${server},`))?.split(",")[column]);
}
