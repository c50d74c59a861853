import { RedisClient } from "bun";
import { freePort } from "./ports.ts";
import { startValkey } from "./valkey.ts";

export const SLOTS = 16_384;
const JOIN_TIMEOUT_MS = 15_000;

export type ValkeyCluster = Awaited<ReturnType<typeof startValkeyCluster>>;

/** Three nodes, each with a third of the slots. There are no replicas: the slots of a lost node are lost with it. */
export async function startValkeyCluster() {
  const members = await Promise.all([startMember(), startMember(), startMember()]);
  const clients = members.map(({ node }) => new RedisClient(node.url, { autoReconnect: false }));
  try {
    await assignSlots(clients);
    for (const { node, busPort } of members.slice(1)) {
      await clients[0]?.send("CLUSTER", ["MEET", "127.0.0.1", new URL(node.url).port, `${busPort}`]);
    }
    await Promise.all(clients.map(hasJoined));
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

async function startMember() {
  // For the nodes among themselves. The default is 10,000 above the port for clients, where it may not be free.
  const busPort = freePort();
  const settings = {
    "cluster-enabled": "yes",
    "cluster-port": `${busPort}`,
    // The other nodes notice a lost node soon, and go on serving their own slots.
    "cluster-node-timeout": "1000",
    "cluster-require-full-coverage": "no",
    databases: "1",
  };
  return { node: await startValkey({ settings }), busPort };
}

async function assignSlots(clients: readonly RedisClient[]): Promise<void> {
  for (const [i, client] of clients.entries()) {
    const first = Math.ceil((i * SLOTS) / clients.length);
    const last = Math.ceil(((i + 1) * SLOTS) / clients.length) - 1;
    await client.send("CLUSTER", ["ADDSLOTSRANGE", `${first}`, `${last}`]);
    await client.send("CLUSTER", ["SET-CONFIG-EPOCH", `${i + 1}`]);
  }
}

/** Nodes learn of one another by gossip, and nothing announces when that is done. */
async function hasJoined(client: RedisClient): Promise<void> {
  const deadline = Date.now() + JOIN_TIMEOUT_MS;
  const expected = ["cluster_state:ok", "cluster_known_nodes:3", `cluster_slots_ok:${SLOTS}`];
  for (;;) {
    const info = String(await client.send("CLUSTER", ["INFO"]));
    if (expected.every((line) => info.includes(line))) return;
    if (Date.now() > deadline) throw new Error(`the nodes did not form a cluster:\n${info}`);
    await Bun.sleep(25);
  }
}
