import { accessSync, constants, existsSync } from "node:fs";
import { pathsOf, type StorageConfig } from "../config/config.ts";
import { grouped } from "../contract/formatting.ts";
import { inspectStore, sqliteVersion } from "../store/sqlite/inspect.ts";
import { inspectDatabase } from "../store/sqlite/transfer/snapshot.ts";
import { check, type Finding, reasonOf } from "./finding.ts";
import { schemaFinding } from "./schema.ts";

const engine = check("SQLite");
const database = check("database");
const usage = check("rate limit usage");

const RESTORE =
  "stop the server, keep the file for an analysis, and restore a backup with petstore restore --replace";

export interface StoreFindings {
  readonly findings: readonly Finding[];
  /** The newest time in the data. */
  readonly newestTime: number | undefined;
}

export function checkSqlite(storage: StorageConfig): StoreFindings {
  const { store } = pathsOf(storage);
  const { version, isSupported, oldest } = sqliteVersion();
  const library = isSupported
    ? engine.ok(`version ${version}`)
    : engine.error(
        `version ${version} is too old`,
        `use ${oldest} or newer: run npm ci in the directory of Petstore`,
      );
  try {
    const { database: facts, newestTime } = inspectStore(store);
    if (facts === undefined) {
      const found = database.ok(`${store} does not exist yet; the server creates it`);
      return { findings: [library, found], newestTime };
    }
    const [problem] = facts.problems;
    if (problem !== undefined) {
      return { findings: [library, database.error(`${store} is damaged: ${problem}`, RESTORE)], newestTime };
    }
    const { pets = 0, orders = 0, api_keys: keys = 0 } = facts.rows;
    const contents = `${grouped(pets)} pets, ${grouped(orders)} orders, ${grouped(keys)} keys`;
    const findings = [library, database.ok(`${store} is sound: ${contents}`), schemaFinding(facts)];
    return { findings, newestTime };
  } catch (error) {
    const remedy = isAccessible(store)
      ? RESTORE
      : `run the command as the user of the server, or give the file to that user: chown USER ${store}`;
    return { findings: [library, database.error(reasonOf(error), remedy)], newestTime: undefined };
  }
}

function isAccessible(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Usage of keys and addresses that a server in its own process counts. */
export function checkUsageStore(storage: StorageConfig): Finding[] {
  const { usageStore } = pathsOf(storage);
  if (storage.limitsUrls !== undefined || !existsSync(usageStore)) return [];
  const remedy = `stop the server and move ${usageStore} away: counts start anew`;
  try {
    const [problem] = inspectDatabase(usageStore).problems;
    if (problem !== undefined) return [usage.error(`${usageStore} is damaged: ${problem}`, remedy)];
    return [usage.ok(`${usageStore} is sound`)];
  } catch (error) {
    return [usage.error(reasonOf(error), remedy)];
  }
}
