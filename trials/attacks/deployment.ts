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
  readonly shared?: SharedEngines;
  stop(): Promise<void>;
}

export interface SharedEngines {
  valkeyEntries(): Promise<number>;
  /** Transactions that PostgreSQL has committed since its start. */
  transactions(): Promise<number>;
  /** Gives PostgreSQL, which has a process for each connection, and Valkey their priority. */
  prefer(): void;
}

export interface DeploymentOptions {
  readonly cores: Cores;
  /** Limit of open files of each server. */
  readonly openFiles: number | undefined;
}

/** The servers share one core. */
export async function startDeployment(engines: Engines, options: DeploymentOptions): Promise<Deployment> {
  return engines === "sqlite" ? startSqlite(options) : startShared(options);
}

async function startSqlite(options: DeploymentOptions): Promise<Deployment> {
  const storage = ["--data", temporaryFolder("attacks")];
  const server = await startServer(storage, options);
  return { servers: [server], storage, stop: async () => void (await server.stop("SIGKILL")) };
}

const SERVERS = 2;

async function startShared(options: DeploymentOptions): Promise<Deployment> {
  const [postgres, valkey] = await Promise.all([startPostgres({ durable: true }), startValkey()]);
  const prefer = () => [postgres, valkey].forEach(({ pid }) => setTreePriority(pid, PRIORITY.ownMachine));
  prefer();
  const storage = ["--database-url", postgres.url, "--limits-url", valkey.url];
  const sql = new SQL(postgres.url, { max: 1 });
  const servers: PetstoreServer[] = [];
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop("SIGKILL")));
    await sql.close({ timeout: 0 });
    await Promise.all([postgres.kill(), valkey.kill()]);
  };
  try {
    while (servers.length < SERVERS) servers.push(await startServer(storage, options));
  } catch (error) {
    await stop();
    throw error;
  }
  return { servers, storage, shared: { ...countersOf(sql, valkey.url), prefer }, stop };
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

function countersOf(sql: SQL, valkeyUrl: string): Pick<SharedEngines, "valkeyEntries" | "transactions"> {
  return {
    valkeyEntries: async () => Number(await sendToValkey(valkeyUrl, "DBSIZE")),
    async transactions() {
      const [row] = await sql`SELECT sum(xact_commit)::int8 AS count FROM pg_stat_database`;
      return Number(row.count);
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
