import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { DataDirectory } from "../data-directory.ts";
import { EarlierTables, schemaState } from "../store/sql/migrations.ts";
import { sqliteVersion } from "../store/sqlite/database.ts";
import { SQLITE_MIGRATIONS } from "../store/sql/migration-steps.ts";
import { QUOTA_MIGRATIONS } from "../store/sqlite/quota-store.ts";
import { inspectDatabase } from "../store/sqlite/snapshot.ts";
import { countOf } from "../text/formatting.ts";
import { isAccessible } from "./files.ts";
import { check, type Finding, messageWithoutSecrets } from "./finding.ts";
import { backupFinding, schemaFinding, type StoreFindings, UPGRADE } from "./stored-data.ts";

const sqlite = check("SQLite");
const database = check("database");
const quotas = check("used quotas");

const RESTORE =
  "stop the server, keep the file for an analysis, and restore a backup with petstore restore --replace";

export function checkSqlite(directory: DataDirectory, now: number): StoreFindings {
  const { database: path } = directory.files;
  const { version, isSupported, oldest } = sqliteVersion();
  const library = isSupported
    ? sqlite.ok(`version ${version}`)
    : sqlite.error(
        `version ${version} is too old`,
        `use ${oldest} or newer: run npm ci in the directory of Petstore`,
      );
  const lost = directory.findLostDatabase();
  if (lost !== undefined) return { findings: [library, database.error(lost.message, lost.remedy)] };
  try {
    if (!existsSync(path))
      return {
        findings: [
          library,
          database.warning(
            `${resolve(path)} does not exist`,
            "petstore serve makes it; if a server has run already, name its data with --data or --env-file",
          ),
        ],
      };
    const { lastBackupAt, newestTime, problems, rows, steps } = inspectDatabase(path);
    const [problem] = problems;
    if (problem !== undefined)
      return {
        findings: [library, database.error(`${path} is not sound: ${problem}`, RESTORE)],
        newestTime,
      };
    const { pets = 0, orders = 0, api_keys: keys = 0 } = rows;
    const contents = `${countOf(pets, "pet")}, ${countOf(orders, "order")}, ${countOf(keys, "key")}`;
    const findings = [
      library,
      database.ok(`${path} is sound: ${contents}`),
      schemaFinding(schemaState(steps, SQLITE_MIGRATIONS)),
      backupFinding(lastBackupAt, now),
    ];
    return { findings, newestTime };
  } catch (error) {
    if (error instanceof Error && error.cause instanceof EarlierTables)
      return { findings: [library, database.error(messageWithoutSecrets(error), UPGRADE)] };
    const remedy = isAccessible(path)
      ? RESTORE
      : `run the command as the user of the server, or give the file to that user: chown USER ${path}`;
    return { findings: [library, database.error(messageWithoutSecrets(error), remedy)] };
  }
}

/** Checks the quotas of keys and addresses that a server counts in its own process. */
export function checkQuotaStore({ files }: DataDirectory): Finding[] {
  const { quotas: path } = files;
  if (!existsSync(path)) return [];
  const remedy = `stop the server and move ${path} away: counts start anew`;
  try {
    const { problems, steps } = inspectDatabase(path, QUOTA_MIGRATIONS);
    const [problem] = problems;
    if (problem !== undefined) return [quotas.error(`${path} is not sound: ${problem}`, remedy)];
    const { rejection } = schemaState(steps, QUOTA_MIGRATIONS);
    if (rejection !== undefined) return [quotas.error(`${path}: ${rejection}`, UPGRADE)];
    return [quotas.ok(`${path} is sound`)];
  } catch (error) {
    return [quotas.error(messageWithoutSecrets(error), remedy)];
  }
}
