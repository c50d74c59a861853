import { describeStorage, type StorageConfig } from "../config/storage.ts";
import { postgresOf } from "../adapters/postgres-options.ts";
import { inspectPostgres } from "../store/postgres/inspect.ts";
import { problemsOr, messageWithoutSecrets } from "./finding.ts";
import { postgresCheck, postgresProblems } from "./postgres-problems.ts";
import { checkReplication } from "./replication.ts";
import { backupFinding, schemaFinding, type StoreFindings } from "./stored-data.ts";

export async function checkPostgres(storage: StorageConfig, now: () => number): Promise<StoreFindings> {
  const name = describeStorage(storage).data;
  try {
    const state = await inspectPostgres(postgresOf(storage), now);
    const ok = postgresCheck.ok(`${name} is reachable; version ${state.version}`);
    const findings = problemsOr(ok, postgresProblems(state));
    findings.push(checkReplication(state.replication));
    if (state.schema.version > 0)
      findings.push(schemaFinding(state.schema), backupFinding(state.lastBackupAt, now()));
    return { findings, clocks: [{ name: "PostgreSQL", differenceMs: state.clockDifferenceMs }] };
  } catch (error) {
    const message = `${name} cannot be used: ${messageWithoutSecrets(error)}`;
    const remedy = "check --database-url, that PostgreSQL runs, and that this machine may connect to it";
    return { findings: [postgresCheck.error(message, remedy)] };
  }
}
