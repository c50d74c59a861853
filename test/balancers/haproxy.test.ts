import { test } from "bun:test";
import { connect } from "node:net";
import { join } from "node:path";
import { expectNoPlainCreateLost, expectUnnoticed, until } from "./departures.ts";
import { haproxy } from "./kinds.ts";
import { balancerSuite, type Scene } from "./suite.ts";

const TIMEOUT_MS = 20_000;

balancerSuite(haproxy, (scene) => {
  test(
    "SIGTERM under load: nobody notices, the instance is taken out, and back in when /healthz answers again",
    async () => {
      const { fleet, balancer } = scene();
      await expectUnnoticed(scene(), async () => {
        const out = balancer.said(/Server petstore\/a is DOWN/);
        await fleet.stop(0);
        await out;
        const back = balancer.said(/Server petstore\/a is UP/);
        await fleet.start(0);
        await back;
      });
    },
    TIMEOUT_MS,
  );

  test(
    "an instance drained by hand, and stopped when it is idle: no create is lost, with a key or without",
    async () => {
      const { fleet } = scene();
      await expectNoPlainCreateLost(scene(), async () => {
        await tell(scene(), "set server petstore/b state drain");
        await until(async () => (await sessionsOf(scene(), "b")) === 0);
        await fleet.stop(1);
        await fleet.start(1);
        await tell(scene(), "set server petstore/b state ready");
        await until(async () => (await sessionsOf(scene(), "b")) > 0);
      });
    },
    TIMEOUT_MS,
  );
});

function tell({ balancer }: Scene, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let reply = "";
    const socket = connect(join(balancer.folder, "admin.sock"), () => void socket.write(`${command}\n`));
    socket.on("data", (chunk) => void (reply += chunk.toString()));
    socket.on("close", () => resolve(reply));
    socket.on("error", reject);
  });
}

async function sessionsOf(scene: Scene, server: string): Promise<number> {
  const [header = "", ...rows] = (await tell(scene, "show stat petstore 4 -1")).split("\n");
  const column = header.replace(/^# /, "").split(",").indexOf("scur");
  return Number(rows.find((row) => row.startsWith(`petstore,${server},`))?.split(",")[column]);
}
