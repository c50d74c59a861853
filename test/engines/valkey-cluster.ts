import { RedisClient } from "bun";
import { freePort } from "./port.ts";
import type { Server } from "./server.ts";
import { startValkey } from "./valkey.ts";

const SLOTS = 16_384;
const AGREED_WITHIN_MS = 15_000;

export interface ValkeyCluster {
  /** Each serves a part of the keys; there are no replicas, so a node that is lost takes its part with it. */
  readonly nodes: readonly Server[];
  stop(): Promise<void>;
}

/** Three nodes on the loopback that know each other and share the slots. */
export async function startValkeyCluster(): Promise<ValkeyCluster> {
  const members = await Promise.all([startMember(), startMember(), startMember()]);
  const clients = members.map(({ node }) => new RedisClient(node.url, { autoReconnect: false }));
  try {
    await introduce(members, clients);
    await Promise.all(clients.map(agreed));
  } finally {
    for (const client of clients) client.close();
  }
  const nodes = members.map(({ node }) => node);
  return {
    nodes,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

interface Member {
  readonly node: Server;
  /** Where the nodes talk to each other. By default far above the port for clients, where it may not be free. */
  readonly busPort: number;
}

async function startMember(): Promise<Member> {
  const busPort = freePort();
  const settings = {
    "cluster-enabled": "yes",
    "cluster-port": `${busPort}`,
    // A lost node is noticed soon, and the keys of the others are served on.
    "cluster-node-timeout": "1000",
    "cluster-require-full-coverage": "no",
    // A cluster has no other.
    databases: "1",
  };
  return { node: await startValkey({ settings }), busPort };
}

async function introduce(members: readonly Member[], clients: readonly RedisClient[]): Promise<void> {
  for (const [i, client] of clients.entries()) {
    const first = Math.ceil((i * SLOTS) / clients.length);
    const last = Math.ceil(((i + 1) * SLOTS) / clients.length) - 1;
    await client.send("CLUSTER", ["ADDSLOTSRANGE", `${first}`, `${last}`]);
    await client.send("CLUSTER", ["SET-CONFIG-EPOCH", `${i + 1}`]);
  }
  for (const { node, busPort } of members.slice(1)) {
    await clients[0]?.send("CLUSTER", ["MEET", "127.0.0.1", new URL(node.url).port, `${busPort}`]);
  }
}

/** They find out about each other by gossip, which announces nothing when it is done; so it is asked for. */
async function agreed(client: RedisClient): Promise<void> {
  const deadline = Date.now() + AGREED_WITHIN_MS;
  for (;;) {
    const info = String(await client.send("CLUSTER", ["INFO"]));
    if (
      /cluster_state:ok/.test(info) &&
      /cluster_known_nodes:3/.test(info) &&
      /cluster_slots_ok:16384/.test(info)
    )
      return;
    if (Date.now() > deadline) throw new Error(`the nodes did not come to an agreement:\n${info}`);
    await Bun.sleep(25);
  }
}
