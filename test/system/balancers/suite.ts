import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Fleet } from "../../../trials/harness/fleet.ts";
import { sendOnce } from "../../../trials/harness/http-connection.ts";
import {
  type LoadBalancer,
  type LoadBalancerKind,
  startLoadBalancer,
} from "../../../trials/harness/load-balancer.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { PUBLIC_URL } from "./requests.ts";
import { unchangedResponseTests } from "./unchanged-responses.ts";

setDefaultTimeout(60_000);

/** Three servers on one PostgreSQL and one Valkey, behind a load balancer. */
export interface Setup {
  readonly fleet: Fleet;
  readonly balancer: LoadBalancer;
  /** An API key whose limits are never reached. */
  readonly key: string;
}

async function start(kind: LoadBalancerKind): Promise<Setup> {
  const storage = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
  // Only the load balancer's address is trusted: clients in these tests have others of 127.0.0.0/8.
  const flags = ["--public-url", PUBLIC_URL, "--trust-proxy", "127.0.0.1", "--limits-timeout", "1s"];
  const fleet = await Fleet.start({ size: 3, storage, flags });
  const { key } = await fleet.createKey();
  return { fleet, balancer: await startLoadBalancer(kind, fleet.ports), key };
}

/** What a load balancer does with its documented configuration. `ownTests` are those of one kind. */
export function loadBalancerSuite(kind: LoadBalancerKind, ownTests: (setup: () => Setup) => void): void {
  describe(kind.program.name, () => {
    let current: Setup | undefined;
    const setup = () => {
      if (current === undefined) throw new Error("nothing was started");
      return current;
    };
    beforeAll(async () => void (current = await start(kind)));
    afterAll(async () => {
      await current?.balancer.stop();
      await current?.fleet.stop();
    });

    unchangedResponseTests(setup);
    addressTests(setup);
    ownTests(setup);
  });
}

function addressTests(setup: () => Setup): void {
  test("clients without a key are limited by their own address, whatever X-Forwarded-For they send", async () => {
    const remaining = async (from: string, ...forwardedFor: string[]) => {
      const headers = forwardedFor.map((value) => ["X-Forwarded-For", value] as const);
      const response = await sendOnce(setup().balancer.port, { path: "/v1/pets", headers }, from);
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
}
