import type { PostgresState } from "../store/postgres/inspect.ts";
import type { MissingRequirement } from "../store/postgres/requirements.ts";
import { CONNECTIONS_PER_SERVER } from "../store/postgres/pools.ts";
import { countOf } from "../text/formatting.ts";
import { check, type Finding, messageWithoutSecrets, type PossibleFinding } from "./finding.ts";

export const postgresCheck = check("PostgreSQL");

/** A server that is being replaced, commands and backups, and what PostgreSQL reserves. */
const OTHER_CONNECTIONS = 2 * CONNECTIONS_PER_SERVER + 3;

/** A comfort may be missing: servers work without it. */
export function requirementProblem({ name, cost, isComfort, cause }: MissingRequirement): Finding {
  const problem = isComfort ? postgresCheck.warning : postgresCheck.error;
  return problem(
    `${name}: ${messageWithoutSecrets(cause)}; without it, ${cost}`,
    isComfort ? "use PostgreSQL, or go without it" : "use PostgreSQL, or allow it to the user",
  );
}

export function postgresProblems(state: PostgresState): readonly PossibleFinding[] {
  const { version, oldestVersion, encoding, freeConnections, maxConnections, servers } = state;
  const neededConnections = servers * CONNECTIONS_PER_SERVER + OTHER_CONNECTIONS;
  return [
    version < oldestVersion &&
      postgresCheck.error(`version ${version} is too old`, `use PostgreSQL ${oldestVersion} or newer`),
    encoding !== "UTF8" &&
      postgresCheck.error(
        `the encoding of the database is ${encoding}`,
        "create a database with ENCODING 'UTF8' TEMPLATE template0",
      ),
    state.isStandby &&
      postgresCheck.error("the server is a standby and accepts no writes", "connect to the primary"),
    !state.isDurable &&
      postgresCheck.warning(
        "a power failure can lose writes that were acknowledged to clients",
        "set fsync = on and synchronous_commit = on",
      ),
    freeConnections < CONNECTIONS_PER_SERVER &&
      postgresCheck.warning(
        `${freeConnections} more connections are possible, and a server needs ${CONNECTIONS_PER_SERVER}`,
        "raise max_connections; docs/deployment.md has the arithmetic",
      ),
    maxConnections < neededConnections &&
      postgresCheck.warning(
        `max_connections is ${maxConnections}, and ${countOf(servers, "server")} with what else connects may need ${neededConnections}`,
        `set max_connections to ${neededConnections} or more`,
      ),
    state.schema.version === 0 &&
      !state.canCreateSchema &&
      postgresCheck.error(
        "the user may not create the schema of the environment",
        "GRANT CREATE ON DATABASE … TO …, or run petstore migrate once as the owner",
      ),
  ];
}
