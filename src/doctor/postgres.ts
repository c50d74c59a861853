import { describeStorage, type StorageConfig } from "../config/storage.ts";
import { postgresOf } from "../adapters/postgres-options.ts";
import { inspectPostgres, type PostgresState } from "../store/postgres/inspect.ts";
import { CONNECTIONS_PER_SERVER } from "../store/postgres/pools.ts";
import { countOf } from "../text/formatting.ts";
import { check, type Finding, problemsOr, messageWithoutSecrets } from "./finding.ts";
import { checkReplication } from "./replication.ts";
import { backupFinding, schemaFinding, type StoreFindings } from "./stored-data.ts";

const postgres = check("PostgreSQL");

/** A server that is being replaced, commands and backups, and what PostgreSQL reserves. */
const OTHER_CONNECTIONS = 2 * CONNECTIONS_PER_SERVER + 3;

export async function checkPostgres(storage: StorageConfig, now: () => number): Promise<StoreFindings> {
  const name = describeStorage(storage).data;
  try {
    const state = await inspectPostgres(postgresOf(storage), now);
    const ok = postgres.ok(`${name} is reachable; version ${state.version}`);
    const findings = problemsOr(ok, postgresProblems(state));
    findings.push(checkReplication(state.replication));
    if (state.schema.version > 0)
      findings.push(schemaFinding(state.schema), backupFinding(state.lastBackupAt, now()));
    return { findings, clocks: [{ name: "PostgreSQL", differenceMs: state.clockDifferenceMs }] };
  } catch (error) {
    const message = `${name} cannot be used: ${messageWithoutSecrets(error)}`;
    const remedy = "check --database-url, that PostgreSQL runs, and that this machine may connect to it";
    return { findings: [postgres.error(message, remedy)] };
  }
}

function postgresProblems(state: PostgresState): readonly (Finding | false)[] {
  const { version, oldestVersion, encoding, freeConnections, maxConnections, servers } = state;
  const neededConnections = servers * CONNECTIONS_PER_SERVER + OTHER_CONNECTIONS;
  return [
    version < oldestVersion &&
      postgres.error(`version ${version} is too old`, `use PostgreSQL ${oldestVersion} or newer`),
    encoding !== "UTF8" &&
      postgres.error(
        `the encoding of the database is ${encoding}`,
        "create a database with ENCODING 'UTF8' TEMPLATE template0",
      ),
    state.isStandby &&
      postgres.error("the server is a standby and accepts no writes", "connect to the primary"),
    !state.isDurable &&
      postgres.warning(
        "a power failure can lose writes that were acknowledged to clients",
        "set fsync = on and synchronous_commit = on",
      ),
    freeConnections < CONNECTIONS_PER_SERVER &&
      postgres.warning(
        `${freeConnections} more connections are possible, and a server needs ${CONNECTIONS_PER_SERVER}`,
        "raise max_connections; docs/deployment.md has the arithmetic",
      ),
    maxConnections < neededConnections &&
      postgres.warning(
        `max_connections is ${maxConnections}, and ${countOf(servers, "server")} with what else connects may need ${neededConnections}`,
        `set max_connections to ${neededConnections} or more`,
      ),
    state.schema.version === 0 &&
      !state.canCreateSchema &&
      postgres.error(
        "the user may not create the schema of the environment",
        "GRANT CREATE ON DATABASE … TO …, or run petstore migrate once as the owner",
      ),
  ];
}
