import type { DataLocation } from "../data-location.ts";
import { isStandby } from "../store/postgres/errors.ts";
import { compareClocks, findPrimary, inspectPostgres } from "../store/postgres/inspect.ts";
import { findMissingRequirements } from "../store/postgres/requirements.ts";
import { problemsOr, messageWithoutSecrets } from "./finding.ts";
import { postgresCheck, postgresProblems, requirementProblem } from "./postgres-problems.ts";
import { checkReplication } from "./replication.ts";
import { backupFinding, schemaFinding, type StoreFindings } from "./stored-data.ts";

/** Checks the database of an environment whose data are in PostgreSQL. */
export async function checkPostgres(
  { postgres, address: name }: DataLocation,
  now: () => number,
): Promise<StoreFindings> {
  if (postgres === undefined) return { findings: [] };
  const { schema } = postgres;
  try {
    const url = await findPrimary(postgres);
    const missing = await findMissingRequirements(url, schema).catch((error: unknown) => {
      if (isStandby(error)) return [];
      throw error;
    });
    const lacking = missing.map(requirementProblem);
    const state = await inspectPostgres(url, schema).catch((error: unknown) => {
      if (lacking.length === 0) throw error;
    });
    // Without what is missing, nothing else can be read.
    if (state === undefined) return { findings: lacking };
    const ok = postgresCheck.ok(`${name} is reachable; version ${state.version}`);
    const findings = problemsOr(ok, [...lacking, ...postgresProblems(state)]);
    findings.push(checkReplication(state.replication));
    if (state.schema.version > 0)
      findings.push(schemaFinding(state.schema), backupFinding(state.lastBackupAt, now()));
    const compared = await compareClocks(postgres.url, now);
    const clocks = compared.map(({ host, differenceMs }) => ({
      name: `PostgreSQL at ${host}`,
      differenceMs,
    }));
    return { findings, clocks };
  } catch (error) {
    const message = `${name} cannot be used: ${messageWithoutSecrets(error)}`;
    const remedy = "check --database-url, that PostgreSQL runs, and that this machine may connect to it";
    return { findings: [postgresCheck.error(message, remedy)] };
  }
}
