import { RedisClient } from "bun";
import { temporaryDirectory } from "./cleanup.ts";
import { type Certificate, freePort, onFreePort, type Server, startServer } from "./server.ts";
import { executable, VALKEY } from "./programs.ts";

interface ValkeyOptions {
  /** The settings by their names in the configuration file. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The certificate, with which the server accepts only connections over TLS. */
  readonly tls?: Certificate;
}

/** The default settings. The number of logical databases exceeds what tests use; each costs next to nothing. */
const DEFAULTS = { bind: "127.0.0.1", databases: "4096", save: "" };

export async function startValkey({ settings = {}, tls }: ValkeyOptions = {}): Promise<Server> {
  const directory = temporaryDirectory("valkey");
  return onFreePort((port) => {
    const ports = tls ? { port: "0", "tls-port": `${port}`, ...tlsSettings(tls) } : { port: `${port}` };
    const all = { ...DEFAULTS, ...settings, dir: directory, ...ports };
    return startServer({
      url: `${tls ? "rediss" : "redis"}://127.0.0.1:${port}`,
      command: [executable(VALKEY), ...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value])],
      cwd: directory,
      ready: /Ready to accept connections/,
      stop: "SIGTERM",
    });
  });
}

function tlsSettings({ certFile, keyFile }: Certificate): Record<string, string> {
  return {
    "tls-cert-file": certFile,
    "tls-key-file": keyFile,
    "tls-ca-cert-file": certFile,
    "tls-auth-clients": "no",
  };
}

export async function sendToValkey(url: string, command: string, ...args: string[]): Promise<string> {
  const client = new RedisClient(url, { autoReconnect: false });
  try {
    return String(await client.send(command, args));
  } finally {
    client.close();
  }
}

/** The test runner sets this variable, so that all test files share one server. */
export const VALKEY_VARIABLE = "PETSTORE_TEST_VALKEY_URL";

let server: Promise<string> | undefined;

/** Reserves an empty logical database on a server that tests share. Database 0 counts those in use. */
export async function valkeyUrl(): Promise<string> {
  server ??= Promise.resolve(process.env[VALKEY_VARIABLE] ?? startValkey().then(({ url }) => url));
  const url = new URL(await server);
  url.pathname = `/${await sendToValkey(url.href, "INCR", "databases")}`;
  return url.href;
}

export const SLOTS = 16_384;
const JOIN_TIMEOUT_MS = 15_000;

/**
 * Starts three nodes, each with a third of the slots. Without replicas, the slots of a lost node are lost with it. With
 * them, three more nodes follow the first ones, and one of them replaces a lost node.
 */
export async function startValkeyCluster({ hasReplicas = false } = {}) {
  const members = await Promise.all(Array.from({ length: hasReplicas ? 6 : 3 }, startMember));
  const clients = members.map(({ node }) => new RedisClient(node.url, { autoReconnect: false }));
  const [primaries, replicas] = [clients.slice(0, 3), clients.slice(3)];
  try {
    await assignSlots(primaries);
    for (const { node, busPort } of members.slice(1)) {
      await clients[0]?.send("CLUSTER", ["MEET", "127.0.0.1", new URL(node.url).port, `${busPort}`]);
    }
    await Promise.all(clients.map((client) => hasJoined(client, members.length)));
    for (const [i, replica] of replicas.entries()) {
      await replica.send("CLUSTER", ["REPLICATE", String(await primaries[i]?.send("CLUSTER", ["MYID"]))]);
    }
    await Promise.all(replicas.map(isInSync));
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
  // This port is for the nodes among themselves. The default, 10,000 above the port for clients, may not be free.
  const busPort = freePort();
  const settings = {
    "cluster-enabled": "yes",
    "cluster-port": `${busPort}`,
    // The other nodes notice a lost node soon, and continue to serve their own slots.
    "cluster-node-timeout": "1000",
    "cluster-require-full-coverage": "no",
    "repl-diskless-sync-delay": "0",
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

/** Waits until nodes know of one another. They learn it by gossip, and nothing announces the end of that. */
function hasJoined(client: RedisClient, nodes: number): Promise<void> {
  const lines = ["cluster_state:ok", `cluster_known_nodes:${nodes}`, `cluster_slots_ok:${SLOTS}`];
  return becomes(client, ["CLUSTER", "INFO"], lines);
}

function isInSync(replica: RedisClient): Promise<void> {
  return becomes(replica, ["INFO", "replication"], ["role:slave", "master_link_status:up"]);
}

async function becomes(client: RedisClient, command: string[], lines: readonly string[]): Promise<void> {
  const [name = "", ...args] = command;
  const deadline = Date.now() + JOIN_TIMEOUT_MS;
  for (;;) {
    const info = String(await client.send(name, args));
    if (lines.every((line) => info.includes(line))) return;
    if (Date.now() > deadline) throw new Error(`the nodes did not form a cluster:\n${info}`);
    await Bun.sleep(25);
  }
}
