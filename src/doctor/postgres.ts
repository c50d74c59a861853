import { describeStorage, type StorageConfig } from "../config/config.ts";
import { withoutSecrets } from "../config/usage-error.ts";
import { inspectPostgres, type PostgresState } from "../store/postgres/inspect.ts";
import { check, type Finding, reasonOf } from "./finding.ts";
import type { ClockComparison } from "./machine.ts";
import { schemaFinding } from "./schema.ts";

const postgres = check("PostgreSQL");

/** An instance opens this many. */
const CONNECTIONS = 6;

export interface EngineFindings {
  readonly findings: readonly Finding[];
  readonly clocks: readonly ClockComparison[];
}

export async function checkPostgres(storage: StorageConfig, now: () => number): Promise<EngineFindings> {
  const { databaseUrl = "", environment } = storage;
  const name = describeStorage(storage).data;
  try {
    const state = await inspectPostgres(databaseUrl, environment, now);
    const findings = problemsOf(state);
    if (findings.length === 0) findings.push(postgres.ok(`${name} is reachable; version ${state.version}`));
    if (state.schemaVersion > 0) findings.push(schemaFinding(state));
    return { findings, clocks: [{ name: "PostgreSQL", differenceMs: state.clockDifferenceMs }] };
  } catch (error) {
    const message = `${name} cannot be used: ${withoutSecrets(reasonOf(error))}`;
    const remedy = "check --database-url, that PostgreSQL runs, and that this machine may connect to it";
    return { findings: [postgres.error(message, remedy)], clocks: [] };
  }
}

function problemsOf(state: PostgresState): Finding[] {
  const findings: Finding[] = [];
  if (state.version < state.oldestVersion) {
    const message = `version ${state.version} is too old`;
    findings.push(postgres.error(message, `use PostgreSQL ${state.oldestVersion} or newer`));
  }
  if (state.encoding !== "UTF8") {
    const message = `the encoding of the database is ${state.encoding}`;
    findings.push(postgres.error(message, "create a database with ENCODING 'UTF8' TEMPLATE template0"));
  }
  if (state.isStandby) {
    findings.push(postgres.error("the server is a standby and accepts no writes", "connect to the primary"));
  }
  if (!state.isDurable) {
    const message = "a power failure can lose writes that clients were told of";
    findings.push(postgres.warning(message, "set fsync = on and synchronous_commit = on"));
  }
  if (state.freeConnections < CONNECTIONS) {
    const message = `${state.freeConnections} more connections are possible, and an instance needs ${CONNECTIONS}`;
    findings.push(postgres.warning(message, "raise max_connections; docs/deployment.md has the arithmetic"));
  }
  if (state.schemaVersion === 0 && !state.canCreateSchema) {
    const message = "the user may not create the schema of the environment";
    findings.push(
      postgres.error(message, "GRANT CREATE ON DATABASE … TO …, or run any command once as the owner"),
    );
  }
  return findings;
}
