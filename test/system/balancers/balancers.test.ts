import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Fleet } from "../../../trials/harness/fleet.ts";
import { sendOnce } from "../../../trials/harness/http-connection.ts";
import {
  haproxy,
  type LoadBalancer,
  type LoadBalancerKind,
  nginx,
  startLoadBalancer,
} from "../../../trials/harness/load-balancer.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { until } from "../../timing.ts";
import { haproxyCommand } from "./haproxy-command.ts";
import { createPet, listPets, PUBLIC_URL, type Setup } from "./requests.ts";
import { expectNoErrors } from "./restart-under-load.ts";
import { unchangedResponseTests } from "./unchanged-responses.ts";

async function start(kind: LoadBalancerKind): Promise<Setup> {
  const storage = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
  // Only the load balancer's address is trusted: clients in these tests have others of 127.0.0.0/8.
  const flags = ["--public-url", PUBLIC_URL, "--trust-proxy", "127.0.0.1", "--limits-timeout", "1s"];
  const fleet = await Fleet.start({ size: 3, storage, flags });
  const { key } = await fleet.createKey();
  return { fleet, balancer: await startLoadBalancer(kind, fleet.ports), key };
}

/** How a load balancer tells what it does with servers, and how it is told. */
interface Handling {
  /** Resolve when it sends the first server no more requests, and when it sends some again. */
  isOut(setup: Setup): Promise<unknown>;
  isBack(setup: Setup): Promise<unknown>;
  /** Takes the second server out by hand, until it is idle, and puts it back. */
  drain(setup: Setup): Promise<unknown>;
  restore(setup: Setup): Promise<unknown>;
  /** Whether it closes the clients' keep-alive connections then, even if a request is arriving. */
  readonly newConnections?: boolean;
}

const HAPROXY: Handling = {
  isOut: ({ balancer }) => balancer.logged(/Server petstore\/a is DOWN/),
  isBack: ({ balancer }) => balancer.logged(/Server petstore\/a is UP/),
  async drain({ balancer }) {
    await haproxyCommand(balancer, "set server petstore/b state drain");
    await until(async () => (await sessionsOf(balancer, "b")) === 0);
  },
  async restore({ balancer }) {
    await haproxyCommand(balancer, "set server petstore/b state ready");
    await until(async () => (await sessionsOf(balancer, "b")) > 0);
  },
};

async function sessionsOf(balancer: LoadBalancer, server: string): Promise<number> {
  const [header = "", ...rows] = (await haproxyCommand(balancer, "show stat petstore 4 -1")).split("\n");
  const column = header.replace(/^# /, "").split(",").indexOf("scur");
  return Number(rows.find((row) => row.startsWith(`petstore,${server},`))?.split(",")[column]);
}

const NGINX: Handling = {
  isOut: ({ balancer, fleet }) =>
    balancer.logged(new RegExp(`temporarily disabled.*127\\.0\\.0\\.1:${fleet.ports[0]}/`)),
  isBack: ({ fleet }) => until(() => openConnectionsTo(fleet.ports[0]) > 0),
  async drain({ balancer, fleet }) {
    const server = new RegExp(`(server 127\\.0\\.0\\.1:${fleet.ports[1]} [^;]*);`);
    balancer.reload((text) => text.replace(server, "$1 down;"));
    await until(() => openConnectionsTo(fleet.ports[1]) === 0);
  },
  async restore({ balancer, fleet }) {
    balancer.reload((text) => text);
    await until(() => openConnectionsTo(fleet.ports[1]) > 0);
  },
  newConnections: true,
};

const ESTABLISHED = "01";

function openConnectionsTo(port = 0): number {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = readFileSync("/proc/net/tcp", "utf8").trim().split("\n");
  return lines.filter((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return local.endsWith(suffix) && state === ESTABLISHED;
  }).length;
}

const SETUPS = [
  ["HAProxy", HAPROXY, await start(haproxy)],
  ["nginx", NGINX, await start(nginx)],
] as const;
afterAll(async () => {
  for (const [, , { balancer }] of SETUPS) await balancer.stop();
  for (const [, , { fleet }] of SETUPS) await fleet.stop();
});

/** What a load balancer does with its documented configuration. */
describe.each(SETUPS)("%s", (_, { isOut, isBack, drain, restore, newConnections = false }, setup) => {
  const { fleet, balancer, key } = setup;

  unchangedResponseTests(setup);

  test("clients without a key are limited by their own address, whatever X-Forwarded-For they send", async () => {
    const remaining = async (from: string, ...forwardedFor: string[]) => {
      const headers = forwardedFor.map((value) => ["X-Forwarded-For", value] as const);
      const response = await sendOnce(balancer.port, { path: "/v1/pets", headers }, from);
      return Number(response.headers["x-ratelimit-remaining"]);
    };
    // Each of the three servers counts on its own.
    const forged = [[], ["203.0.113.7"], ["203.0.113.8, 127.0.0.1"], ["203.0.113.9", "127.0.0.1"]];
    const used: number[] = [];
    for (let i = 0; i < 12; i++) used.push(300 - (await remaining("127.0.0.9", ...(forged[i % 4] ?? []))));
    expect(used.filter((count) => count === 1).length).toBeWithin(1, 4);
    expect(Math.max(...used)).toBeWithin(4, 13);
    expect(await remaining("127.0.0.10", "127.0.0.9")).toBe(299);
  });

  test("SIGTERM under load: no request fails, the server is taken out, and put back when it responds again", async () => {
    const restart = async () => {
      const out = isOut(setup);
      await fleet.stopServer(0);
      await out;
      const back = isBack(setup);
      await fleet.startServer(0);
      await back;
    };
    const request = (name: string, n: number) =>
      n % 2 === 0 ? listPets(key) : createPet(key, name, `${name}-${n}`);
    await expectNoErrors(setup, restart, { request });
  });

  test("a server that is drained by hand, and stopped when it is idle: no create is lost, with a key or without", async () => {
    const restart = async () => {
      await drain(setup);
      await fleet.stopServer(1);
      await fleet.startServer(1);
      await restore(setup);
    };
    // Without an Idempotency-Key, which nobody retries.
    await expectNoErrors(setup, restart, { request: (name) => createPet(key, name), newConnections });
  });
});
