import { SQL } from "bun";
import { setPriority } from "node:os";
import { temporaryFolder } from "../harness/cleanup.ts";
import type { Cores } from "../harness/machine.ts";
import { type PetstoreServer, startPetstore } from "../harness/petstore.ts";
import { startPostgres } from "../harness/postgres.ts";
import { sendToValkey, startValkey } from "../harness/valkey.ts";
import type { Engines } from "./attack.ts";

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
  for (const { pid } of [postgres, valkey]) prefer(pid);
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
  return { servers, storage, shared: countersOf(sql, valkey.url), stop };
}

const HIGH_PRIORITY = -10;

/**
 * PostgreSQL and Valkey stand for machines of their own: what attackers and servers use of these cores must not make
 * them late. A Valkey that does not reply in 25 ms counts as unavailable.
 */
function prefer(pid: number): void {
  try {
    setPriority(pid, HIGH_PRIORITY);
  } catch {
    // Only root can. The figures are worse without it.
  }
}

function countersOf(sql: SQL, valkeyUrl: string): SharedEngines {
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
  return startPetstore(["--port", "0", ...storage], ["taskset", "-c", cores.server, ...openFilesLimit]);
}
