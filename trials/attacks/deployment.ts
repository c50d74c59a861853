import { SQL } from "bun";
import { temporaryFolder } from "../harness/cleanup.ts";
import type { Cores } from "../harness/machine.ts";
import { type PetstoreServer, startPetstore } from "../harness/petstore.ts";
import { setTreePriority } from "../harness/processes.ts";
import { startPostgres } from "../harness/postgres.ts";
import { sendToValkey, startValkey } from "../harness/valkey.ts";
import type { Engines } from "./attacks.ts";

export interface Deployment {
  readonly servers: readonly PetstoreServer[];
  /** Flags that say where the data is. */
  readonly storage: readonly string[];
  readonly shared?: Awaited<ReturnType<typeof startDatabases>>;
  stop(): Promise<void>;
}

export interface DeploymentOptions {
  readonly cores: Cores;
  /** Limit of open files of each server. */
  readonly openFiles: number | undefined;
}

/** Each process or group of processes has a session of its own. */
export const PRIORITY = {
  /**
   * The well-behaved client, PostgreSQL, Valkey and a server that is not attacked stand for machines of their own: what
   * attackers and attacked servers use of these cores must not make them late. A Valkey that does not reply in 25 ms
   * counts as unavailable.
   */
  ownMachine: -10,
  attacker: 10,
} as const;

const SHARED_SERVERS = 2;

/** The servers share one core. */
export async function startDeployment(engines: Engines, options: DeploymentOptions): Promise<Deployment> {
  const databases = engines === "shared" ? await startDatabases() : undefined;
  const storage = databases?.storage ?? ["--data", temporaryFolder("attacks")];
  const servers: PetstoreServer[] = [];
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop("SIGKILL")));
    await databases?.stop();
  };
  try {
    while (servers.length < (databases ? SHARED_SERVERS : 1))
      servers.push(await startServer(storage, options));
  } catch (error) {
    await stop();
    throw error;
  }
  return { servers, storage, ...(databases && { shared: databases }), stop };
}

async function startDatabases() {
  const [postgres, valkey] = await Promise.all([startPostgres({ durable: true }), startValkey()]);
  const prefer = () => [postgres, valkey].forEach(({ pid }) => setTreePriority(pid, PRIORITY.ownMachine));
  prefer();
  const sql = new SQL(postgres.url, { max: 1 });
  return {
    storage: ["--database-url", postgres.url, "--limits-url", valkey.url],
    /** Gives PostgreSQL, which has a process for each connection, and Valkey their priority. */
    prefer,
    valkeyEntries: async () => Number(await sendToValkey(valkey.url, "DBSIZE")),
    /** That PostgreSQL has committed since its start. */
    async transactions() {
      const [row] = await sql`SELECT sum(xact_commit)::int8 AS count FROM pg_stat_database`;
      return Number(row.count);
    },
    async stop() {
      await sql.close({ timeout: 0 });
      await Promise.all([postgres.kill(), valkey.kill()]);
    },
  };
}

function startServer(
  storage: readonly string[],
  { cores, openFiles }: DeploymentOptions,
): Promise<PetstoreServer> {
  const openFilesLimit = openFiles === undefined ? [] : ["prlimit", `--nofile=${openFiles}`];
  return startPetstore(
    ["--port", "0", ...storage],
    ["setsid", "taskset", "-c", cores.server, ...openFilesLimit],
  );
}
