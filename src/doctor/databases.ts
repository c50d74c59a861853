import { accessSync, constants, existsSync } from "node:fs";
import { grouped } from "../api/formatting.ts";
import { type Config, describeStorage, pathsOf, type StorageConfig } from "../config/config.ts";
import { readTextFile, UsageError, withoutSecrets } from "../config/usage-error.ts";
import { maxConnectionsWithin } from "../http1/connection-limits.ts";
import { inspectValkey, type ValkeyInformation } from "../rate-limit/valkey/maintenance.ts";
import { inspectPostgres, type PostgresState } from "../store/postgres/inspect.ts";
import { inspectStore, sqliteVersion } from "../store/sqlite/inspect.ts";
import { inspectDatabase } from "../store/sqlite/snapshot.ts";

/** An error keeps the service from working, a warning may do so later. */
export type Level = "ok" | "warning" | "error";

export interface Finding {
  /** What was checked, such as `open files`. */
  readonly check: string;
  readonly level: Level;
  readonly message: string;
  /** What to do about it. */
  readonly remedy?: string;
}

/** The findings of one check. */
export interface Check {
  ok(message: string): Finding;
  warning(message: string, remedy: string): Finding;
  error(message: string, remedy: string): Finding;
}

export function check(name: string): Check {
  return {
    ok: (message) => ({ check: name, level: "ok", message }),
    warning: (message, remedy) => ({ check: name, level: "warning", message, remedy }),
    error: (message, remedy) => ({ check: name, level: "error", message, remedy }),
  };
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const schema = check("migrations");

export interface SchemaVersions {
  readonly schemaVersion: number;
  readonly supportedVersion: number;
}

export function schemaFinding({ schemaVersion, supportedVersion }: SchemaVersions): Finding {
  if (schemaVersion > supportedVersion) {
    return schema.error(
      `the schema has version ${schemaVersion}, and this release supports versions up to ${supportedVersion}`,
      "install the release that was used before, or a newer one",
    );
  }
  if (schemaVersion < supportedVersion) {
    return schema.warning(
      `the schema has version ${schemaVersion}, and the next start migrates it to ${supportedVersion}`,
      "make a backup before you start this release",
    );
  }
  return schema.ok(`the schema has version ${schemaVersion}, the newest`);
}

const openFiles = check("open files");
const clock = check("clock");

/** A server that is not told how many connections to accept does with fewer than it could. */
const ENOUGH_CONNECTIONS = 10_000;

export function checkOpenFiles(
  { maxConnections }: Pick<Config, "maxConnections">,
  possible = maxConnectionsWithin(maxConnections),
): Finding {
  const wanted = maxConnections ?? ENOUGH_CONNECTIONS;
  if (possible >= wanted) return openFiles.ok(`the limit allows ${grouped(possible)} connections`);
  return openFiles.warning(
    `the limit allows ${grouped(possible)} of ${grouped(wanted)} connections`,
    "raise it: LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 in a shell",
  );
}

/** A clock before this release is wrong. */
const RELEASED_AT = Date.UTC(2026, 10, 1);
const CLOCK_TOLERANCE_MS = 2_000;

export interface ClockComparison {
  /** Such as `PostgreSQL`. */
  readonly name: string;
  /** Its clock minus ours. */
  readonly differenceMs: number;
}

export interface ClockOptions {
  readonly now: number;
  /** The newest time in the data. */
  readonly newestTime: number | undefined;
  readonly comparisons: readonly ClockComparison[];
}

const SYNCHRONIZE = "synchronize the clock with NTP: timedatectl set-ntp true";

export function checkClock({ now, newestTime, comparisons }: ClockOptions): Finding[] {
  const today = new Date(now).toISOString();
  if (now < RELEASED_AT)
    return [clock.error(`it is ${today} by this machine, before this release was made`, SYNCHRONIZE)];
  const findings = comparisons
    .filter(({ differenceMs }) => Math.abs(differenceMs) > CLOCK_TOLERANCE_MS)
    .map(({ name, differenceMs }) => {
      const seconds = (Math.abs(differenceMs) / 1000).toFixed(1);
      return clock.warning(
        `the clock of ${name} is ${seconds} s ${differenceMs > 0 ? "ahead of" : "behind"} this machine's`,
        `${SYNCHRONIZE}, on both machines`,
      );
    });
  if (newestTime !== undefined && newestTime > now + CLOCK_TOLERANCE_MS) {
    const message = `the data has a key of ${new Date(newestTime).toISOString()}, which is later than now (${today})`;
    findings.push(clock.warning(message, SYNCHRONIZE));
  }
  return findings.length > 0 ? findings : [clock.ok(`it is ${today}`)];
}

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
    const findings = postgresProblems(state);
    if (findings.length === 0) findings.push(postgres.ok(`${name} is reachable; version ${state.version}`));
    if (state.schemaVersion > 0) findings.push(schemaFinding(state));
    return { findings, clocks: [{ name: "PostgreSQL", differenceMs: state.clockDifferenceMs }] };
  } catch (error) {
    const message = `${name} cannot be used: ${withoutSecrets(reasonOf(error))}`;
    const remedy = "check --database-url, that PostgreSQL runs, and that this machine may connect to it";
    return { findings: [postgres.error(message, remedy)], clocks: [] };
  }
}

function postgresProblems(state: PostgresState): Finding[] {
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

const valkey = check("Valkey");
const OLDEST_MAJOR_VERSION = 7;

export async function checkValkey(storage: StorageConfig, now: () => number): Promise<EngineFindings> {
  const { limitsUrls: urls = [], limitsCaFile, environment } = storage;
  const ca = limitsCaFile === undefined ? undefined : readTextFile("--limits-ca", limitsCaFile);
  if (ca instanceof UsageError)
    return { findings: [valkey.error(ca.message, "correct --limits-ca")], clocks: [] };
  const name = describeStorage(storage).rateLimits;
  try {
    const prefix = `petstore:${environment}:`;
    const state = await inspectValkey({ urls, ...(ca !== undefined && { ca }), prefix, now });
    const findings = state.information ? valkeyProblems(state.information) : [];
    if (findings.length === 0) {
      const version = state.information
        ? `version ${state.information.version}`
        : "its version is not visible to this user";
      findings.push(valkey.ok(`${name} is reachable; ${version}`));
    }
    return { findings, clocks: [{ name: "Valkey", differenceMs: state.clockDifferenceMs }] };
  } catch (error) {
    const message = `${name} cannot be used: ${withoutSecrets(reasonOf(error))}`;
    const remedy =
      "check --limits-url, its user's permissions (docs/deployment.md) and that Valkey runs; until then each server counts on its own";
    return { findings: [valkey.error(message, remedy)], clocks: [] };
  }
}

function valkeyProblems({
  version,
  maxmemoryPolicy,
  maxmemoryBytes,
  isReplica,
}: ValkeyInformation): Finding[] {
  const findings: Finding[] = [];
  if (Number.parseInt(version, 10) < OLDEST_MAJOR_VERSION) {
    findings.push(valkey.error(`version ${version} is too old`, "use Valkey 7.2 or later, or Redis 7"));
  }
  if (isReplica)
    findings.push(valkey.error("the server is a replica and accepts no writes", "connect to the primary"));
  if (maxmemoryBytes > 0 && maxmemoryPolicy !== "noeviction") {
    const message = `maxmemory-policy is ${maxmemoryPolicy}, so Valkey may drop counts and bans when its memory is full`;
    findings.push(valkey.warning(message, "set maxmemory-policy noeviction"));
  }
  return findings;
}
