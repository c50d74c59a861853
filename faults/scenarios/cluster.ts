import { RedisClient } from "bun";
import { startPostgres } from "../../test/engines/postgres.ts";
import type { Server } from "../../test/engines/server.ts";
import { startValkeyCluster } from "../../test/engines/valkey-cluster.ts";
import { Fleet } from "../../test/instances/fleet.ts";
import { backWithin, eachSaysSo, onlyErrors, waitsAtMost, WHATEVER_HAPPENS } from "../expectations.ts";
import type { Ground, Scenario } from "../scenario.ts";

interface OnCluster extends Ground {
  readonly nodes: readonly Server[];
}

const SLOTS = 16_384;
/** The key of the load is the second: the first is the one that a first start makes. */
const LOADED = "petstore:production:{key:2}";

async function onCluster(): Promise<OnCluster> {
  const [postgres, cluster] = await Promise.all([startPostgres({ durable: true }), startValkeyCluster()]);
  const hosts = cluster.nodes.flatMap(({ url }) => ["--limits-url", url]);
  const fleet = await Fleet.start({ size: 2, place: ["--database-url", postgres.url, ...hosts] });
  return {
    fleet,
    nodes: cluster.nodes,
    async stop() {
      await fleet.stop();
      await Promise.all([postgres.stop(), cluster.stop()]);
    },
  };
}

/** The node that counts the load; the others would be missed by nobody. */
async function busiest({ nodes }: OnCluster): Promise<Server | undefined> {
  const client = new RedisClient(nodes[0]?.url ?? "", { autoReconnect: false });
  const slot = Number(await client.send("CLUSTER", ["KEYSLOT", LOADED]));
  client.close();
  return nodes[Math.floor((slot * nodes.length) / SLOTS)];
}

/** A node that was started again takes no commands for two seconds: Valkey has it so. */
async function isServing({ url }: Server): Promise<void> {
  const client = new RedisClient(url, { autoReconnect: false });
  while (!/cluster_state:ok/.test(String(await client.send("CLUSTER", ["INFO"])))) await Bun.sleep(5);
  client.close();
}

let lost: Server | undefined;

export const CLUSTER: readonly Scenario<OnCluster>[] = [
  {
    name: "cluster-node-lost",
    title: "one of three Valkey nodes killed, started again 4 s later",
    prepare: onCluster,
    async begin(ground) {
      lost = await busiest(ground);
      await lost?.kill();
    },
    lastsMs: 4_000,
    async end({ nodes }) {
      await lost?.restart();
      await Promise.all(nodes.map(isServing));
    },
    expectations: [
      ...WHATEVER_HAPPENS,
      onlyErrors(),
      waitsAtMost(25),
      eachSaysSo("Valkey"),
      backWithin(1_000),
    ],
  },
];
