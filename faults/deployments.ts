import { appendFileSync, rmSync } from "node:fs";
import { temporaryFolder } from "../harness/cleanup.ts";
import { Fleet } from "../harness/fleet.ts";
import { startPostgres } from "../harness/postgres.ts";
import { sendToValkey, startValkey } from "../harness/valkey.ts";
import { SLOTS, startValkeyCluster } from "../harness/valkey-cluster.ts";

/** Petstore servers and the databases that they use. PostgreSQL waits for the disk at every commit. */
export async function startDeployment(servers: number) {
  const [postgres, valkey] = await Promise.all([startPostgres({ durable: true }), startValkey()]);
  const storage = ["--database-url", postgres.url, "--limits-url", valkey.url];
  const fleet = await Fleet.start({ size: servers, storage });
  return { fleet, postgres, valkey, stop: () => stopAll(fleet, postgres, valkey) };
}

/** The fleet first: it would log errors without its databases. */
async function stopAll(fleet: Fleet, ...databases: { stop(): Promise<void> }[]): Promise<void> {
  await fleet.stop();
  await Promise.all(databases.map((database) => database.stop()));
}

/** The load's key is the second: the first is the one that the first start creates. */
const LOAD_USAGE = "petstore:production:{key:2}";

export async function startClusterDeployment() {
  const [postgres, cluster] = await Promise.all([startPostgres({ durable: true }), startValkeyCluster()]);
  const { nodes } = cluster;
  const limits = nodes.flatMap(({ url }) => ["--limits-url", url]);
  const fleet = await Fleet.start({ size: 2, storage: ["--database-url", postgres.url, ...limits] });
  return {
    fleet,
    stop: () => stopAll(fleet, postgres, cluster),
    /** The node that counts the load's requests. */
    async nodeOfLoad() {
      const slot = Number(await sendToValkey(nodes[0]?.url ?? "", "CLUSTER", "KEYSLOT", LOAD_USAGE));
      const node = nodes[Math.floor((slot * nodes.length) / SLOTS)];
      if (node === undefined) throw new Error(`no node has slot ${slot}`);
      return node;
    },
    /** Valkey rejects commands for two seconds after a node has started again. */
    async untilServing() {
      for (const { url } of nodes) {
        while (!(await sendToValkey(url, "CLUSTER", "INFO")).includes("cluster_state:ok")) await Bun.sleep(5);
      }
    },
  };
}

export function smallDiskUnsupported(): string | undefined {
  return process.getuid?.() === 0 && Bun.which("unshare") ? undefined : "only root can mount a small disk";
}

/** One server on SQLite, on a disk in memory that is mounted for its process only and vanishes with it. */
export async function startSmallDiskDeployment() {
  const path = temporaryFolder("disk");
  const fleet = await Fleet.start({
    size: 1,
    storage: ["--data", path],
    // Commands on keys do not see the disk, so the load uses the first key.
    flags: ["--free-limits", "1000000/100000000"],
    under: ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=24m tmpfs "$0" && exec "$@"', path],
  });
  const [server] = fleet.servers;
  const filler = `/proc/${server?.pid}/root${path}/filler`;
  return {
    fleet,
    key: server?.key ?? "",
    inject: async () => fillDisk(filler),
    repair: async () => rmSync(filler),
    stop: () => stopAll(fleet),
  };
}

function fillDisk(filler: string): void {
  const chunk = new Uint8Array(4_096);
  try {
    for (;;) appendFileSync(filler, chunk);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
  }
}
